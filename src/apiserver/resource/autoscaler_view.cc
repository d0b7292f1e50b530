#include "apiserver/resource/autoscaler_view.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kMetrics = "autoscaling.alpha.kubernetes.io/metrics";
constexpr std::string_view kCurrentMetrics = "autoscaling.alpha.kubernetes.io/current-metrics";
constexpr std::string_view kConditions = "autoscaling.alpha.kubernetes.io/conditions";
constexpr std::string_view kBehavior = "autoscaling.alpha.kubernetes.io/behavior";
constexpr std::string_view kCpuTarget = "targetCPUUtilizationPercentage";
constexpr std::string_view kCpuCurrent = "currentCPUUtilizationPercentage";

/// A member of a metric in v2 and what annotations call it.
struct Renamed {
  std::string_view kind;
  std::string_view part;  // "" or the member of v2 that contains it
  std::string_view member;
  std::string_view flat;
};

/// spec.metrics, whose values are in "target".
constexpr auto kTargets = std::to_array<Renamed>({
    {"resource", "", "name", "name"},
    {"resource", "target", "averageUtilization", "targetAverageUtilization"},
    {"resource", "target", "averageValue", "targetAverageValue"},
    {"containerResource", "", "name", "name"},
    {"containerResource", "", "container", "container"},
    {"containerResource", "target", "averageUtilization", "targetAverageUtilization"},
    {"containerResource", "target", "averageValue", "targetAverageValue"},
    {"pods", "metric", "name", "metricName"},
    {"pods", "metric", "selector", "selector"},
    {"pods", "target", "averageValue", "targetAverageValue"},
    {"object", "", "describedObject", "target"},
    {"object", "metric", "name", "metricName"},
    {"object", "metric", "selector", "selector"},
    {"object", "target", "value", "targetValue"},
    {"object", "target", "averageValue", "averageValue"},
    {"external", "metric", "name", "metricName"},
    {"external", "metric", "selector", "metricSelector"},
    {"external", "target", "value", "targetValue"},
    {"external", "target", "averageValue", "targetAverageValue"},
});

/// status.currentMetrics, whose values are in "current".
constexpr auto kReadings = std::to_array<Renamed>({
    {"resource", "", "name", "name"},
    {"resource", "current", "averageUtilization", "currentAverageUtilization"},
    {"resource", "current", "averageValue", "currentAverageValue"},
    {"containerResource", "", "name", "name"},
    {"containerResource", "", "container", "container"},
    {"containerResource", "current", "averageUtilization", "currentAverageUtilization"},
    {"containerResource", "current", "averageValue", "currentAverageValue"},
    {"pods", "metric", "name", "metricName"},
    {"pods", "metric", "selector", "selector"},
    {"pods", "current", "averageValue", "currentAverageValue"},
    {"object", "", "describedObject", "target"},
    {"object", "metric", "name", "metricName"},
    {"object", "metric", "selector", "selector"},
    {"object", "current", "value", "currentValue"},
    {"object", "current", "averageValue", "averageValue"},
    {"external", "metric", "name", "metricName"},
    {"external", "metric", "selector", "metricSelector"},
    {"external", "current", "value", "currentValue"},
    {"external", "current", "averageValue", "currentAverageValue"},
});

constexpr std::array kMetricMembers = {"resource", "containerResource", "pods", "object", "external"};

template <typename Names>
Json flat_metric(const Json& metric, const Names& names) {
  Json flat = Json::object({{"type", metric.string_at({"type"})}});
  for (const std::string_view kind : kMetricMembers) {
    const Json* source = metric.find(kind);
    if (source == nullptr || !source->is_object()) continue;
    flat[kind] = Json::object();
    for (const Renamed& each : names) {
      if (each.kind != kind) continue;
      const Json* value = each.part.empty() ? source->find(each.member) : source->at({each.part, each.member});
      if (value != nullptr && !value->is_null()) flat[kind][each.flat] = *value;
    }
  }
  return flat;
}

/// v1 does not name the kind of a target value: the present member decides.
void name_target(Json& source) {
  Json& target = source["target"];
  for (const auto& [member, type] : {std::pair{"averageUtilization", "Utilization"},
                                     std::pair{"averageValue", "AverageValue"}, std::pair{"value", "Value"}}) {
    if (target.find(member) == nullptr) continue;
    target["type"] = type;
    return;
  }
}

template <typename Names>
Json deep_metric(const Json& flat, const Names& names) {
  Json metric = Json::object({{"type", flat.string_at({"type"})}});
  for (const std::string_view kind : kMetricMembers) {
    const Json* source = flat.find(kind);
    if (source == nullptr || !source->is_object()) continue;
    metric[kind] = Json::object();
    for (const Renamed& each : names) {
      const Json* value = each.kind == kind ? source->find(each.flat) : nullptr;
      if (value == nullptr) continue;
      if (each.part.empty()) {
        metric[kind][each.member] = *value;
      } else {
        metric[kind].make({each.part})[each.member] = *value;
      }
    }
  }
  return metric;
}

