#include "controllers/endpoints/endpoint_slices.h"

#include "api/codec/codec.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

namespace spillway::controllers {

namespace {

std::string slices_path(const api::ObjectMeta& neighbour, std::string_view name = {}) {
  return client::object_path(api::EndpointSlice::kApiVersion, "endpointslices", neighbour.ns, name);
}

/// "namespace/name" of the Service; empty: the slice says none.
std::string service_key(const api::EndpointSlice& slice) {
  const auto name = slice.metadata.labels.find(endpoints::kServiceNameLabel);
  return name == slice.metadata.labels.end() ? std::string{} : slice.metadata.ns + "/" + name->second;
}

}  // namespace

struct EndpointSliceController::Look {
  std::string key;
  ServicePtr service;
  endpoints::SlicePlan plan;
  std::size_t next = 0;  // of the slices that this step is about
};

std::string_view EndpointSliceController::slices_query() {
  return "labelSelector=endpointslice.kubernetes.io%2Fmanaged-by%3Dendpointslice-controller.k8s.io";
}

EndpointSliceController::EndpointSliceController(Shared shared, client::Informer<api::Service>& services,
                                                 client::Informer<api::EndpointSlice>& slices,
                                                 telemetry::Registry& metrics)
    : ServiceController(shared, services, metrics, "endpoint_slice"), slices_(slices) {
  slices_.cache().listen({[this](const auto& before, const auto& after, Now now) { on_slice(before, after, now); }});
  shared_.nodes.cache().listen({[this](const auto& before, const auto& after, Now now) {
    if (!before && after) on_node(after->metadata.name, now);
  }});
}

void EndpointSliceController::on_slice(const SlicePtr& before, const SlicePtr& after, Now now) {
  if (before) {
    const std::string key = service_key(*before);
    const auto found = by_service_.find(key);
    if (found != by_service_.end()) {
      found->second.erase(before->metadata.name);
      if (found->second.empty()) by_service_.erase(found);
    }
    enqueue(key, now);
  }
  if (after) {
    const std::string key = service_key(*after);
    by_service_[key][after->metadata.name] = after;
    enqueue(key, now);
  }
}

void EndpointSliceController::on_node(const std::string& name, Now now) {
  const auto waiting = waiting_for_node_.extract(name);
  if (waiting.empty()) return;
  for (const std::string& key : waiting.mapped()) enqueue(key, now);
}

std::vector<endpoints::SlicePtr> EndpointSliceController::slices_of(const std::string& key) const {
  std::vector<SlicePtr> slices;
  const auto found = by_service_.find(key);
  if (found == by_service_.end()) return slices;
  for (const auto& [name, slice] : found->second) {
    if (!slice->metadata.deletion_timestamp) slices.push_back(slice);
  }
  return slices;
}

void EndpointSliceController::forget(const std::string& key) {
  unseen_.forget(key);
  trigger_times_.forget(key);
  for (auto waiting = waiting_for_node_.begin(); waiting != waiting_for_node_.end();) {
    waiting->second.erase(key);
    waiting = waiting->second.empty() ? waiting_for_node_.erase(waiting) : std::next(waiting);
  }
}

void EndpointSliceController::look(const std::string& key, Now now) {
  const ServicePtr service = find(key);
  if (!service || !endpoints::has_selected_pods(*service)) return end(key, now);
  const auto shown = [&](const std::string& name) -> std::optional<std::string> {
    const SlicePtr slice = slices_.cache().find(service->metadata.ns + "/" + name);
    return slice ? std::optional(slice->metadata.resource_version) : std::nullopt;
  };
  if (const auto due = unseen_.waits(key, shown, now.mono)) return later(key, *due);
  const std::vector<PodPtr> pods = pods_of(*service);
  const std::vector<SlicePtr> slices = slices_of(key);
  const auto begun = std::make_shared<Look>();
  begun->key = key;
  begun->service = service;
  begun->plan = endpoints::plan_slices(
      {.service = *service,
       .pods = pods,
       .node = [this](const std::string& name) -> const api::Node* { return shared_.nodes.cache().find(name).get(); },
       .slices = slices,
       .trigger_time = trigger_times_.look(key, *service, pods)});
  for (const std::string& node : begun->plan.missing_nodes) waiting_for_node_[node].insert(key);
  create(begun, now);
}

void EndpointSliceController::create(const LookPtr& look, Now now) {
  if (look->next == look->plan.created.size()) {
    look->next = 0;
    return update(look, now);
  }
  const api::EndpointSlice& slice = look->plan.created[look->next++];
  shared_.client.create(slices_path(slice.metadata), api::encode(slice),
                        [this, look](const Result<api::Json>& outcome, Now then) {
                          if (!outcome) return fail(look, "create", {}, outcome.error(), then);
                          unseen_.wrote(look->key, std::string(outcome->string_at({"metadata", "name"})),
                                        outcome->string_at({"metadata", "resourceVersion"}), then.mono);
                          create(look, then);
                        });
}

void EndpointSliceController::update(const LookPtr& look, Now now) {
  if (look->next == look->plan.updated.size()) {
    look->next = 0;
    return remove(look, now);
  }
  const api::EndpointSlice& slice = look->plan.updated[look->next++];
  const std::string& name = slice.metadata.name;
  shared_.client.update(slices_path(slice.metadata, name), api::encode(slice),
                        [this, look, name](const Result<api::Json>& outcome, Now then) {
                          if (!outcome) return fail(look, "update", name, outcome.error(), then);
                          unseen_.wrote(look->key, name, outcome->string_at({"metadata", "resourceVersion"}),
                                        then.mono);
                          update(look, then);
                        });
}

void EndpointSliceController::remove(const LookPtr& look, Now now) {
  if (look->next == look->plan.deleted.size()) return finish(look, now);
  const api::ObjectMeta& slice = look->plan.deleted[look->next++]->metadata;
  shared_.client.remove(
      slices_path(slice, slice.name), delete_options(slice),
      [this, look, name = slice.name, version = slice.resource_version](const Result<api::Json>& outcome, Now then) {
        const bool gone = !outcome && outcome.error().code == ErrorCode::kNotFound;
        if (!outcome && !gone) return fail(look, "delete", name, outcome.error(), then);
        if (outcome) unseen_.removed(look->key, name, version, then.mono);
        remove(look, then);
      });
}

void EndpointSliceController::finish(const LookPtr& look, Now now) {
  end(look->key, now);
  arm();
}

void EndpointSliceController::fail(const LookPtr& look, std::string_view verb, const std::string& slice,
                                   const Error& error, Now now) {
  // Somebody else was faster, the namespace has gone, or nothing is written here (client::ShadowEngine).
  const bool expected = error.code == ErrorCode::kNotFound || error.code == ErrorCode::kConflict;
  if (!expected) {
    const api::ObjectMeta& service = look->service->metadata;
    tell(*look->service, "FailedToUpdateEndpointSlices",
         fmt::format("Error updating Endpoint Slices for Service {0}/{1}: failed to {2} {3}EndpointSlice for Service "
                     "{0}/{1}: {4}",
                     service.ns, service.name, verb, slice.empty() ? slice : slice + " ", error.message),
         now);
  }
  give_up(look->key, verb, error, now);
}

}  // namespace spillway::controllers
