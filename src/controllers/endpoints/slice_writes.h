// Carries out what a look at EndpointSlices has led to: what is to be made, then what is to be changed, then what is to
// be deleted, one write after the other, up to the first that is refused. What is not seen yet holds up the next look.
// Thread: loop. Bounds: one write of a key at a time.
#pragma once

#include "api/object/endpoints.h"
#include "client/api_client.h"
#include "client/object_cache.h"
#include "controllers/endpoints/unseen_writes.h"
#include "policy/endpoints/slice_plan.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::controllers {

class SliceWrites {
 public:
  struct Failure {
    std::string_view verb;  // "create", "update", "delete"
    std::string slice;      // its name; empty: it has none yet
    Error error;
  };

  /// nullopt: all was written.
  using Done = std::function<void(const std::optional<Failure>&, Now)>;

  SliceWrites(client::ApiClient& client, const client::ObjectCache<api::EndpointSlice>& cache)
      : client_(client), cache_(cache) {}

  /// Until when a look at that key ("namespace/name") has to wait; nullopt: it need not.
  std::optional<Instant> waits(const std::string& key, Instant now);

  void carry_out(const std::string& key, endpoints::SlicePlan plan, Done done, Now now);

  void forget(const std::string& key) { unseen_.forget(key); }

  /// Is told of each write that was carried out: "create", "update", "delete".
  void listen(std::function<void(std::string_view verb)> on_written) { on_written_ = std::move(on_written); }

 private:
  struct Work;
  using WorkPtr = std::shared_ptr<Work>;

  void create(const WorkPtr& work, Now now);
  void update(const WorkPtr& work, Now now);
  void remove(const WorkPtr& work, Now now);

  client::ApiClient& client_;
  const client::ObjectCache<api::EndpointSlice>& cache_;
  UnseenWrites unseen_;
  std::function<void(std::string_view)> on_written_;
};

}  // namespace spillway::controllers