const Json::Array& list_at(const Json& object, std::string_view part, std::string_view member) {
  static const Json::Array kNone;
  const Json* found = object.at({part, member});
  const Json::Array* list = found != nullptr ? found->if_array() : nullptr;
  return list != nullptr ? *list : kNone;
}

/// The value of a metric of cpu in percent, which v1 has a member for; null of any other.
Json cpu_percent(const Json& metric, std::string_view values) {
  if (metric.string_at({"type"}) != "Resource" || metric.string_at({"resource", "name"}) != "cpu") return {};
  const Json* percent = metric.at({"resource", values, "averageUtilization"});
  return percent != nullptr ? *percent : Json();
}

template <typename Names>
void show_metrics(const Json& stored, std::string_view part, std::string_view member, std::string_view values,
                  const Names& names, std::string_view cpu, std::string_view annotation, Json& view) {
  Json::Array others;
  bool shown = false;
  for (const Json& metric : list_at(stored, part, member)) {
    const Json percent = shown ? Json() : cpu_percent(metric, values);
    if (percent.is_null()) {
      others.push_back(flat_metric(metric, names));
    } else {
      view.make({part})[cpu] = percent;
      shown = true;
    }
  }
  view.erase({part, member});
  if (!others.empty()) view.make({"metadata", "annotations"})[annotation] = to_text(Json(std::move(others)));
}

/// Removes an annotation and returns its parsed value; null: absent or malformed.
Json take_annotation(Json& object, std::string_view name) {
  const std::string text(object.string_at({"metadata", "annotations", name}));
  object.erase({"metadata", "annotations", name});
  auto value = text.empty() ? Result<Json>(Error{}) : api::parse_json(text);
  return value ? *std::move(value) : Json();
}

template <typename Names>
void read_metrics(Json& stored, std::string_view part, std::string_view member, std::string_view values,
                  const Names& names, std::string_view cpu, std::string_view annotation) {
  Json::Array metrics;
  if (const Json* percent = stored.at({part, cpu}); percent != nullptr && !percent->is_null()) {
    Json resource = Json::object({{"name", "cpu"}, {values, Json::object({{"averageUtilization", *percent}})}});
    metrics.push_back(Json::object({{"type", "Resource"}, {"resource", std::move(resource)}}));
  }
  stored.erase({part, cpu});
  const Json others = take_annotation(stored, annotation);
  if (others.if_array() != nullptr) {
    for (const Json& each : *others.if_array()) metrics.push_back(deep_metric(each, names));
  }
  for (Json& metric : metrics) {
    for (const std::string_view kind : kMetricMembers) {
      if (Json* source = metric.find(kind); source != nullptr && values == "target") name_target(*source);
    }
  }
  if (!metrics.empty()) stored.make({part})[member] = std::move(metrics);
}

void move_to_annotation(Json& view, std::string_view part, std::string_view member, std::string_view annotation) {
  const Json* found = view.at({part, member});
  if (found == nullptr || found->is_null()) return;
  view.make({"metadata", "annotations"})[annotation] = to_text(Json(*found));
  view.erase({part, member});
}

}  // namespace

Json autoscaler_to_view(const Json& stored) {
  Json view = stored;
  show_metrics(stored, "spec", "metrics", "target", kTargets, kCpuTarget, kMetrics, view);
  show_metrics(stored, "status", "currentMetrics", "current", kReadings, kCpuCurrent, kCurrentMetrics, view);
  move_to_annotation(view, "spec", "behavior", kBehavior);
  move_to_annotation(view, "status", "conditions", kConditions);
  // A status of v1 always has the number, one of v2 only if it is not 0.
  Json* status = view.find("status");
  if (status != nullptr && status->is_object() && status->find("currentReplicas") == nullptr) {
    (*status)["currentReplicas"] = Json(0);
  }
  view["apiVersion"] = "autoscaling/v1";
  return view;
}

Json autoscaler_from_view(const Json& view) {
  Json stored = view;
  read_metrics(stored, "spec", "metrics", "target", kTargets, kCpuTarget, kMetrics);
  read_metrics(stored, "status", "currentMetrics", "current", kReadings, kCpuCurrent, kCurrentMetrics);
  if (Json behavior = take_annotation(stored, kBehavior); behavior.is_object()) {
    stored.make({"spec"})["behavior"] = std::move(behavior);
  }
  if (Json conditions = take_annotation(stored, kConditions); conditions.is_array()) {
    stored.make({"status"})["conditions"] = std::move(conditions);
  }
  if (Json* status = stored.find("status"); status != nullptr && status->is_object()) {
    const Json* replicas = std::as_const(*status).find("currentReplicas");
    if (replicas != nullptr && *replicas == Json(0)) status->erase({"currentReplicas"});
    if (status->find("currentMetrics") == nullptr) (*status)["currentMetrics"] = Json();
  }
  const Json* annotations = stored.at({"metadata", "annotations"});
  if (annotations != nullptr && annotations->if_object() != nullptr && annotations->if_object()->empty()) {
    stored.erase({"metadata", "annotations"});
  }
  stored["apiVersion"] = "autoscaling/v2";
  return stored;
}

}  // namespace spillway::apiserver
