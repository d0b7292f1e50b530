// HorizontalPodAutoscalers: defaults and validation of target, bounds, metrics and behaviour. Objects written as v1
// have been converted to v2 before (resource/autoscaler_view.h).
#include "api/text/names.h"
#include "api/text/quantity.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/resource/autoscaler_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::int64_t kCpuPercent = 80;
constexpr std::int64_t kWindowMaxSeconds = 3600;
constexpr std::int64_t kPeriodMaxSeconds = 1800;
constexpr std::size_t kMetricsShown = 2;

constexpr std::array<std::string_view, 5> kMetricTypes{"ContainerResource", "External", "Object", "Pods", "Resource"};
constexpr std::array<std::string_view, 2> kScalingPolicyTypes{"Percent", "Pods"};
constexpr std::array<std::string_view, 3> kPolicyChoices{"Disabled", "Max", "Min"};

/// The member that each metric type requires, in upstream's order of validation.
struct MetricMember {
  std::string_view type;
  std::string_view member;
};

constexpr std::array<MetricMember, 5> kMetricMembers{{{"Object", "object"},
                                                      {"External", "external"},
                                                      {"Pods", "pods"},
                                                      {"Resource", "resource"},
                                                      {"ContainerResource", "containerResource"}}};

Json scaling_policy(std::string_view type, std::int64_t value) {
  return Json::object({{"type", type}, {"value", value}, {"periodSeconds", 15}});
}

void default_rules(Json& behavior, std::string_view member, std::optional<std::int64_t> window,
                   const Json::Array& policies) {
  Json& rules = behavior[member];
  if (!rules.is_object()) rules = Json::object();
  if (window && !has(rules, "stabilizationWindowSeconds")) rules["stabilizationWindowSeconds"] = *window;
  if (!has(rules, "selectPolicy")) rules["selectPolicy"] = "Max";
  if (!has(rules, "policies")) rules["policies"] = policies;
}

void default_autoscaler(Json& object) {
  Json& spec = object.make({"spec"});
  if (!spec.is_object()) spec = Json::object();
  if (!has(spec, "minReplicas")) spec["minReplicas"] = 1;
  if (elements(static_cast<const Json&>(spec), "metrics").empty()) {
    Json target = Json::object({{"type", "Utilization"}, {"averageUtilization", kCpuPercent}});
    Json resource = Json::object({{"name", "cpu"}, {"target", std::move(target)}});
    spec["metrics"] = Json::array({Json::object({{"type", "Resource"}, {"resource", std::move(resource)}})});
  }
  if (!has(spec, "behavior")) return;
  default_rules(spec["behavior"], "scaleUp", 0, {scaling_policy("Pods", 4), scaling_policy("Percent", 100)});
  default_rules(spec["behavior"], "scaleDown", std::nullopt, {scaling_policy("Percent", 100)});
}

void require_segment(const CheckedField& field, std::string_view missing = {}) {
  if (field.text().empty()) return field.required(missing);
  field.require_valid(api::path_segment_errors(field.text()));
}

void validate_reference(const CheckedField& reference) {
  require_segment(reference["kind"]);
  require_segment(reference["name"]);
}

void require_positive(const CheckedField& field) {
  const auto quantity = field.quantity();
  if (quantity && quantity->sign() != 1) field.invalid("must be positive");
}

void validate_target(const CheckedField& target) {
  const CheckedField type = target["type"];
  if (type.text().empty()) type.required("must specify a metric target type");
  if (type.text() != "Utilization" && type.text() != "Value" && type.text() != "AverageValue") {
    type.invalid(Json(type.text()), "must be either Utilization, Value, or AverageValue");
  }
  require_positive(target["value"]);
  require_positive(target["averageValue"]);
  const CheckedField percent = target["averageUtilization"];
  if (percent && percent.integer().value_or(1) < 1) percent.invalid("must be greater than 0");
}

void validate_resource_source(const CheckedField& source, bool of_container) {
  const CheckedField name = source["name"];
  const CheckedField target = source["target"];
  if (name.text().empty()) name.required("must specify a resource name");
  if (of_container) {
    const CheckedField container = source["container"];
    if (container.text().empty()) container.required("must specify a container");
  }
  validate_target(target);
  const CheckedField percent = target["averageUtilization"];
  const CheckedField value = target["averageValue"];
  if (!percent && !value) percent.required("must set either a target raw value or a target utilization");
  if (percent && value) value.forbidden("may not set both a target raw value and a target utilization");
}

void validate_metric_identifier(const CheckedField& source) {
  const CheckedField metric = source["metric"];
  const CheckedField name = metric["name"];
  require_segment(name, "must specify a metric name");
}

