// Mirrors Endpoints that users write into EndpointSlices. Each sync is planned by policy/endpoints/mirror_plan.h.
// Thread: loop. Bounds: as ServiceController.
// Source: Kubernetes docs, "EndpointSlices", EndpointSlice mirroring; spec "Scheduler and workloads", 16.
#pragma once

#include "api/object/endpoints.h"
#include "controllers/endpoints/slice_controller.h"

#include <memory>
#include <string>
#include <string_view>

namespace spillway::controllers {

class SliceMirroringController final : public SliceController {
 public:
  SliceMirroringController(Shared shared, client::Informer<api::Service>& services,
                           client::Informer<api::Endpoints>& endpoints, client::Informer<api::EndpointSlice>& slices,
                           telemetry::Registry& metrics);

  /// Also syncs slices whose Endpoints were deleted while no controller ran.
  void start(Now now) override;

  /// The query of the slice cache: the slices of this controller alone.
  static std::string_view slices_query();

 private:
  using EndpointsPtr = std::shared_ptr<const api::Endpoints>;

  void sync(const std::string& key, Now now) override;
  void forget(const std::string& key) override;

  client::Informer<api::Endpoints>& endpoints_;
};

}  // namespace spillway::controllers
