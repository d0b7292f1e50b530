#include "policy/outlook/autoscaler_outlook.h"

#include "api/text/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace spillway::outlook {

namespace {

using autoscaling::MetricAnswer;
using autoscaling::MetricFailure;
using autoscaling::MetricOutcome;
using autoscaling::MetricProposal;
using autoscaling::MetricTarget;
using policy::Fact;
using policy::Verdict;

const api::AutoscalerCondition* condition_of(const api::AutoscalerStatus& status, std::string_view type) {
  const auto found = std::ranges::find(status.conditions, type, &api::AutoscalerCondition::type);
  return found == status.conditions.end() ? nullptr : &*found;
}

bool is_stabilized(const api::AutoscalerCondition* condition) {
  return condition != nullptr && condition->reason.ends_with("Stabilized");
}

std::string milli_text(std::int64_t milli) {
  return api::Quantity::of_milli(milli).to_string();
}

/// "50%", "200m a pod", "10 in all".
std::string target_text(const MetricTarget& target) {
  if (target.utilization) return fmt::format("{}%", *target.utilization);
  if (target.average_milli) return milli_text(*target.average_milli) + " a pod";
  return target.value_milli ? milli_text(*target.value_milli) + " in all" : std::string();
}

/// The text of an element of status.currentMetrics.
std::string current_text(const MetricTarget& target, const api::Json& status) {
  const api::Json* current = status.at({target.member, "current"});
  if (current == nullptr) return {};
  const api::Json* share = current->find("averageUtilization");
  if (const auto percent = share != nullptr ? share->if_int64() : std::nullopt; percent && target.utilization) {
    return fmt::format("{}%", *percent);
  }
  if (const auto average = current->string_at({"averageValue"}); !average.empty())
    return std::string(average) + " a pod";
  const auto value = current->string_at({"value"});
  return value.empty() ? std::string() : std::string(value) + " in all";
}

std::string metric_name(const MetricTarget& target) {
  if (target.kind == autoscaling::MetricKind::kUnknown) return target.type;
  return target.container.empty() ? target.name : fmt::format("{} of {}", target.name, target.container);
}

class AutoscalerOutlook : OutlookMaker {
 public:
  AutoscalerOutlook(const AutoscalerScene& scene, Now now) : scene_(scene), a_(scene.autoscaler), now_(now) {
    out_.at = now.wall;
    out_.subject = {std::string(api::HorizontalPodAutoscaler::kKind), a_.metadata.ns, a_.metadata.name,
                    a_.metadata.uid};
  }

  Outlook explain() {
    if (a_.metadata.deletion_timestamp) {
      add(Verdict::kRests, Code::kBeingDeleted, {});
    } else if (scene_.scale && !*scene_.scale) {
      add(Verdict::kRefuses, Code::kScaleUnread, {{"target", target()}, {"message", scene_.scale->error().message}});
    } else if (const bool metrics = needs_metrics(); scene_.scale && (!metrics || (scene_.pods && scene_.answers))) {
      decide();
    } else {
      repeat_status();
    }
    say_standing();
    say_behavior();
    name_metrics();
    name_policies();
    name_conditions();
    return std::move(out_);
  }

 private:
  std::string target() const { return fmt::format("{} {}", a_.target.kind, a_.target.name); }

  std::int64_t least() const { return a_.min_replicas.value_or(1); }

  const autoscaling::Scale& scale() const { return **scene_.scale; }

  bool needs_metrics() const { return scene_.scale && autoscaling::needs_metrics(a_, scale()); }

  // Remarks by the rules of the controller.

  /// The part of the history that the object shows: its replicas since the last recommended change.
  autoscaling::History known_history() const {
    autoscaling::History history;
    const WallTime since = a_.status.last_scale_time.value_or(a_.metadata.creation_timestamp.value_or(WallTime()));
    constexpr WallTime::duration kYear = std::chrono::hours(24 * 365);
    const Duration ago = std::clamp(now_.wall - since, WallTime::duration::zero(), kYear);
    history.recommendations.push_back({scale().replicas, now_.mono - ago});
    return history;
  }

  void decide() {
    static const std::vector<MetricAnswer> kNone;
    static const autoscaling::Settings kDefaults;  // the controller's own settings are not in any object
    const std::vector<MetricAnswer>& answers = scene_.answers ? *scene_.answers : kNone;
    const auto pods = scene_.pods.value_or(std::vector<autoscaling::PodPtr>());
    const autoscaling::History history = known_history();
    const autoscaling::AutoscalerPlan plan =
        autoscaling::plan_autoscaler({a_, scale(), pods, scene_.selecting, answers, history, kDefaults}, now_);
    const autoscaling::TargetView view{.pods = pods, .replicas = scale().replicas, .now = now_.wall};
    for (const MetricAnswer& answer : answers) {
      outcomes_.push_back(autoscaling::propose_by_metric(answer, view, scale().present, a_.metadata.ns));
    }
    const auto* active = condition_of(plan.status, "ScalingActive");
    if (!needs_metrics()) return say_out_of_range(plan);
    if (active != nullptr && active->status == "False") return say_why_inactive(*active);
    say_decision(plan);
    const auto* theirs = condition_of(a_.status, "ScalingActive");
    if (theirs != nullptr && theirs->status == "False") say_condition(Verdict::kWaits, *theirs);
  }