void validate_source(std::string_view member, const CheckedField& source) {
  if (member == "resource" || member == "containerResource") {
    return validate_resource_source(source, member == "containerResource");
  }
  if (member == "object") validate_reference(source["describedObject"]);
  validate_metric_identifier(source);
  const CheckedField target = source["target"];
  validate_target(target);
  const CheckedField value = target["value"];
  const CheckedField average = target["averageValue"];
  if (member == "pods") {
    const auto quantity = average.quantity();
    if (!quantity || quantity->sign() != 1) average.required("must specify a positive target averageValue");
  } else if (!value && !average) {
    average.required(member == "object" ? "must set either a target value or averageValue"
                                        : "must set either a target value for metric or a per-pod target");
  } else if (member == "external" && value && average) {
    value.forbidden("may not set both a target value for metric and a per-pod target");
  }
}

void validate_metric(const CheckedField& metric) {
  const CheckedField type = metric["type"];
  if (type.text().empty()) type.required("must specify a metric source type");
  type.require_one_of(kMetricTypes);
  std::size_t present = 0;
  for (const MetricMember& each : kMetricMembers) {
    const CheckedField source = metric[each.member];
    if (source && ++present == 1) validate_source(each.member, source);
    if (!source && each.type == type.text()) source.required("must populate information for the given metric source");
  }
  for (const MetricMember& each : kMetricMembers) {
    const CheckedField source = metric[each.member];
    if (source && each.type != type.text() && present != 1) {
      source.forbidden("must populate the given metric source only");
    }
  }
}

void validate_rules(const CheckedField& rules) {
  if (!rules) return;
  const CheckedField window = rules["stabilizationWindowSeconds"];
  const std::int64_t wanted = window.integer().value_or(0);
  if (wanted < 0) window.invalid("must be greater than or equal to zero");
  if (wanted > kWindowMaxSeconds) window.invalid(fmt::format("must be less than or equal to {}", kWindowMaxSeconds));
  const CheckedField tolerance = rules["tolerance"];
  if (const auto share = api::parse_quantity(tolerance.text()); tolerance && share && share->sign() < 0)
    tolerance.invalid("must be greater than or equal to 0");
  const CheckedField choice = rules["selectPolicy"];
  choice.optional_one_of(kPolicyChoices);
  const CheckedField policies = rules["policies"];
  policies.each([](const CheckedField& policy) {
    const CheckedField type = policy["type"];
    type.require_one_of(kScalingPolicyTypes);
    const CheckedField value = policy["value"];
    if (value.integer().value_or(0) <= 0) value.invalid("must be greater than zero");
    const CheckedField period = policy["periodSeconds"];
    const std::int64_t length = period.integer().value_or(0);
    if (length <= 0) period.invalid("must be greater than zero");
    if (length > kPeriodMaxSeconds) period.invalid(fmt::format("must be less than or equal to {}", kPeriodMaxSeconds));
  });
}

void validate_autoscaler(const Json& object, FieldErrors& errors) {
  const CheckedField spec(object.find("spec"), "spec", errors);
  const CheckedField least = spec["minReplicas"];
  const CheckedField most = spec["maxReplicas"];
  const std::int64_t max = most.integer().value_or(0);
  if (least && least.integer().value_or(1) < 1) least.invalid("must be greater than or equal to 1");
  if (max == 0) most.required("must be set and greater than 0");
  if (max < 0) most.invalid(Json(max), "must be greater than or equal to 1");
  if (least && max < least.integer().value_or(0)) {
    most.invalid(Json(max), "must be greater than or equal to `minReplicas`");
  }
  const CheckedField reference = spec["scaleTargetRef"];
  validate_reference(reference);
  const CheckedField metrics = spec["metrics"];
  metrics.each(validate_metric);
  const CheckedField behavior = spec["behavior"];
  validate_rules(behavior["scaleUp"]);
  validate_rules(behavior["scaleDown"]);
}

void validate_autoscaler_update(const Json& object, const Json&, Endpoint endpoint, FieldErrors& errors) {
  if (endpoint != Endpoint::kStatus) return validate_autoscaler(object, errors);
  const Json& status = value_of(object, "status");
  require_non_negative(status, "currentReplicas", "status.currentReplicas", errors);
  require_non_negative(status, "desiredReplicas", "status.desiredReplicas", errors);
}

// The table.

