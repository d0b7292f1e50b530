#include "controllers/endpoints/endpoint_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace spillway::controllers {

std::string_view EndpointSliceController::slices_query() {
  return "labelSelector=endpointslice.kubernetes.io%2Fmanaged-by%3Dendpointslice-controller.k8s.io";
}

EndpointSliceController::Metrics::Metrics(telemetry::Registry& metrics) {
  const auto syncs = [&metrics](std::string_view result) {
    return metrics.counter("endpoint_slice_controller_syncs", "Syncs of Services for their EndpointSlices",
                           {{"result", result}});
  };
  done = syncs("success");
  stale = syncs("stale");
  failed = syncs("error");
  for (const std::string_view verb : {"create", "update", "delete"}) {
    changes[verb] = metrics.counter("endpoint_slice_controller_changes", "EndpointSlices that were written or deleted",
                                    {{"operation", verb}});
  }
}

EndpointSliceController::EndpointSliceController(Shared shared, client::Informer<api::Service>& services,
                                                 client::Informer<api::EndpointSlice>& slices,
                                                 const SelectedPods& selected, telemetry::Registry& metrics)
    : SliceController(shared, services, slices, &selected, metrics, "endpoint_slice"), metrics_(metrics) {
  writes_.listen([this](std::string_view verb) { metrics_.changes.at(verb).add(); });
  shared_.nodes.cache().listen({[this](const auto& before, const auto& after, Now now) {
    zones_are_old_ = zones_are_old_ || !before || !after || endpoints::changes_shares(*before, *after);
    if (!before && after) on_node(after->metadata.name, now);
  }});
}

void EndpointSliceController::prepare(Now now) {
  if (zones_are_old_ && !hinted_.empty()) measure_zones(now);
}

void EndpointSliceController::measure_zones(Now now) {
  endpoints::ZoneCapacity capacity;
  for (const auto& [name, node] : shared_.nodes.cache().all()) capacity.add(*node);
  zones_ = capacity.shares();
  zones_are_old_ = false;
  for (const auto& [key, families] : hinted_) {
    const bool overloaded = std::ranges::any_of(
        families, [this](const auto& family) { return endpoints::is_overloaded(family.second, zones_); });
    if (overloaded) enqueue(key, now);
  }
}

void EndpointSliceController::on_node(const std::string& name, Now now) {
  const auto waiting = waiting_for_node_.extract(name);
  if (waiting.empty()) return;
  for (const std::string& key : waiting.mapped()) enqueue(key, now);
}

void EndpointSliceController::forget(const std::string& key) {
  writes_.forget(key);
  trigger_times_.forget(key);
  hinted_.erase(key);
  incomplete_.erase(key);
  for (auto waiting = waiting_for_node_.begin(); waiting != waiting_for_node_.end();) {
    waiting->second.erase(key);
    waiting = waiting->second.empty() ? waiting_for_node_.erase(waiting) : std::next(waiting);
  }
}

void EndpointSliceController::sync(const std::string& key, Now now) {
  const ServicePtr service = find(key);
  if (!service || !endpoints::has_selected_pods(*service)) {
    metrics_.done.add();
    return end(key, now);
  }
  if (const auto due = writes_.waits(key, now.mono)) {
    metrics_.stale.add();
    return later(key, *due);
  }
  if (zones_are_old_ && endpoints::hint_mode(*service) == endpoints::HintMode::kByCapacity) measure_zones(now);
  const std::vector<PodPtr> pods = pods_of(*service);
  const std::vector<endpoints::SlicePtr> slices = slices_.of(key);
  endpoints::SlicePlan plan = endpoints::plan_slices(
      {.service = *service,
       .pods = pods,
       .node = [this](const std::string& name) -> const api::Node* { return shared_.nodes.cache().find(name).get(); },
       .slices = slices,
       .trigger_time = trigger_times_.observe(key, *service, pods),
       .zones = zones_});
  for (const std::string& node : plan.missing_nodes) waiting_for_node_[node].insert(key);
  incomplete_.erase(key);
  if (!plan.missing_nodes.empty()) incomplete_.insert(key);
  record_hints(key, *service, plan, now);
  carry_out(
      key, std::move(plan),
      [this, service](const SliceWrites::Failure& failure, Now then) {
        record_warning(
            *service, "FailedToUpdateEndpointSlices",
            fmt::format("Error updating Endpoint Slices for Service {0}/{1}: failed to {2} {3}EndpointSlice for "
                        "Service {0}/{1}: {4}",
                        service->metadata.ns, service->metadata.name, failure.verb,
                        failure.slice.empty() ? failure.slice : failure.slice + " ", failure.error.message),
            then);
      },
      now);
}

/// A slice that lacks a pod counts as refused: it is synced again.
void EndpointSliceController::on_synced(const std::string& key, SyncResult how) {
  (how == SyncResult::kDone && !incomplete_.contains(key) ? metrics_.done : metrics_.failed).add();
}

/// Records events when hints by capacity are added and removed.
void EndpointSliceController::record_hints(const std::string& key, const api::Service& service,
                                           const endpoints::SlicePlan& plan, Now now) {
  const auto say = [&](client::EventType type, std::string_view reason, std::string_view what,
                       endpoints::Family family) {
    shared_.events.record(client::reference_to(service), type, reason,
                          fmt::format("{}, addressType: {}", what, endpoints::to_string(family)), now);
  };
  if (plan.hints.empty()) {
    for (const auto& [family, given] : hinted_[key]) {
      say(client::EventType::kWarning, "TopologyAwareHintsDisabled", "Topology Aware Hints has been disabled", family);
    }
    hinted_.erase(key);
  }
  for (const auto& [family, hints] : plan.hints) {
    if (!hints.refused.empty()) {
      say(client::EventType::kWarning, "TopologyAwareHintsDisabled", hints.refused, family);
      hinted_[key].erase(family);
    } else {
      if (hinted_[key].empty()) {
        say(client::EventType::kNormal, "TopologyAwareHintsEnabled", "Topology Aware Hints has been enabled", family);
      }
      hinted_[key][family] = hints.by_zone;
    }
    if (hinted_[key].empty()) hinted_.erase(key);
  }
}

}  // namespace spillway::controllers
