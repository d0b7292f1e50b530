#include "controllers/endpoints/endpoint_slices.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

namespace spillway::controllers {

std::string_view EndpointSliceController::slices_query() {
  return "labelSelector=endpointslice.kubernetes.io%2Fmanaged-by%3Dendpointslice-controller.k8s.io";
}

EndpointSliceController::EndpointSliceController(Shared shared, client::Informer<api::Service>& services,
                                                 client::Informer<api::EndpointSlice>& slices,
                                                 telemetry::Registry& metrics)
    : ServiceController(shared, services, metrics, "endpoint_slice"), writes_(shared.client, slices.cache()) {
  slices.cache().listen({[this](const auto& before, const auto& after, Now now) {
    slices_.change(before, after, [&](const std::string& key) { enqueue(key, now); });
  }});
  shared_.nodes.cache().listen({[this](const auto& before, const auto& after, Now now) {
    if (!before && after) on_node(after->metadata.name, now);
  }});
}

void EndpointSliceController::on_node(const std::string& name, Now now) {
  const auto waiting = waiting_for_node_.extract(name);
  if (waiting.empty()) return;
  for (const std::string& key : waiting.mapped()) enqueue(key, now);
}

void EndpointSliceController::forget(const std::string& key) {
  writes_.forget(key);
  trigger_times_.forget(key);
  for (auto waiting = waiting_for_node_.begin(); waiting != waiting_for_node_.end();) {
    waiting->second.erase(key);
    waiting = waiting->second.empty() ? waiting_for_node_.erase(waiting) : std::next(waiting);
  }
}

void EndpointSliceController::look(const std::string& key, Now now) {
  const ServicePtr service = find(key);
  if (!service || !endpoints::has_selected_pods(*service)) return end(key, now);
  if (const auto due = writes_.waits(key, now.mono)) return later(key, *due);
  const std::vector<PodPtr> pods = pods_of(*service);
  const std::vector<endpoints::SlicePtr> slices = slices_.of(key);
  endpoints::SlicePlan plan = endpoints::plan_slices(
      {.service = *service,
       .pods = pods,
       .node = [this](const std::string& name) -> const api::Node* { return shared_.nodes.cache().find(name).get(); },
       .slices = slices,
       .trigger_time = trigger_times_.look(key, *service, pods)});
  for (const std::string& node : plan.missing_nodes) waiting_for_node_[node].insert(key);
  writes_.carry_out(
      key, std::move(plan),
      [this, key, service](const auto& failure, Now then) { on_written(key, *service, failure, then); }, now);
}

void EndpointSliceController::on_written(const std::string& key, const api::Service& service,
                                         const std::optional<SliceWrites::Failure>& failure, Now now) {
  if (!failure) {
    end(key, now);
    return arm();
  }
  // Somebody else was faster, the namespace has gone, or nothing is written here (client::ShadowEngine).
  const ErrorCode code = failure->error.code;
  const bool expected = code == ErrorCode::kNotFound || code == ErrorCode::kConflict;
  if (!expected) {
    tell(service, "FailedToUpdateEndpointSlices",
         fmt::format("Error updating Endpoint Slices for Service {0}/{1}: failed to {2} {3}EndpointSlice for Service "
                     "{0}/{1}: {4}",
                     service.metadata.ns, service.metadata.name, failure->verb,
                     failure->slice.empty() ? failure->slice : failure->slice + " ", failure->error.message),
         now);
  }
  give_up(key, failure->verb, failure->error, now);
}

}  // namespace spillway::controllers
