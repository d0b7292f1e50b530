#include "policy/autoscaling/autoscaler_plan.h"

#include "api/object/selector.h"
#include "api/text/time_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace spillway::autoscaling {

namespace {

using api::Json;

constexpr std::string_view kAbleToScale = "AbleToScale";
constexpr std::string_view kScalingActive = "ScalingActive";
constexpr std::string_view kScalingLimited = "ScalingLimited";

std::int32_t replicas_at(const Json& document, std::string_view part) {
  const Json* found = document.at({part, "replicas"});
  return static_cast<std::int32_t>(found != nullptr ? found->if_int64().value_or(0) : 0);
}

std::int32_t least_of(const api::HorizontalPodAutoscaler& autoscaler) {
  return autoscaler.min_replicas.value_or(1);
}

void set_condition(api::AutoscalerStatus& status, std::string_view type, bool holds, std::string_view reason,
                   std::string message, Now now) {
  auto found = std::ranges::find(status.conditions, type, &api::AutoscalerCondition::type);
  if (found == status.conditions.end()) {
    found = status.conditions.insert(found, api::AutoscalerCondition{.type = std::string(type)});
  }
  const std::string_view said = holds ? "True" : "False";
  if (found->status != said) found->last_transition_time = now.wall;
  found->status = said;
  found->reason = reason;
  found->message = std::move(message);
}

class Planner {
 public:
  Planner(const AutoscalerView& view, Now now) : view_(view), now_(now) {
    plan_.status = view.autoscaler.status;
    plan_.history = view.history;
  }

  AutoscalerPlan run() && {
    set(kAbleToScale, true, "SucceededGetScale", "the HPA controller was able to get the target's current scale");
    if (plan_.history.recommendations.empty()) plan_.history.recommendations.push_back({current(), now_.mono});
    plan_.status.current_replicas = current();
    const std::int32_t least = least_of(view_.autoscaler);
    if (current() == 0 && least != 0) {
      set(kScalingActive, false, "ScalingDisabled",
          "scaling is disabled since the replica count of the target is zero");
      plan_.status.current_metrics = Json();
      plan_.status.desired_replicas = 0;
    } else if (current() > view_.autoscaler.max_replicas) {
      clamp(view_.autoscaler.max_replicas, "Current number of replicas above Spec.MaxReplicas");
    } else if (current() < least) {
      clamp(least, "Current number of replicas below Spec.MinReplicas");
    } else {
      by_metrics();
    }
    return std::move(plan_);
  }

 private:
  std::int32_t current() const { return view_.scale.replicas; }

  void set(std::string_view type, bool holds, std::string_view reason, std::string message) {
    set_condition(plan_.status, type, holds, reason, std::move(message), now_);
  }

  void warn(std::string_view reason, std::string message) {
    plan_.events.push_back({true, std::string(reason), std::move(message)});
  }

  void clamp(std::int32_t replicas, std::string_view why) {
    plan_.status.current_metrics = Json();
    plan_.replicas = replicas;
    plan_.why = why;
  }

  void give_up(std::string message) {
    plan_.failed = true;
    warn("FailedComputeMetricsReplicas", std::move(message));
  }

  /// Checks that the target has a valid selector, and that no other autoscaler selects the same pods.
  bool check_selector() {
    const std::string& selector = view_.scale.selector;
    std::string problem;
    if (selector.empty()) {
      problem = "selector is required";
      warn("SelectorRequired", problem);
      set(kScalingActive, false, "InvalidSelector", "the HPA target's scale is missing a selector");
    } else if (const auto read = api::parse_label_selector(selector); !read) {
      problem = fmt::format("couldn't convert selector into a corresponding internal selector object: {}",
                            read.error().message);
      warn("InvalidSelector", problem);
      set(kScalingActive, false, "InvalidSelector", problem);
    } else if (view_.selecting.size() > 1) {
      problem = fmt::format("pods by selector {} are controlled by multiple HPAs: [{}]", selector,
                            fmt::join(view_.selecting, " "));
      warn("AmbiguousSelector", problem);
      set(kScalingActive, false, "AmbiguousSelector", problem);
    }
    if (problem.empty()) return true;
    plan_.status.current_metrics = Json();
    give_up(std::move(problem));
    return false;
  }

  void by_metrics() {
    if (!check_selector()) return;
    const TargetView target{.pods = view_.pods,
                            .replicas = current(),
                            .tolerance = tolerance_of(view_.autoscaler, view_.settings.tolerance),
                            .start_periods = view_.settings.start_periods,
                            .now = now_.wall};
    std::optional<MetricProposal> most;
    std::optional<MetricFailure> first_failure;
    std::size_t failures = 0;
    Json::Array statuses;
    for (const MetricAnswer& answer : view_.answers) {
      MetricOutcome outcome = propose_by_metric(answer, target, view_.scale.present, view_.autoscaler.metadata.ns);
      if (const auto* failure = std::get_if<MetricFailure>(&outcome)) {
        ++failures;
        plan_.failed = true;
        plan_.proposals.emplace_back();
        warn(failure->reason, failure->message);
        if (!first_failure) first_failure = *failure;
        statuses.push_back(Json::object({{"type", ""}}));
        continue;
      }
      auto& proposal = std::get<MetricProposal>(outcome);
      plan_.proposals.emplace_back(proposal.replicas);
      statuses.push_back(proposal.status);
      if (!most || proposal.replicas > most->replicas) most = std::move(proposal);
    }
    plan_.status.current_metrics = statuses.empty() ? Json() : Json(std::move(statuses));
    if (!most || (first_failure && most->replicas < current())) {
      return stay_without(first_failure.value_or(MetricFailure{}), failures);
    }
    set(kScalingActive, true, "ValidMetricFound",
        fmt::format("the HPA was able to successfully calculate a replica count from {}", most->name));
    bound(*most);
  }

