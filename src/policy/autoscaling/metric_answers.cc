#include "policy/autoscaling/metric_answers.h"

#include "api/text/duration.h"
#include "api/text/quantity.h"
#include "api/text/time_text.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

namespace spillway::autoscaling {

namespace {

using api::Json;

Error explained(std::string_view before, const Error& error) {
  return make_error(error.code, "{}: {}", before, error.message);
}

const Json::Array& items_of(const Json& list) {
  static const Json::Array kNone;
  const Json* items = list.find("items");
  const Json::Array* found = items != nullptr ? items->if_array() : nullptr;
  return found != nullptr ? *found : kNone;
}

/// The list of an answer. kInvalid: it is empty.
Result<Json> listed(const Result<Json>& answer, std::string_view api, std::string_view group) {
  if (!answer && !group.empty() && answer.error().code == ErrorCode::kNotFound) {
    return make_error(ErrorCode::kNotFound,
                      "unable to fetch metrics from {0} metrics API: no {0} metrics API ({1}) registered", api, group);
  }
  if (!answer) return explained(fmt::format("unable to fetch metrics from {} metrics API", api), answer.error());
  if (items_of(*answer).empty()) return make_error(ErrorCode::kInvalid, "no metrics returned from {} metrics API", api);
  return *answer;
}

std::optional<std::int64_t> used_milli(const Json& container, std::string_view resource) {
  const std::string_view text = container.string_at({"usage", resource});
  const auto quantity = text.empty() ? Result<api::Quantity>(Error{}) : api::parse_quantity(text);
  return quantity ? std::optional(quantity->milli_value()) : std::nullopt;
}

/// A sample without a readable time is older than any other: it never counts as one after a start.
Sample sample_of(const Json& item, std::int64_t milli) {
  const auto time = api::parse_time(item.string_at({"timestamp"}));
  const auto window = api::parse_duration(item.string_at({"window"}));
  return {milli, time ? *time : WallTime{}, window ? *window : Duration{}};
}

const Json::Array& containers_of(const Json& item) {
  static const Json::Array kNone;
  const Json* containers = item.find("containers");
  const Json::Array* found = containers != nullptr ? containers->if_array() : nullptr;
  return found != nullptr ? *found : kNone;
}

/// A pod counts once all of its containers were measured.
std::optional<Sample> pod_sample(const Json& item, std::string_view resource) {
  std::int64_t sum = 0;
  for (const Json& container : containers_of(item)) {
    const auto used = used_milli(container, resource);
    if (!used || __builtin_add_overflow(sum, *used, &sum)) return std::nullopt;
  }
  return containers_of(item).empty() ? std::nullopt : std::optional(sample_of(item, sum));
}

Result<Samples> resource_samples(const MetricAnswer& answer) {
  const MetricTarget& target = answer.target;
  SPILLWAY_TRY(list, listed(answer.document, "resource", {}));
  Samples samples;
  for (const Json& item : items_of(list)) {
    const std::string name(item.string_at({"metadata", "name"}));
    if (target.kind == MetricKind::kResource) {
      if (const auto sample = pod_sample(item, target.name)) samples[name] = *sample;
      continue;
    }
    const Json* found = nullptr;
    for (const Json& container : containers_of(item)) {
      if (container.string_at({"name"}) == target.container) found = &container;
    }
    if (found == nullptr) {
      return make_error(ErrorCode::kInvalid,
                        "failed to get container metrics: container {} not present in metrics for pod {}/{}",
                        target.container, item.string_at({"metadata", "namespace"}), name);
    }
    if (const auto used = used_milli(*found, target.name)) samples[name] = sample_of(item, *used);
  }
  return samples;
}

Result<std::int64_t> value_milli(const Json& item) {
  const auto quantity = api::parse_quantity(item.string_at({"value"}));
  if (!quantity) return quantity.error();
  return quantity->milli_value();
}

/// Upstream's window where the answer has none.
constexpr Duration kCustomWindow = seconds(60);

Result<Samples> custom_samples(const MetricAnswer& answer) {
  SPILLWAY_TRY(list, listed(answer.document, "custom", "custom.metrics.k8s.io"));
  Samples samples;
  for (const Json& item : items_of(list)) {
    SPILLWAY_TRY(milli, value_milli(item));
    Sample sample = sample_of(item, milli);
    const Json* window = item.find("windowSeconds");
    sample.window = kCustomWindow;
    if (const auto given = window != nullptr ? window->if_int64() : std::nullopt) sample.window = seconds(*given);
    samples[std::string(item.string_at({"describedObject", "name"}))] = sample;
  }
  return samples;
}

/// All values together: one of an object, any number of an external metric.
Result<std::int64_t> value_of_all(const MetricAnswer& answer) {
  const bool external = answer.target.kind == MetricKind::kExternal;
  SPILLWAY_TRY(list, listed(answer.document, external ? "external" : "custom",
                            external ? "external.metrics.k8s.io" : "custom.metrics.k8s.io"));
  std::int64_t sum = 0;
  for (const Json& item : items_of(list)) {
    SPILLWAY_TRY(milli, value_milli(item));
    if (__builtin_add_overflow(sum, milli, &sum)) return make_error(ErrorCode::kInvalid, "the values are too large");
    if (!external) break;
  }
  return sum;
}

Json milli_text(std::int64_t milli) {
  return api::Quantity::of_milli(milli).to_string();
}

/// Computes one metric's proposal from its answer and its target.
class MetricReading {
 public:
  MetricReading(const MetricAnswer& answer, const TargetView& view, std::int32_t present, std::string_view ns)
      : answer_(answer), target_(answer.target), view_(view), present_(present), ns_(ns) {}

