#include "apiserver/nodes/usage.h"

#include "api/object/pod.h"
#include "api/text/time_text.h"

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kMetricsGroup = "metrics.k8s.io";

constexpr std::string_view kWindow = "10s";  // between two measurements of processor time

Json usage_document(const Usage& usage) {
  return Json::object(
      {{"cpu", fmt::format("{}n", usage.nano_cores)}, {"memory", fmt::format("{}Ki", usage.memory_bytes / 1024)}});
}

Json labels_of(const StoredObject& object) {
  Json labels = Json::object();
  for (const auto& [key, value] : object.meta.labels) labels[key] = value;
  return labels;
}

Json document_of(const StoredObject& object, std::string_view kind, WallTime measured, WallTime now) {
  Json out = Json::object({{"kind", kind},
                           {"apiVersion", "metrics.k8s.io/v1beta1"},
                           {"metadata", Json::object({{"name", object.name}})},
                           {"timestamp", api::format_time(measured)},
                           {"window", kWindow}});
  Json& metadata = out["metadata"];
  metadata["creationTimestamp"] = api::format_time(now);
  if (!object.ns.empty()) metadata["namespace"] = object.ns;
  if (!object.meta.labels.empty()) metadata["labels"] = labels_of(object);
  return out;
}

}  // namespace

void UsagePath::read(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const bool of_nodes = route.resource->is(kMetricsGroup, "NodeMetrics");
  const ResourceCache& measured = core_.cache.of(core_.registry.get(of_nodes ? "nodes" : "pods"));
  Objects objects;
  if (route.verb == Verb::kGet) {
    const ObjectPtr object = measured.find(object_key(route.ns, route.name));
    if (!object) return exchange->fail(api::not_found_status(route.resource->group_resource(), route.name));
    objects.push_back(object);
  } else {
    const auto selection = parse_selection(route, exchange->target);
    if (!selection) return exchange->fail(selection.error());
    const std::size_t steps_of_object = selection->steps();
    std::size_t steps = 0;
    measured.visit(selection->key_prefix(), {}, [&](const ObjectPtr& object) {
      steps += steps_of_object;
      if (steps > kSelectStepsMax) return false;
      if (selection->matches(*object)) objects.push_back(object);
      return true;
    });
    if (steps > kSelectStepsMax) return exchange->fail(too_long_selector());
  }
  std::set<std::string> nodes;
  for (const ObjectPtr& object : objects) {
    const std::string_view node = of_nodes ? std::string_view(object->name) : object->meta.fields.front();
    if (!node.empty()) nodes.emplace(node);
  }
  collector_.collect(nodes, [this, exchange, objects = std::move(objects)] { answer(exchange, objects); });
}

/// A pod or node without measurements is left out of lists; a get of it answers 404.
void UsagePath::answer(const ExchangePtr& exchange, const Objects& objects) const {
  const Resource& resource = *exchange->route.resource;
  Json::Array items;
  for (const ObjectPtr& object : objects) {
    std::optional<Json> item = resource.is(kMetricsGroup, "NodeMetrics") ? node_metrics(*object) : pod_metrics(*object);
    if (item) items.push_back(*std::move(item));
  }
  if (exchange->route.verb == Verb::kList) {
    return exchange->answer(200, Json::object({{"kind", std::string(resource.kind) + "List"},
                                               {"apiVersion", resource.api_version()},
                                               {"metadata", Json::object()},
                                               {"items", std::move(items)}}));
  }
  if (items.empty()) {
    return exchange->fail(api::not_found_status(resource.group_resource(), exchange->route.name));
  }
  exchange->answer(200, items.front());
}

/// An agent reports a static pod by the hash of its file, which the mirror pod names.
const std::vector<ContainerUsage>* UsagePath::containers_of(const StoredObject& pod, const NodeUsage& usage) {
  auto found = usage.pods.find(pod.meta.uid);
  if (found == usage.pods.end()) {
    const api::DocumentPtr document = pod.shared_document();
    const std::string hash(document->string_at({"metadata", "annotations", api::kConfigMirrorAnnotation}));
    if (!hash.empty()) found = usage.pods.find(hash);
  }
  return found == usage.pods.end() ? nullptr : &found->second;
}

std::optional<Json> UsagePath::node_metrics(const StoredObject& node) const {
  const NodeUsage* usage = collector_.find(node.name);
  if (usage == nullptr || !usage->node) return std::nullopt;
  Json out = document_of(node, "NodeMetrics", usage->node->time, core_.now.wall);
  out["usage"] = usage_document(*usage->node);
  return out;
}

std::optional<Json> UsagePath::pod_metrics(const StoredObject& pod) const {
  const NodeUsage* usage = collector_.find(std::string(pod.meta.fields.front()));
  if (usage == nullptr) return std::nullopt;
  const std::vector<ContainerUsage>* containers = containers_of(pod, *usage);
  if (containers == nullptr) return std::nullopt;
  const auto oldest =
      std::ranges::min_element(*containers, {}, [](const ContainerUsage& container) { return container.usage.time; });
  Json out = document_of(pod, "PodMetrics", oldest->usage.time, core_.now.wall);
  Json::Array list;
  for (const ContainerUsage& container : *containers) {
    list.push_back(Json::object({{"name", container.name}, {"usage", usage_document(container.usage)}}));
  }
  out["containers"] = std::move(list);
  return out;
}

}  // namespace spillway::apiserver