constexpr std::array kAutoscalerColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"Reference", "string", "", 0, "What it scales"},
    TableColumn{"Targets", "string", "", 0, "What was measured, of what is wanted, for its first metrics"},
    TableColumn{"MinPods", "string", "", 0, "Replicas at least"},
    TableColumn{"MaxPods", "string", "", 0, "Replicas at most"},
    TableColumn{"Replicas", "string", "", 0, "Replicas at the last sync"},
    TableColumn{"Age", "string", "", 0, "Time since creation"}};

std::string quantity_or(const Json* value, std::string_view otherwise) {
  const auto quantity =
      api::parse_quantity(value != nullptr && value->if_string() != nullptr ? *value->if_string() : "");
  return quantity ? quantity->to_string() : std::string(otherwise);
}

std::string percent_or(const Json* value, std::string_view otherwise) {
  const auto percent = value != nullptr ? value->if_int64() : std::nullopt;
  return percent ? fmt::format("{}%", *percent) : std::string(otherwise);
}

std::string metric_text(const Json& metric, const Json& status) {
  for (const MetricMember& each : kMetricMembers) {
    if (each.type != metric.string_at({"type"})) continue;
    const auto wanted = [&](std::string_view member) { return metric.at({each.member, "target", member}); };
    const auto seen = [&](std::string_view member) { return status.at({each.member, "current", member}); };
    const bool resource = each.member == "resource" || each.member == "containerResource";
    const bool averaged = wanted("averageValue") != nullptr && !wanted("averageValue")->is_null();
    const std::string before = resource ? fmt::format("{}: ", metric.string_at({each.member, "name"})) : std::string();
    if (resource && !averaged) {
      return fmt::format("{}{}/{}", before, percent_or(seen("averageUtilization"), kUnknown),
                         percent_or(wanted("averageUtilization"), "<auto>"));
    }
    const std::string_view member = averaged ? "averageValue" : "value";
    const bool marked = averaged && (each.member == "object" || each.member == "external");
    return fmt::format("{}{}/{}{}", before, quantity_or(seen(member), kUnknown), quantity_or(wanted(member), kUnknown),
                       marked ? " (avg)" : "");
  }
  return "<unknown type>";
}

std::string metrics_text(const Json& object) {
  const Json::Array& wanted = elements(value_of(object, "spec"), "metrics");
  const Json::Array& seen = elements(value_of(object, "status"), "currentMetrics");
  if (wanted.empty()) return std::string(kNone);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < wanted.size() && i < kMetricsShown; ++i) {
    texts.push_back(metric_text(wanted[i], i < seen.size() ? seen[i] : Json()));
  }
  const std::string shown = fmt::format("{}", fmt::join(texts, ", "));
  if (wanted.size() <= kMetricsShown) return shown;
  return fmt::format("{} + {} more...", shown, wanted.size() - kMetricsShown);
}

TableRow autoscaler_row(const Json& object, WallTime now) {
  const Json& spec = value_of(object, "spec");
  const auto least = integer(spec, "minReplicas");
  return {
      {object.string_at({"metadata", "name"}),
       fmt::format("{}/{}", spec.string_at({"scaleTargetRef", "kind"}), spec.string_at({"scaleTargetRef", "name"})),
       metrics_text(object), least ? fmt::format("{}", *least) : "<unset>", count_at(object, {"spec", "maxReplicas"}),
       count_at(object, {"status", "currentReplicas"}), age_of(object, now)},
      nullptr};
}

Resource horizontal_pod_autoscaler_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"hpa"};
  static const KindHooks kHooks{.set_defaults = default_autoscaler,
                                .validate_create = validate_autoscaler,
                                .validate_update = validate_autoscaler_update,
                                .columns = kAutoscalerColumns,
                                .table_row = autoscaler_row};
  return {.group = "autoscaling",
          .version = "v2",
          .plural = "horizontalpodautoscalers",
          .singular = "horizontalpodautoscaler",
          .kind = "HorizontalPodAutoscaler",
          .verbs = kAllVerbs,
          .storage = below("horizontalpodautoscalers"),
          .short_names = kShortNames,
          .categories = kAllCategory,
          .subresources = kStatusOnly,
          .status_subresource = true,
          .metadata = kChangeOnly,
          .hooks = &kHooks};
}

/// HorizontalPodAutoscalers in the form of autoscaling/v1.
Resource horizontal_pod_autoscaler_v1_kind() {
  Resource kind = horizontal_pod_autoscaler_kind();
  kind.version = "v1";
  kind.view = {autoscaler_from_view, autoscaler_to_view};
  return kind;
}

}  // namespace

std::vector<Resource> autoscaling_kinds() {
  return {horizontal_pod_autoscaler_kind(), horizontal_pod_autoscaler_v1_kind()};
}

}  // namespace spillway::apiserver::kinds