  void stay_without(const MetricFailure& failure, std::size_t failures) {
    set(kScalingActive, false, failure.reason,
        fmt::format("the HPA was unable to compute the replica count: {}", failure.message));
    give_up(fmt::format("invalid metrics ({} invalid out of {}), first error is: {}", failures, view_.answers.size(),
                        failure.in_all));
  }

  void bound(const MetricProposal& proposal) {
    const api::HorizontalPodAutoscaler& autoscaler = view_.autoscaler;
    const ReplicaRange range{current(), least_of(autoscaler), autoscaler.max_replicas};
    const Duration window = view_.settings.down_stabilization;
    const std::optional<Behavior> behavior = behavior_of(autoscaler, window);
    const auto& known = plan_.history.recommendations;
    const Bounded stable = behavior ? stabilize(known, current(), proposal.replicas, *behavior, now_.mono)
                                    : stabilize(known, proposal.replicas, window, now_.mono);
    remember(plan_.history.recommendations, proposal.replicas, longest_memory(behavior, window), now_.mono);
    set(kAbleToScale, true, stable.reason, std::string(stable.message));
    const Bounded limited =
        behavior ? limit(range, stable.replicas, *behavior, plan_.history, now_.mono) : limit(range, stable.replicas);
    set(kScalingLimited, limited.replicas != stable.replicas, limited.reason, std::string(limited.message));
    plan_.status.desired_replicas = limited.replicas;
    if (limited.replicas == current()) return;
    plan_.replicas = limited.replicas;
    if (proposal.replicas > current()) plan_.why = fmt::format("{} above target", proposal.name);
    if (proposal.replicas < current()) plan_.why = "All metrics below target";
  }

  const AutoscalerView& view_;
  Now now_;
  AutoscalerPlan plan_;
};

}  // namespace

Scale read_scale(const Json& document) {
  return {replicas_at(document, "spec"), replicas_at(document, "status"),
          std::string(document.string_at({"status", "selector"}))};
}

bool needs_metrics(const api::HorizontalPodAutoscaler& autoscaler, const Scale& scale) {
  const std::int32_t least = least_of(autoscaler);
  if (scale.replicas == 0 && least != 0) return false;
  return scale.replicas >= least && scale.replicas <= autoscaler.max_replicas;
}

AutoscalerPlan plan_autoscaler(const AutoscalerView& view, Now now) {
  return Planner(view, now).run();
}

AutoscalerPlan plan_without_scale(const api::HorizontalPodAutoscaler& autoscaler, const Error& why, Now now) {
  AutoscalerPlan plan;
  plan.failed = true;
  plan.status = autoscaler.status;
  plan.events.push_back({true, "FailedGetScale", why.message});
  set_condition(plan.status, kAbleToScale, false, "FailedGetScale",
                fmt::format("the HPA controller was unable to get the target's current scale: {}", why.message), now);
  return plan;
}

void record_scaled(AutoscalerPlan& plan, const api::HorizontalPodAutoscaler& autoscaler, const Scale& before,
                   Duration down_stabilization, Now now) {
  const std::int32_t replicas = *plan.replicas;
  set_condition(plan.status, kAbleToScale, true, "SucceededRescale",
                fmt::format("the HPA controller was able to update the target scale to {}", replicas), now);
  plan.events.push_back({false, "SuccessfulRescale", fmt::format("New size: {}; reason: {}", replicas, plan.why)});
  plan.status.desired_replicas = replicas;
  plan.status.last_scale_time = now.wall;
  const std::optional<Behavior> behavior = behavior_of(autoscaler, down_stabilization);
  if (!behavior) return;
  const std::int32_t change = replicas - before.replicas;
  remember(change > 0 ? plan.history.ups : plan.history.downs, std::abs(change),
           longest_memory(behavior, down_stabilization), now.mono);
}

void record_not_scaled(AutoscalerPlan& plan, const api::HorizontalPodAutoscaler& autoscaler, const Error& why,
                       Now now) {
  plan.failed = true;
  plan.events.push_back({true, "FailedRescale",
                         fmt::format("New size: {}; reason: {}; error: {}", *plan.replicas, plan.why, why.message)});
  set_condition(plan.status, kAbleToScale, false, "FailedUpdateScale",
                fmt::format("the HPA controller was unable to update the target scale: {}", why.message), now);
  plan.status.desired_replicas = autoscaler.status.desired_replicas;
}

Json status_document(const api::AutoscalerStatus& status) {
  Json::Array conditions;
  for (const api::AutoscalerCondition& condition : status.conditions) {
    Json one = Json::object({{"type", condition.type},
                             {"status", condition.status},
                             {"reason", condition.reason},
                             {"message", condition.message}});
    if (condition.last_transition_time) one["lastTransitionTime"] = api::format_time(*condition.last_transition_time);
    conditions.push_back(std::move(one));
  }
  return Json::object(
      {{"currentReplicas", status.current_replicas},
       {"desiredReplicas", status.desired_replicas},
       {"currentMetrics", status.current_metrics},
       {"conditions", std::move(conditions)},
       {"lastScaleTime", status.last_scale_time ? Json(api::format_time(*status.last_scale_time)) : Json()}});
}

}  // namespace spillway::autoscaling
