#include "agent/pods/admission_queue.h"

#include "agent/contract/kill_grace.h"
#include "agent/pod_state/pod_worker.h"
#include "client/event_recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::int64_t kDefaultGraceSeconds = 30;
constexpr Duration kVictimWaitMin = seconds(10);
constexpr std::string_view kEvicted = "Evicted";  // the reason of a refusal by a node under pressure

policy::Subject subject_of(const api::PodKey& pod, const std::string& uid) {
  return {.kind = "Pod", .ns = pod.ns, .name = pod.name, .uid = uid};
}

/// The time that a victim has to end before it is given up: half again its grace, at least ten seconds.
Duration patience_for(const api::Pod& victim) {
  const std::int64_t grace = std::clamp<std::int64_t>(
      victim.spec.termination_grace_period_seconds.value_or(kDefaultGraceSeconds), 0, kGraceSecondsMax);
  return std::max(kVictimWaitMin, Duration(seconds(grace)) * 3 / 2);
}

}  // namespace

AdmissionQueue::AdmissionQueue(AgentContext& context, std::function<admission::NodeSituation()> situation,
                               Workers& workers, DecisionLog& decisions, telemetry::Registry* metrics)
    : context_(context),
      situation_(std::move(situation)),
      workers_(workers),
      decisions_(decisions),
      metrics_(metrics) {}

api::Json AdmissionQueue::state() const {
  api::Json waiting = api::Json::array();
  for (const std::string& uid : waiting_) waiting.if_array()->emplace_back(uid);
  api::Json state = api::Json::object({{"preemption", nullptr}, {"waiting", std::move(waiting)}});
  if (!preemption_) return state;
  api::Json victims = api::Json::array();
  for (const Preempted& each : preemption_->victims) victims.if_array()->emplace_back(each.uid);
  state["preemption"] =
      api::Json::object({{"newcomer", preemption_->newcomer ? api::Json(*preemption_->newcomer) : api::Json()},
                         {"victims", std::move(victims)}});
  return state;
}

void AdmissionQueue::ask(Now now) {
  while (!preemption_ && !waiting_.empty()) {
    const std::string uid = std::move(waiting_.front());
    waiting_.pop_front();
    if (const auto pod = workers_.find_waiting(uid)) ask_one(uid, *pod, now);
  }
}

void AdmissionQueue::ask_one(const std::string& uid, const api::Pod& pod, Now now) {
  const std::vector<const api::Pod*> active = workers_.active();
  admission::NodeSituation situation = situation_();
  if (workers_.was_admitted(uid)) situation.conditions.clear();
  const admission::Answer answer = admission::admit_pod(situation, pod, active);
  record(pod, answer, now);
  if (!answer.victims.empty()) begin_preemption(pod, answer, now);
  if (answer.refusal) {
    if (answer.refusal->reason == kEvicted) {
      context_.log.info(
          "failed to admit pod to node",
          {{"pod", pod.key().text()}, {"node_condition", fmt::format("[{}]", fmt::join(situation.conditions, " "))}});
    }
    context_.log.warning("pod rejected", {{"pod", pod.key().text()},
                                          {"reason", answer.refusal->reason},
                                          {"message", answer.refusal->message},
                                          {"reasons", policy::render(answer.reasons)}});
    if (metrics_ != nullptr) {
      metrics_
          ->counter("kubelet_admission_rejections_total", "Cumulative number pod admission rejections by the Kubelet.",
                    {{"reason", std::string(admission::rejection_label(answer.refusal->reason))}})
          .add();
    }
    workers_.refuse(uid, *answer.refusal, now);
  } else if (answer.victims.empty()) {
    workers_.begin(uid, now);
  } else {
    preemption_->newcomer = uid;
  }
  if (preemption_ && preemption_->victims.empty()) end_preemption(now);
}