  void say_out_of_range(const autoscaling::AutoscalerPlan& plan) {
    if (!plan.replicas) return add(Verdict::kRests, Code::kScaleZero, {{"target", target()}});
    add(Verdict::kActs, Code::kScaleOutOfRange,
        {{"replicas", std::int64_t{scale().replicas}}, {"to", std::int64_t{*plan.replicas}}});
  }

  void say_why_inactive(const api::AutoscalerCondition& active) {
    const bool by_selector = active.reason == "InvalidSelector" || active.reason == "AmbiguousSelector";
    if (by_selector) return add(Verdict::kRefuses, Code::kScaleSelector, {{"message", active.message}});
    const auto is_failure = [](const MetricOutcome& each) { return std::holds_alternative<MetricFailure>(each); };
    const auto failed = std::ranges::count_if(outcomes_, is_failure);
    const auto first = std::ranges::find_if(outcomes_, is_failure);
    add(Verdict::kRefuses, Code::kScaleBlind,
        {{"failed", std::int64_t{failed}},
         {"metrics", static_cast<std::int64_t>(outcomes_.size())},
         {"replicas", std::int64_t{scale().replicas}},
         {"message", first == outcomes_.end() ? active.message : std::get<MetricFailure>(*first).message}});
  }

  std::int32_t proposed() const {
    std::int32_t most = 0;
    for (const MetricOutcome& each : outcomes_) {
      if (const auto* proposal = std::get_if<MetricProposal>(&each)) most = std::max(most, proposal->replicas);
    }
    return most;
  }

  void say_decision(const autoscaling::AutoscalerPlan& plan) {
    const std::int64_t current = scale().replicas;
    const std::int64_t asked = proposed();
    const auto* able = condition_of(plan.status, "AbleToScale");
    const auto* limited = condition_of(plan.status, "ScalingLimited");
    if (is_stabilized(able) || (plan.replicas && asked != current && held_by_controller(asked < current))) {
      return say_stabilized(asked);
    }
    if (limited != nullptr && limited->status == "True") {
      std::vector<Fact> facts{{"proposed", asked}, {"replicas", current}};
      if (plan.replicas) facts.push_back({"to", std::int64_t{*plan.replicas}});
      if (!plan.replicas) facts.push_back({"stays", current});
      facts.push_back({"reason", limited->reason});
      facts.push_back({"message", limited->message});
      return add(plan.replicas ? Verdict::kActs : Verdict::kWaits, Code::kScaleLimited, std::move(facts));
    }
    if (plan.replicas) {
      return add(Verdict::kActs, Code::kScaleChanges,
                 {{"replicas", current}, {"to", std::int64_t{*plan.replicas}}, {"why", plan.why}});
    }
    add(Verdict::kRests, Code::kScaleSteady, {{"replicas", current}});
    const auto percent = std::int64_t{std::lround(autoscaling::Settings{}.tolerance * 100)};
    add(Code::kScaleTolerance, {{"tolerance_percent", percent}});
  }

  /// The controller's past recommendations are in its memory alone, but the condition shows if they hold the scale
  /// back.
  bool held_by_controller(bool shrinks) const {
    const auto* theirs = condition_of(a_.status, "AbleToScale");
    return theirs != nullptr && theirs->reason == (shrinks ? "ScaleDownStabilized" : "ScaleUpStabilized");
  }

  void say_stabilized(std::int64_t asked) {
    const std::int64_t current = scale().replicas;
    const bool shrinks = asked < current;
    const auto behavior = autoscaling::behavior_of(a_);
    Duration window = autoscaling::kDownStabilization;
    if (behavior) window = shrinks ? behavior->down.window : behavior->up.window;
    std::vector<Fact> facts{{"proposed", asked},
                            {"replicas", current},
                            {"recommended", std::string(shrinks ? "more" : "fewer")},
                            {"window_seconds", std::int64_t{std::chrono::floor<std::chrono::seconds>(window).count()}}};
    const auto& last = a_.status.last_scale_time;
    if (last && *last + window > now_.wall) {
      add_instant(facts, "until", std::chrono::time_point_cast<WallTime::duration>(*last + window), now_.wall);
    }
    add(Verdict::kWaits, Code::kScaleStabilized, std::move(facts));
  }

  // Remarks by the status that the controller has written.

  void repeat_status() {
    for (const auto& [type, trouble] :
         {std::pair("AbleToScale", "False"), {"ScalingActive", "False"}, {"ScalingLimited", "True"}}) {
      const auto* condition = condition_of(a_.status, type);
      if (condition != nullptr && condition->status == trouble) say_condition(Verdict::kWaits, *condition);
    }
    add(Verdict::kRests, Code::kScaleUnknown, {{"target", target()}});
    if (!scene_.scale) return add(Code::kNotRead, {{"what", "scale"}});
    if (!scene_.pods) add(Code::kNotRead, {{"what", "pods"}});
    if (!scene_.answers) add(Code::kNotRead, {{"what", "metrics"}});
  }

