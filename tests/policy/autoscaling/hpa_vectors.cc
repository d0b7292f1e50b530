// vectors/workloads: hpa_replicas.
#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "policy/autoscaling/replica_proposal.h"
#include "policy/autoscaling/scale_limits.h"
#include "support/vectors.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::autoscaling {
namespace {

using api::Json;
using support::Mismatch;

constexpr Instant kSyncedAt = Instant{} + hours(24);

std::int64_t number_in(const Json& in, std::string_view member) {
  const Json* found = in.find(member);
  return found != nullptr ? found->if_int64().value() : 0;
}

std::int32_t count_in(const Json& in, std::string_view member) {
  return static_cast<std::int32_t>(number_in(in, member));
}

const Json::Array& list_in(const Json& in, std::string_view member) {
  static const Json::Array kNone;
  const Json* found = in.find(member);
  return found != nullptr ? *found->if_array() : kNone;
}

/// Samples are from now; a CPU start period holds for all pods, or is over for all.
TargetView target_in(const Json& in) {
  TargetView view;
  view.replicas = count_in(in, "current");
  view.tolerance.up = view.tolerance.down = in.find("tolerance")->if_double().value();
  view.now = api::parse_time("2026-01-01T00:00:00Z").value();
  view.start_periods.cpu_initialization = in.find("within_initialization")->if_bool().value() ? hours(1) : Duration{};
  for (const Json& pod : list_in(in, "pods")) {
    view.pods.push_back(std::make_shared<const api::Pod>(api::decode<api::Pod>(pod).value()));
  }
  return view;
}

Samples samples_in(const Json& in, WallTime now) {
  Samples samples;
  const Json* metrics = in.find("metrics");
  if (metrics == nullptr) return samples;
  for (const auto& [pod, milli] : *metrics->if_object()) {
    samples[pod] = {milli.if_int64().value(), now, seconds(60)};
  }
  return samples;
}

Json proposal_row(const Result<Proposal>& proposal, std::string_view measured) {
  if (!proposal) return Json::object({{"error", proposal.error().message}});
  Json row = Json::object({{"replicas", proposal->replicas}, {measured, proposal->measured_milli}});
  if (proposal->utilization) row["utilization"] = *proposal->utilization;
  return row;
}

std::int64_t sum_in(const Json& in) {
  std::int64_t sum = 0;
  for (const Json& value : list_in(in, "values")) sum += value.if_int64().value();
  return sum;
}

std::deque<Moment> moments_in(const Json& in, std::string_view member) {
  std::deque<Moment> moments;
  for (const Json& moment : list_in(in, member)) {
    moments.push_back({count_in(moment, "change"), kSyncedAt - seconds(number_in(moment, "age_s"))});
  }
  return moments;
}

ScalingRules rules_in(const Json& rules) {
  ScalingRules read;
  read.window = seconds(number_in(rules, "stabilizationWindowSeconds"));
  const std::string_view choice = rules.string_at({"selectPolicy"});
  if (choice == "Min") read.choice = PolicyChoice::kMin;
  if (choice == "Disabled") read.choice = PolicyChoice::kDisabled;
  for (const Json& policy : list_in(rules, "policies")) {
    read.policies.push_back({policy.string_at({"type"}) == "Percent", count_in(policy, "value"),
                             seconds(number_in(policy, "periodSeconds"))});
  }
  return read;
}

Json bounded_row(const Bounded& stable, const Bounded& limited) {
  return Json::object({{"stabilized", stable.replicas},
                       {"replicas", limited.replicas},
                       {"reason", limited.reason},
                       {"message", limited.message}});
}

Json limits_row(const Json& in) {
  const ReplicaRange range{count_in(in, "current"), count_in(in, "min"), count_in(in, "max")};
  const Bounded stable = stabilize(moments_in(in, "recommendations"), count_in(in, "desired"),
                                   seconds(number_in(in, "window_s")), kSyncedAt);
  return bounded_row(stable, limit(range, stable.replicas));
}

Json behavior_row(const Json& in) {
  const ReplicaRange range{count_in(in, "current"), count_in(in, "min"), count_in(in, "max")};
  const History history{moments_in(in, "recommendations"), moments_in(in, "scale_ups"), moments_in(in, "scale_downs")};
  const Behavior behavior{rules_in(*in.find("scaleUp")), rules_in(*in.find("scaleDown"))};
  const std::int32_t desired = count_in(in, "desired");
  const Bounded stable = stabilize(history.recommendations, range.current, desired, behavior, kSyncedAt);
  Json row = bounded_row(stable, limit(range, stable.replicas, behavior, history, kSyncedAt));
  if (stable.replicas != desired) {
    row["stabilized_reason"] = stable.reason;
    row["stabilized_message"] = stable.message;
  }
  return row;
}

std::optional<Mismatch> check_autoscaling(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  const std::string_view op = row.string_at({"op"});
  if (op == "limits") return support::compare(want, limits_row(in));
  if (op == "behavior") return support::compare(want, behavior_row(in));
  const TargetView view = target_in(in);
  const Samples samples = samples_in(in, view.now);
  const std::string_view resource = in.string_at({"resource"});
  const std::int64_t target = number_in(in, "target");
  if (op == "resource_utilization") {
    return support::compare(
        want,
        proposal_row(propose_by_utilization(view, resource, {}, samples, count_in(in, "target")), "average_milli"));
  }
  if (op == "resource_value" || op == "pods_metric") {
    return support::compare(want, proposal_row(propose_by_average(view, resource, samples, target), "average_milli"));
  }
  if (op.ends_with("_value")) {
    return support::compare(want, proposal_row(propose_by_value(view, sum_in(in), target), "usage_milli"));
  }
  return support::compare(
      want, proposal_row(propose_by_share(view.tolerance, count_in(in, "status_replicas"), sum_in(in), target),
                         "average_milli"));
}

const bool kAutoscalingRows = support::add_vector_check("workloads/hpa_replicas", check_autoscaling);

}  // namespace
}  // namespace spillway::autoscaling