/// A pod that simply starts needs no explanation.
void AdmissionQueue::record(const api::Pod& pod, const admission::Answer& answer, Now now) {
  if (!answer.refusal && answer.victims.empty()) return;
  policy::Decision asked{.at = now.wall,
                         .by = context_.options.node_name,
                         .area = policy::Area::kAdmission,
                         .verdict = answer.refusal ? policy::Verdict::kRefuses : policy::Verdict::kActs,
                         .action = answer.victims.empty() ? "start" : "preempt",
                         .subject = subject_of(pod.key(), pod.metadata.uid),
                         .message = answer.refusal ? answer.refusal->reason + ": " + answer.refusal->message : "",
                         .reasons = answer.reasons,
                         .candidates = {},
                         .candidates_total = static_cast<std::int64_t>(answer.victims.size()),
                         .cost = {}};
  for (const admission::Victim& victim : answer.victims) {
    asked.candidates.push_back({subject_of(victim.pod, victim.uid), victim.reason, {}});
  }
  decisions_.record({.decision = std::move(asked), .eviction = {}});
  for (const admission::Victim& victim : answer.victims) {
    std::vector<policy::Reason> reasons{victim.reason};
    reasons.insert(reasons.end(), answer.reasons.begin(), answer.reasons.end());
    decisions_.record({.decision = {.at = now.wall,
                                    .by = context_.options.node_name,
                                    .area = policy::Area::kPreemption,
                                    .verdict = policy::Verdict::kActs,
                                    .action = "preempt",
                                    .subject = subject_of(victim.pod, victim.uid),
                                    .message = std::string(admission::kPreemptedMessage) + " " + pod.key().text(),
                                    .reasons = std::move(reasons),
                                    .candidates = victim.candidates,
                                    .candidates_total = victim.candidates_total,
                                    .cost = {}},
                       .eviction = {}});
  }
}

void AdmissionQueue::begin_preemption(const api::Pod& pod, const admission::Answer& answer, Now now) {
  const std::vector<const api::Pod*> active = workers_.active();
  Duration patience{};
  Preemption& preemption = preemption_.emplace(Preemption{});
  for (const admission::Victim& victim : answer.victims) {
    const auto found = std::ranges::find(active, victim.uid, [](const api::Pod* each) { return each->metadata.uid; });
    if (found == active.end()) continue;
    preemption.victims.push_back({victim.uid, victim.pod});
    patience = std::max(patience, patience_for(**found));
  }
  preemption.deadline = context_.api.at(now.mono + patience, [this](Now later) {
    context_.log.warning("victims of preemption are still ending",
                         {{"victims", static_cast<std::int64_t>(preemption_->victims.size())}});
    end_preemption(later);
    ask(later);
  });
  for (const admission::Victim& victim : answer.victims) {
    if (metrics_ != nullptr) {
      metrics_
          ->counter("kubelet_preemptions", "Cumulative number of pod preemptions by preemption resource",
                    {{"preemption_signal", answer.preemption_signal}})
          .add();
    }
    context_.log.warning("preempting pod to free up resources", {{"pod", victim.pod.text()},
                                                                 {"pod_uid", victim.uid},
                                                                 {"insufficient_resources", answer.preemption_signal},
                                                                 {"for_pod", pod.key().text()},
                                                                 {"reasons", policy::render(answer.reasons)}});
    workers_.preempt(victim, now);
  }
  std::erase_if(preemption.victims, [&](const Preempted& each) { return workers_.is_finished(each.uid); });
}

void AdmissionQueue::on_finished(const std::string& uid, Now now) {
  if (!preemption_) return;
  std::vector<Preempted>& victims = preemption_->victims;
  const auto gone = std::ranges::find(victims, uid, &Preempted::uid);
  if (gone == victims.end()) return;
  context_.log.info("pod evicted successfully", {{"pod", gone->pod.text()}, {"pod_uid", uid}});
  victims.erase(gone);
  if (!victims.empty()) return;
  end_preemption(now);
  ask(now);
}

void AdmissionQueue::end_preemption(Now now) {
  const Preemption ended = *std::exchange(preemption_, std::nullopt);
  context_.api.cancel(ended.deadline);
  if (ended.newcomer && workers_.find_waiting(*ended.newcomer)) workers_.begin(*ended.newcomer, now);
}

}  // namespace spillway::agent
