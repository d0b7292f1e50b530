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
    : SliceController(shared, services, slices, nullptr, metrics, "endpoint_slice_mirroring"), endpoints_(endpoints) {
  endpoints_.cache().listen({[this](const auto& before, const auto& after, Now now) {
    enqueue(client::key_of((after ? after : before)->metadata), now);
  }});
}

void SliceMirroringController::start(Now now) {
  ServiceController::start(now);
  for (const auto& [key, endpoints] : endpoints_.cache().all()) enqueue(key, now);
  for (const std::string& key : slices_.keys()) enqueue(key, now);
}

/// Slices of a deleted Service that the cache does not show yet are collected as garbage.
void SliceMirroringController::forget(const std::string&) {}

void SliceMirroringController::sync(const std::string& key, Now now) {
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
  carry_out(
      key, std::move(plan),
      [this, key, source](const SliceWrites::Failure& failure, Now then) {
        if (!source) return;
        shared_.events.record(
            client::reference_to(*source), client::EventType::kWarning, "FailedToUpdateEndpointSlices",
            fmt::format("Error updating Endpoint Slices for Endpoints {}: {}", key, failure.error.message), then);
      },
      now);
}

}  // namespace spillway::controllers
