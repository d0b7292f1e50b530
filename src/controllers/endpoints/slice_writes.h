// Carries out the plans for EndpointSlices: one write after the other, up to the first that is refused. A write that
// the cache does not show yet holds up the next sync. Thread: loop. Bounds: one write of a key at a time.
#pragma once

#include "api/object/endpoints.h"
#include "client/api_client.h"
#include "client/object_cache.h"
#include "controllers/endpoints/unseen_writes.h"
#include "policy/endpoints/slice_plan.h"

#include <cstddef>
#include <cstdint>
#include <functional>
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

  /// Called after each write that was carried out, with "create", "update" or "delete".
  void listen(std::function<void(std::string_view verb)> on_written) { on_written_ = std::move(on_written); }

 private:
  friend class SliceRun;

  client::ApiClient& client_;
  const client::ObjectCache<api::EndpointSlice>& cache_;
  UnseenWrites unseen_;
  std::function<void(std::string_view)> on_written_;
};

}  // namespace spillway::controllers
