#include "controllers/endpoints/endpoint_controllers.h"

#include "controllers/endpoints/endpoint_slices.h"
#include "controllers/endpoints/endpoints.h"
#include "controllers/endpoints/slice_mirroring.h"

#include <optional>

namespace spillway::controllers {

struct EndpointControllers::Parts {
  Parts(Enabled enabled, const Shared& shared, const Rng& rng, telemetry::Registry& metrics)
      : services(shared.client, client::object_path(api::Service::kApiVersion, "services", {})) {
    if (enabled.endpoints || enabled.endpoint_slices) selected.emplace(shared.pods.cache(), services.cache());
    const auto with = [&shared](client::EventRecorder& events) {
      return Shared{shared.client, events,        shared.log,          shared.nodes,
                    shared.pods,   shared.leases, shared.replica_sets, shared.daemon_sets};
    };
    if (enabled.endpoints || enabled.slice_mirroring) {
      endpoints.emplace(shared.client, client::object_path(api::Endpoints::kApiVersion, "endpoints", {}));
    }
    if (enabled.endpoints) {
      endpoints_events.emplace(shared.client, rng.fork("endpoints events"), "endpoint-controller");
      endpoints_controller.emplace(with(*endpoints_events), services, *endpoints, *selected, metrics);
    }
    if (enabled.endpoint_slices) {
      slice_events.emplace(shared.client, rng.fork("endpoint slice events"), "endpoint-slice-controller");
      slices.emplace(shared.client, client::object_path(api::EndpointSlice::kApiVersion, "endpointslices", {}),
                     std::string(EndpointSliceController::slices_query()));
      slice_controller.emplace(with(*slice_events), services, *slices, *selected, metrics);
    }
    if (enabled.slice_mirroring) {
      mirroring_events.emplace(shared.client, rng.fork("mirroring events"), "endpoint-slice-mirroring-controller");
      mirrored.emplace(shared.client, client::object_path(api::EndpointSlice::kApiVersion, "endpointslices", {}),
                       std::string(SliceMirroringController::slices_query()));
      mirroring.emplace(with(*mirroring_events), services, *endpoints, *mirrored, metrics);
    }
  }

  client::Informer<api::Service> services;
  std::optional<SelectedPods> selected;
  std::optional<client::EventRecorder> endpoints_events;
  std::optional<client::Informer<api::Endpoints>> endpoints;
  std::optional<EndpointsController> endpoints_controller;
  std::optional<client::EventRecorder> slice_events;
  std::optional<client::Informer<api::EndpointSlice>> slices;
  std::optional<EndpointSliceController> slice_controller;
  std::optional<client::EventRecorder> mirroring_events;
  std::optional<client::Informer<api::EndpointSlice>> mirrored;
  std::optional<SliceMirroringController> mirroring;
};

EndpointControllers::EndpointControllers(Enabled enabled, const Shared& shared, const Rng& rng,
                                         telemetry::Registry& metrics)
    : parts_(std::make_unique<Parts>(enabled, shared, rng, metrics)) {}

EndpointControllers::~EndpointControllers() = default;

void EndpointControllers::start(Now now) {
  if (parts_->endpoints_controller) parts_->endpoints_controller->start(now);
  if (parts_->slice_controller) parts_->slice_controller->start(now);
  if (parts_->mirroring) parts_->mirroring->start(now);
}

void EndpointControllers::run(Now now) {
  if (parts_->endpoints_controller) parts_->endpoints_controller->run(now);
  if (parts_->slice_controller) parts_->slice_controller->run(now);
  if (parts_->mirroring) parts_->mirroring->run(now);
}

}  // namespace spillway::controllers
