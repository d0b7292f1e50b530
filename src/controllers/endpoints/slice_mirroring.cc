#include "controllers/endpoints/slice_mirroring.h"

#include "policy/endpoints/mirror_plan.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace spillway::controllers {

std::string_view SliceMirroringController::slices_query() {
  return "labelSelector=endpointslice.kubernetes.io%2Fmanaged-by%3Dendpointslicemirroring-controller.k8s.io";
}

SliceMirroringController::SliceMirroringController(Shared shared, client::Informer<api::Service>& services,
                                                   client::Informer<api::Endpoints>& endpoints,
                                                   client::Informer<api::EndpointSlice>& slices,
                                                   telemetry::Registry& metrics)
    : ServiceController(shared, services, metrics, "endpoint_slice_mirroring", Follows::kServicesAlone),
      endpoints_(endpoints),
      writes_(shared.client, slices.cache()) {
  endpoints_.cache().listen({[this](const auto& before, const auto& after, Now now) {
    enqueue(client::key_of((after ? after : before)->metadata), now);
  }});
  slices.cache().listen({[this](const auto& before, const auto& after, Now now) {
    slices_.change(before, after, [&](const std::string& key) { enqueue(key, now); });
  }});
}

void SliceMirroringController::start(Now now) {
  ServiceController::start(now);
  for (const auto& [key, endpoints] : endpoints_.cache().all()) enqueue(key, now);
  for (const std::string& key : slices_.keys()) enqueue(key, now);
}

/// What is not seen yet of a Service that is gone goes by itself.
void SliceMirroringController::forget(const std::string&) {}

void SliceMirroringController::look(const std::string& key, Now now) {
  if (const auto due = writes_.waits(key, now.mono)) return later(key, *due);
  const EndpointsPtr source = endpoints_.cache().find(key);
  const ServicePtr service = find(key);
  endpoints::SlicePlan plan;
  if (source && endpoints::is_mirrored(*source, service.get())) {
    plan = endpoints::plan_mirror(*source, slices_.of(key));
    const std::size_t beyond = endpoints::unmirrored_addresses(*source);
    if (beyond > 0 && !plan.empty()) {
      shared_.events.record(
          client::reference_to(*source), client::EventType::kWarning, "TooManyAddressesToMirror",
          fmt::format("A max of {} addresses can be mirrored to EndpointSlices per Endpoints subset. {} addresses were "
                      "skipped",
                      endpoints::kMirroredPerSubset, beyond),
          now);
    }
  } else {
    plan.deleted = slices_.of(key);
  }
  if (plan.empty()) return end(key, now);
  writes_.carry_out(
      key, std::move(plan),
      [this, key, source](const auto& failure, Now then) { on_written(key, source, failure, then); }, now);
}

void SliceMirroringController::on_written(const std::string& key, const EndpointsPtr& source,
                                          const std::optional<SliceWrites::Failure>& failure, Now now) {
  if (!failure) {
    end(key, now);
    return arm();
  }
  // Somebody else was faster, the namespace has gone, or nothing is written here (client::ShadowEngine).
  const ErrorCode code = failure->error.code;
  const bool expected = code == ErrorCode::kNotFound || code == ErrorCode::kConflict;
  if (!expected && source) {
    shared_.events.record(
        client::reference_to(*source), client::EventType::kWarning, "FailedToUpdateEndpointSlices",
        fmt::format("Error updating Endpoint Slices for Endpoints {}: {}", key, failure->error.message), now);
  }
  give_up(key, failure->verb, failure->error, now);
}

}  // namespace spillway::controllers