  MetricOutcome run() const {
    switch (target_.kind) {
      case MetricKind::kResource:
        return outcome_of(by_resource(), "FailedGetResourceMetric",
                          fmt::format("failed to get {} resource metric value", target_.name));
      case MetricKind::kContainerResource:
        return outcome_of(by_resource(), "FailedGetContainerResourceMetric",
                          fmt::format("failed to get {} container metric value", target_.name));
      case MetricKind::kPods:
        return outcome_of(by_pods(), "FailedGetPodsMetric", "failed to get pods metric value");
      case MetricKind::kObject:
        return outcome_of(by_object(), "FailedGetObjectMetric", "failed to get object metric value");
      case MetricKind::kExternal:
        return outcome_of(by_external(), "FailedGetExternalMetric", "failed to get external metric value");
      case MetricKind::kUnknown:
        break;
    }
    const std::string message = fmt::format("unknown metric source type \"{}\"", target_.type);
    return MetricFailure{"InvalidMetricSourceType", message, message};
  }

 private:
  static MetricOutcome outcome_of(Result<MetricProposal> proposal, std::string_view reason, std::string_view before) {
    if (proposal) return *std::move(proposal);
    return MetricFailure{std::string(reason), proposal.error().message,
                         fmt::format("{}: {}", before, proposal.error().message)};
  }

  MetricProposal proposed(std::int32_t replicas, std::string name, Json current) const {
    Json source = target_.source;
    source["current"] = std::move(current);
    return {replicas, std::move(name), Json::object({{"type", target_.type}, {target_.member, std::move(source)}})};
  }

  Result<MetricProposal> by_resource() const {
    const bool share = !target_.average_milli;
    const std::string before = fmt::format("failed to get {} {}", target_.name, share ? "utilization" : "usage");
    if (share && target_.utilization.value_or(0) <= 0) {
      return make_error(ErrorCode::kInvalid,
                        "invalid resource metric source: neither an average utilization target nor an average value "
                        "(usage) target was set");
    }
    if (!share && *target_.average_milli <= 0) return make_error(ErrorCode::kInvalid, "{}: its target is zero", before);
    const auto samples = resource_samples(answer_);
    if (!samples) {
      return explained(fmt::format("{}: unable to get metrics for resource {}", before, target_.name), samples.error());
    }
    const auto proposal =
        share ? propose_by_utilization(view_, target_.name, target_.container, *samples, *target_.utilization)
              : propose_by_average(view_, target_.name, *samples, *target_.average_milli);
    if (!proposal) return explained(before, proposal.error());
    Json current = Json::object({{"averageValue", milli_text(proposal->measured_milli)}});
    if (proposal->utilization) current["averageUtilization"] = *proposal->utilization;
    const bool of_container = target_.kind == MetricKind::kContainerResource;
    return proposed(proposal->replicas,
                    share ? fmt::format("{} {}resource utilization (percentage of request)", target_.name,
                                        of_container ? "container " : "")
                          : fmt::format("{} {}resource", target_.name, of_container ? "container " : ""),
                    std::move(current));
  }

  Result<MetricProposal> by_pods() const {
    if (target_.average_milli.value_or(0) <= 0) {
      return make_error(ErrorCode::kInvalid, "invalid pods metric source: its averageValue is not set");
    }
    const auto samples = custom_samples(answer_);
    const std::string before = fmt::format("unable to get metric {}", target_.name);
    if (!samples) return explained(before, samples.error());
    SPILLWAY_TRY(proposal, propose_by_average(view_, {}, *samples, *target_.average_milli));
    return proposed(proposal.replicas, fmt::format("pods metric {}", target_.name),
                    Json::object({{"averageValue", milli_text(proposal.measured_milli)}}));
  }

  Result<MetricProposal> by_object() const {
    return by_all(fmt::format("unable to get metric {}: {} on {} {}", target_.name, target_.described.kind, ns_,
                              target_.described.name),
                  fmt::format("{} metric {}", target_.described.kind, target_.name));
  }

  Result<MetricProposal> by_external() const {
    return by_all(fmt::format("unable to get external metric {}/{}/{}", ns_, target_.name,
                              target_.selector.empty() ? "nil" : target_.selector),
                  fmt::format("external metric {}", target_.name));
  }

  Result<MetricProposal> by_all(const std::string& before, std::string name) const {
    const bool in_all = target_.value_milli.has_value();
    const std::int64_t wanted = in_all ? *target_.value_milli : target_.average_milli.value_or(0);
    if (wanted <= 0) return make_error(ErrorCode::kInvalid, "{}: neither a value nor an averageValue is set", before);
    const auto usage = value_of_all(answer_);
    if (!usage) return explained(before, usage.error());
    if (in_all) {
      SPILLWAY_TRY(proposal, propose_by_value(view_, *usage, wanted));
      return proposed(proposal.replicas, std::move(name),
                      Json::object({{"value", milli_text(proposal.measured_milli)}}));
    }
    const Proposal proposal = propose_by_share(view_.tolerance, present_, *usage, wanted);
    return proposed(proposal.replicas, std::move(name),
                    Json::object({{"averageValue", milli_text(proposal.measured_milli)}}));
  }

  const MetricAnswer& answer_;
  const MetricTarget& target_;
  const TargetView& view_;
  std::int32_t present_;
  std::string_view ns_;
};

}  // namespace

MetricOutcome propose_by_metric(const MetricAnswer& answer, const TargetView& view, std::int32_t present,
                                std::string_view ns) {
  return MetricReading(answer, view, present, ns).run();
}

}  // namespace spillway::autoscaling
