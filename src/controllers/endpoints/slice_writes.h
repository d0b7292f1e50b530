// Executes the plan of a sync of EndpointSlices: creations, then updates, then deletions, one write after the other, up
// to the first that is refused. The next sync waits until the cache shows these writes. Thread: loop. Bounds: one write
// of a key at a time.
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
    std::string slice;      // name of the slice; empty: it has none yet
    Error error;
  };

  /// nullopt: all was written.
  using Done = std::function<void(const std::optional<Failure>&, Now)>;

  SliceWrites(client::ApiClient& client, const client::ObjectCache<api::EndpointSlice>& cache)
      : client_(client), cache_(cache) {}

  /// The time until which a sync of that key ("namespace/name") has to wait; nullopt: it need not.
  std::optional<Instant> waits(const std::string& key, Instant now);

  void carry_out(const std::string& key, endpoints::SlicePlan plan, Done done, Now now);

  void forget(const std::string& key) { unseen_.forget(key); }

  /// Called after each executed write: "create", "update", "delete".
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
