#include "controllers/scheduling/binding_cycles.h"

#include "controllers/shared/paths.h"
#include "policy/scheduling/extender_answer.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace spillway::controllers {

namespace {

/// A binding reported by an extender counts as made for that long without being seen. A cache shows a binding within
/// moments; half a minute later the pod gets another turn.
constexpr Duration kBoundSightMax = seconds(30);

}  // namespace

void BindingCycles::begin(const api::Pod& pod, const std::optional<scheduling::PodQueue::Course>& course, Now now) {
  attempts_.insert_or_assign(pod.metadata.uid, Attempt{course, now.mono, parts_.timings.next_is_sampled()});
  ++under_way_;
}

void BindingCycles::bind(const PodPtr& pod, const std::string& node, Now now) {
  if (const auto attempt = attempts_.find(pod->metadata.uid); attempt != attempts_.end()) {
    parts_.timings.record_point(SchedulerTimings::Point::kPreBind, SchedulerTimings::Status::kSuccess,
                                pod->spec.scheduler_name, attempt->second.sampled, now.mono - attempt->second.found);
  }
  const std::vector<std::size_t> binders = parts_.extender_calls.asked_for(scheduling::ExtenderVerb::kBind, *pod);
  if (binders.empty()) return bind_by_api(pod, node, now);
  bind_by_extender(binders.front(), pod, node, now);
}

void BindingCycles::bind_by_api(const PodPtr& pod, const std::string& node, Now now) {
  const auto attempt = attempts_.find(pod->metadata.uid);
  const bool sampled = attempt != attempts_.end() && attempt->second.sampled;
  const api::Json binding = api::Json::object(
      {{"apiVersion", "v1"},
       {"kind", "Binding"},
       {"metadata",
        api::Json::object({{"name", pod->metadata.name}, {"namespace", pod->metadata.ns}, {"uid", pod->metadata.uid}})},
       {"target", api::Json::object({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}})}});
  parts_.client.create(pod_path(*pod, "binding"), binding,
                       [this, pod, node, sampled, begin = now.mono](const Result<api::Json>& outcome, Now then) {
                         on_api_bound(pod, node, sampled, begin, outcome, then);
                       });
}

void BindingCycles::on_api_bound(const PodPtr& pod, const std::string& node, bool sampled, Instant begin,
                                 const Result<api::Json>& outcome, Now now) {
  using Status = SchedulerTimings::Status;
  parts_.timings.record_point(SchedulerTimings::Point::kBind, outcome ? Status::kSuccess : Status::kError,
                              pod->spec.scheduler_name, sampled, now.mono - begin);
  on_bound(pod, node, outcome ? Outcome() : Outcome(outcome.error()), now);
}

void BindingCycles::on_bound(const PodPtr& pod, const std::string& node, const Outcome& outcome, Now now) {
  const client::ObjectKey key = client::key_of(pod->metadata);
  --under_way_;
  const auto attempt = attempts_.extract(pod->metadata.uid);
  const auto course = attempt ? attempt.mapped().course : std::nullopt;
  if (outcome) {
    parts_.refused.forget(key);
    parts_.metrics.count_attempt(pod->spec.scheduler_name, SchedulerMetrics::Result::kScheduled, course, now.mono);
    parts_.log.info("pod bound", {{"pod", key}, {"node", node}});
    hooks_.events_of(*pod).record(client::reference_to(*pod), client::EventType::kNormal, "Scheduled",
                                  fmt::format("Successfully assigned {} to {}", key, node), now);
    return;  // the assumption holds until the cache shows the node
  }
  parts_.metrics.count_attempt(pod->spec.scheduler_name, SchedulerMetrics::Result::kError, course, now.mono);
  parts_.log.warning("binding failed", {{"pod", key}, {"node", node}, {"error", outcome.error().text()}});
  hooks_.give_up(pod, node, now);
}

void BindingCycles::bind_by_extender(std::size_t extender, const PodPtr& pod, const std::string& node, Now now) {
  // The pod takes a place among those that wait for extenders, so that a slow extender delays no others.
  --under_way_;
  ++at_extenders_;
  parts_.extender_calls.ask(extender, scheduling::ExtenderVerb::kBind, scheduling::binding_question(*pod, node), now,
                            [this, extender, pod, node](const Result<std::string>& body, Now then) {
                              on_extender_bound(extender, pod, node, body, then);
                            });
}

void BindingCycles::on_extender_bound(std::size_t extender, const PodPtr& pod, const std::string& node,
                                      const Result<std::string>& body, Now now) {
  --at_extenders_;
  ++under_way_;
  Outcome outcome = body ? scheduling::read_binding_answer(*body) : Outcome(body.error());
  if (body && !outcome)
    outcome = parts_.extender_calls.disbelieve(extender, scheduling::ExtenderVerb::kBind, outcome.error());
  if (!outcome && parts_.extender_calls[extender].ignorable) return bind_by_api(pod, node, now);
  on_bound(pod, node, outcome, now);
  if (!outcome) return;
  parts_.client.at(now.mono + kBoundSightMax, [this, pod, node](Now later) {
    if (!hooks_.is_assumed(pod->metadata.uid)) return;
    parts_.log.warning("an extender reported a binding that did not happen",
                       {{"pod", pod->key().text()}, {"node", node}});
    hooks_.give_up(pod, node, later);
  });
}

void BindingCycles::on_claims_failed(const PodPtr& pod, const std::string& node, const std::string& why, Now now) {
  if (!hooks_.is_assumed(pod->metadata.uid)) return;
  const auto found = attempts_.find(pod->metadata.uid);
  const Attempt attempt = found == attempts_.end() ? Attempt{.found = now.mono} : found->second;
  parts_.timings.record_point(SchedulerTimings::Point::kPreBind, SchedulerTimings::Status::kError,
                              pod->spec.scheduler_name, attempt.sampled, now.mono - attempt.found);
  parts_.metrics.count_attempt(pod->spec.scheduler_name, SchedulerMetrics::Result::kError, attempt.course, now.mono);
  parts_.log.warning("a pod waits no longer for its claims",
                     {{"pod", pod->key().text()}, {"node", node}, {"error", why}});
  hooks_.give_up(pod, node, now);
  const PodPtr current = hooks_.still_waiting(pod);
  if (!current) return;
  parts_.conditions.report(current, fmt::format("running PreBind plugin \"VolumeBinding\": {}", why), std::nullopt, now,
                           "SchedulerError");
}

}  // namespace spillway::controllers
