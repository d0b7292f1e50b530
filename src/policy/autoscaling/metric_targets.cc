#include "policy/autoscaling/metric_targets.h"

#include "api/exchange/exchange.h"
#include "api/object/selector.h"
#include "api/text/quantity.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace spillway::autoscaling {

namespace {

using api::Json;

struct KindOfMetric {
  std::string_view type;
  std::string_view member;
  MetricKind kind;
};

constexpr std::array<KindOfMetric, 5> kKinds{
    {{"Resource", "resource", MetricKind::kResource},
     {"ContainerResource", "containerResource", MetricKind::kContainerResource},
     {"Pods", "pods", MetricKind::kPods},
     {"Object", "object", MetricKind::kObject},
     {"External", "external", MetricKind::kExternal}}};

std::optional<std::int64_t> quantity_milli(const Json& target, std::string_view member) {
  const std::string_view text = target.string_at({member});
  if (text.empty()) return std::nullopt;
  const auto quantity = api::parse_quantity(text);
  if (!quantity) return std::nullopt;
  return quantity->milli_value();
}

std::optional<std::int32_t> whole_number(const Json& object, std::string_view member) {
  const Json* found = object.find(member);
  const auto value = found != nullptr ? found->if_int64() : std::nullopt;
  return value ? std::optional(static_cast<std::int32_t>(*value)) : std::nullopt;
}

std::string selector_of(const Json& source) {
  const Json* selector = source.at({"metric", "selector"});
  if (selector == nullptr || selector->is_null()) return {};
  const auto read = api::label_selector_from_json(selector);
  return read ? api::to_string(*read) : std::string();
}

MetricTarget metric_target(const Json& metric) {
  MetricTarget read;
  read.type = metric.string_at({"type"});
  for (const KindOfMetric& each : kKinds) {
    const Json* source = metric.find(each.member);
    if (each.type != read.type || source == nullptr) continue;
    read.kind = each.kind;
    read.member = each.member;
    read.name = source->string_at({"name"});
    if (read.name.empty()) read.name = source->string_at({"metric", "name"});
    read.container = source->string_at({"container"});
    read.selector = selector_of(*source);
    read.described = {std::string(source->string_at({"describedObject", "kind"})),
                      std::string(source->string_at({"describedObject", "name"})),
                      std::string(source->string_at({"describedObject", "apiVersion"}))};
    read.source = *source;
    read.source.erase({"target"});
    if (const Json* target = source->find("target"); target != nullptr) {
      read.utilization = whole_number(*target, "averageUtilization");
      read.average_milli = quantity_milli(*target, "averageValue");
      read.value_milli = quantity_milli(*target, "value");
    }
  }
  return read;
}

ScalingRules scaling_rules(const Json* document, Duration window) {
  ScalingRules rules;
  rules.window = window;
  if (document == nullptr) return rules;
  if (const auto given = whole_number(*document, "stabilizationWindowSeconds")) rules.window = seconds(*given);
  const std::string_view choice = document->string_at({"selectPolicy"});
  if (choice == "Min") rules.choice = PolicyChoice::kMin;
  if (choice == "Disabled") rules.choice = PolicyChoice::kDisabled;
  const Json* policies = document->find("policies");
  if (policies == nullptr || policies->if_array() == nullptr) return rules;
  for (const Json& policy : *policies->if_array()) {
    rules.policies.push_back({policy.string_at({"type"}) == "Percent", whole_number(policy, "value").value_or(0),
                              seconds(whole_number(policy, "periodSeconds").value_or(0))});
  }
  return rules;
}

std::string with_query(std::string path, std::string_view name, std::string_view value) {
  if (value.empty()) return path;
  path += fmt::format("{}{}={}", path.find('?') == std::string::npos ? '?' : '&', name, api::percent_encode(value));
  return path;
}

}  // namespace

std::vector<MetricTarget> metric_targets(const api::HorizontalPodAutoscaler& autoscaler) {
  std::vector<MetricTarget> targets;
  if (const Json::Array* metrics = autoscaler.metrics.if_array()) {
    for (const Json& metric : *metrics) targets.push_back(metric_target(metric));
  }
  return targets;
}

std::optional<Behavior> behavior_of(const api::HorizontalPodAutoscaler& autoscaler, Duration down_stabilization) {
  if (!autoscaler.behavior.is_object()) return std::nullopt;
  return Behavior{scaling_rules(autoscaler.behavior.find("scaleUp"), {}),
                  scaling_rules(autoscaler.behavior.find("scaleDown"), down_stabilization)};
}

Tolerance tolerance_of(const api::HorizontalPodAutoscaler& autoscaler, double by_default) {
  constexpr double kMilli = 1000;
  const auto of = [&](std::string_view direction) {
    const Json* rules = autoscaler.behavior.find(direction);
    const auto milli = rules == nullptr ? std::nullopt : quantity_milli(*rules, "tolerance");
    return milli ? static_cast<double>(*milli) / kMilli : by_default;
  };
  if (!autoscaler.behavior.is_object()) return {by_default, by_default};
  return {.up = of("scaleUp"), .down = of("scaleDown")};
}

std::string question_path(const MetricTarget& target, std::string_view ns, std::string_view pods,
                          std::string_view described_plural) {
  const std::string custom = fmt::format("/apis/custom.metrics.k8s.io/v1beta2/namespaces/{}", api::percent_encode(ns));
  const std::string name = api::percent_encode(target.name);
  switch (target.kind) {
    case MetricKind::kResource:
    case MetricKind::kContainerResource:
      return with_query(fmt::format("/apis/metrics.k8s.io/v1beta1/namespaces/{}/pods", api::percent_encode(ns)),
                        "labelSelector", pods);
    case MetricKind::kPods:
      return with_query(with_query(fmt::format("{}/pods/*/{}", custom, name), "labelSelector", pods),
                        "metricLabelSelector", target.selector);
    case MetricKind::kObject:
      if (described_plural.empty()) return {};
      return with_query(
          fmt::format("{}/{}/{}/{}", custom, described_plural, api::percent_encode(target.described.name), name),
          "metricLabelSelector", target.selector);
    case MetricKind::kExternal:
      return with_query(
          fmt::format("/apis/external.metrics.k8s.io/v1beta1/namespaces/{}/{}", api::percent_encode(ns), name),
          "labelSelector", target.selector);
    case MetricKind::kUnknown:
      return {};
  }
  return {};
}

}  // namespace spillway::autoscaling