  void say_condition(Verdict verdict, const api::AutoscalerCondition& condition) {
    add(verdict, Code::kControllerSays,
        {{"condition", condition.type},
         {"status", condition.status},
         {"reason", condition.reason},
         {"message", condition.message}});
  }

  // Further remarks.

  void say_standing() {
    const bool read = scene_.scale && *scene_.scale;
    const std::int64_t current = read ? scale().replicas : a_.status.current_replicas;
    add(Code::kScaleStanding, {{"replicas", current},
                               {"desired", std::int64_t{a_.status.desired_replicas}},
                               {"min", least()},
                               {"max", std::int64_t{a_.max_replicas}},
                               {"target", target()}});
    if (a_.status.last_scale_time) add(Code::kScaleLast, {time_fact("last_at", *a_.status.last_scale_time)});
  }

  void say_behavior() {
    const auto behavior = autoscaling::behavior_of(a_);
    const Duration down = behavior ? behavior->down.window : autoscaling::kDownStabilization;
    std::vector<Fact> facts{
        {"down_window_seconds", std::int64_t{std::chrono::floor<std::chrono::seconds>(down).count()}}};
    if (behavior && behavior->up.window > Duration::zero()) {
      facts.push_back(
          {"up_window_seconds", std::int64_t{std::chrono::floor<std::chrono::seconds>(behavior->up.window).count()}});
    }
    add(Code::kScaleWindow, std::move(facts));
  }

  void name_metrics() {
    const std::vector<MetricTarget> targets = autoscaling::metric_targets(a_);
    const api::Json::Array* known = a_.status.current_metrics.if_array();
    Part part{.name = "metrics", .rows = {}, .total = static_cast<std::int64_t>(targets.size())};
    for (std::size_t i = 0; i < targets.size() && part.rows.size() < kRowsMax; ++i) {
      Row row{metric_name(targets[i]), "read", {}};
      if (i < outcomes_.size()) {
        if (const auto* failure = std::get_if<MetricFailure>(&outcomes_[i])) {
          row.state = "missing";
          row.facts = {{"target", target_text(targets[i])}, {"why", failure->message}};
        } else {
          const auto& proposal = std::get<MetricProposal>(outcomes_[i]);
          row.facts = {{"current", current_text(targets[i], proposal.status)},
                       {"target", target_text(targets[i])},
                       {"replicas", std::int64_t{proposal.replicas}}};
        }
      } else {
        const std::string current =
            known != nullptr && i < known->size() ? current_text(targets[i], (*known)[i]) : std::string();
        row.state = current.empty() ? "unknown" : "as last read";
        row.facts = {{"current", current}, {"target", target_text(targets[i])}};
      }
      part.rows.push_back(std::move(row));
    }
    if (part.total > 0) out_.parts.push_back(std::move(part));
  }

  void name_policies() {
    const auto behavior = autoscaling::behavior_of(a_);
    if (!behavior) return;
    Part part{.name = "policies", .rows = {}, .total = 0};
    for (const auto& [name, rules] : {std::pair("scale up", &behavior->up), {"scale down", &behavior->down}}) {
      if (rules->choice == autoscaling::PolicyChoice::kDisabled) {
        ++part.total;
        if (part.rows.size() < kRowsMax) part.rows.push_back({name, "disabled", {}});
        continue;
      }
      for (const autoscaling::ScalingPolicy& policy : rules->policies) {
        ++part.total;
        if (part.rows.size() >= kRowsMax) continue;
        part.rows.push_back(
            {name,
             fmt::format("at most {}{}", policy.value,
                         policy.percent      ? "%"
                         : policy.value == 1 ? " pod"
                                             : " pods"),
             {{"every_seconds", std::int64_t{std::chrono::floor<std::chrono::seconds>(policy.period).count()}},
              {"select", std::string(rules->choice == autoscaling::PolicyChoice::kMin ? "Min" : "Max")}}});
      }
    }
    if (part.total > 0) out_.parts.push_back(std::move(part));
  }

  void name_conditions() {
    Part part{.name = "conditions", .rows = {}, .total = static_cast<std::int64_t>(a_.status.conditions.size())};
    for (const api::AutoscalerCondition& condition : a_.status.conditions) {
      if (part.rows.size() == kRowsMax) break;
      part.rows.push_back(
          {condition.type, condition.status, {{"reason", condition.reason}, {"message", condition.message}}});
    }
    if (part.total > 0) out_.parts.push_back(std::move(part));
  }

  const AutoscalerScene& scene_;
  const api::HorizontalPodAutoscaler& a_;
  Now now_;
  std::vector<MetricOutcome> outcomes_;
};

}  // namespace

Outlook explain_autoscaler(const AutoscalerScene& scene, Now now) {
  return AutoscalerOutlook(scene, now).explain();
}

}  // namespace spillway::outlook
