// Mirrors Endpoints that somebody writes by himself into EndpointSlices. What follows from a look is decided by
// policy/endpoints/mirror_plan.h. Thread: loop. Bounds: as ServiceController.
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

  /// Looks at slices whose Endpoints went while nobody was here as well.
  void start(Now now) override;

  /// What the cache of slices has to read: those of this controller alone.
  static std::string_view slices_query();

 private:
  using EndpointsPtr = std::shared_ptr<const api::Endpoints>;

  void look(const std::string& key, Now now) override;
  void forget(const std::string& key) override;

  client::Informer<api::Endpoints>& endpoints_;
};

}  // namespace spillway::controllers
