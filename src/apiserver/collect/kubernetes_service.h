// The Service `kubernetes`, its Endpoints and its EndpointSlices (kubernetes_objects.h): made when they are missing,
// put right when somebody changes them. Addresses that are not there any more leave them; where no address is known no
// Endpoints are made. Nothing is written before a server has said where it serves. Thread: loop. Bounds: one write in
// flight; what fails is tried again after kRetry.
#pragma once

#include "apiserver/collect/kubernetes_objects.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/writer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::apiserver {

class KubernetesService final : public Collector {
 public:
  static constexpr Duration kRetry = seconds(10);

  KubernetesService(Core& core, Writer& writer);

  /// `port`: this server's own, above 0. `addresses`: of all servers of the store, in any order.
  void announce(std::uint16_t port, std::vector<ServingAddress> addresses);

 private:
  struct Wanted {
    const ResourceCache* cache;
    api::Json document;
  };

  // Collector
  void load() override { is_dirty_ = true; }

  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  bool is_ours(const ResourceCache& cache, const StoredObject& object) const;
  std::vector<Wanted> wanted() const;
  /// False: it is as it should be, or is being deleted.
  bool mend(const Wanted& wanted);
  void settle(const std::string& what, const api::StatusResult<Written>& result);

  Core& core_;
  Writer& writer_;
  const ResourceCache& services_;
  const ResourceCache& endpoints_;
  const ResourceCache& slices_;
  std::uint16_t port_ = 0;                 // 0: nothing is announced yet
  std::vector<ServingAddress> addresses_;  // sorted
  bool is_dirty_ = false;
  bool is_writing_ = false;
  std::string told_;  // the failure that the log has
};

}  // namespace spillway::apiserver
