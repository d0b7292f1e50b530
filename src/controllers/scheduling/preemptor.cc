#include "controllers/scheduling/preemptor.h"

#include "api/object/owner_text.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/paths.h"

#include <utility>

namespace spillway::controllers {

namespace {

using scheduling::PreemptionWrite;

lifecycle::Act deletion_of(const api::Pod& victim) {
  return {lifecycle::ActKind::kDeletePod, {}, api::controller_text(victim.metadata)};
}

}  // namespace

Preemptor::Preemptor(client::ApiClient& client, const telemetry::Log& log, telemetry::Registry& metrics,
                     lifecycle::BrakeConfig brakes, Hooks hooks)
    : client_(client),
      log_(log),
      gate_(std::move(brakes), log, metrics),
      hooks_(std::move(hooks)),
      attempts_(
          metrics.counter("scheduler_preemption_attempts_total", "Total preemption attempts in the cluster till now")),
      victims_(metrics.histogram("scheduler_preemption_victims", "Number of selected preemption victims",
                                 {1, 2, 4, 8, 16, 32, 64})) {}

std::optional<lifecycle::Brakes::Answer> Preemptor::find_brake(const Plan& plan, Now now) {
  gate_.brakes().on_clock(now, {});  // owners whose windows are over are forgotten
  // All victims or none: a limit that only some of them fit into is not used up.
  lifecycle::Brakes trial = gate_.brakes();
  for (const scheduling::PodPtr& victim : plan.choice.victims) {
    lifecycle::Brakes::Answer answer = trial.ask(deletion_of(*victim), now);
    if (answer.held) return answer;
  }
  return std::nullopt;
}

void Preemptor::record_brake(const api::Pod& pod, const std::optional<lifecycle::Brakes::Answer>& held, Now now) {
  const std::string subject = "pod/" + pod.key().text();
  if (!held) return gate_.release(subject);
  gate_.hold(lifecycle::ActKind::kDeletePod, subject, *held->held, held->ask_again, now);
}

void Preemptor::begin(Plan plan, const api::Json& condition, Now) {
  victims_.observe(static_cast<double>(plan.choice.victims.size()));
  for (const policy::Candidate& victim : scheduling::victims_of(*plan.pod, plan.choice)) {
    log_.info("preempting pod", {{"pod", victim.subject.text()},
                                 {"for_pod", plan.pod->key().text()},
                                 {"reason", policy::render(victim.reason)}});
  }
  const api::Json patch = api::Json::object(
      {{"metadata", api::Json::object({{"uid", plan.pod->metadata.uid}})},
       {"status",
        api::Json::object({{"nominatedNodeName", plan.choice.node}, {"conditions", api::Json::array({condition})}})}});
  const std::string path = pod_path(*plan.pod, "status");
  auto act = std::make_shared<Act>();
  act->plan = std::move(plan);
  acts_[act->plan.pod->metadata.uid] = act;
  client_.patch(path, client::PatchType::kStrategicMerge, patch,
                [this, act](const Result<api::Json>& outcome, Now then) { on_promised(act, outcome, then); });
}

void Preemptor::on_promised(const ActPtr& act, const Result<api::Json>& outcome, Now now) {
  const Plan& plan = act->plan;
  const auto current = acts_.find(plan.pod->metadata.uid);
  if (current == acts_.end() || current->second != act) return;  // the pod was deleted
  if (!outcome) {
    log_.warning("a pod was not promised a node", {{"pod", plan.pod->key().text()}, {"error", outcome.error().text()}});
    end(plan.pod->metadata.uid);
    return hooks_.on_withdrawn(plan, now);
  }
  if (hooks_.still_holds(plan)) return carry_out(act, now);
  log_.info("preemption not needed as decided", {{"pod", plan.pod->key().text()}, {"node", plan.choice.node}});
  withdraw(act, now);
}

void Preemptor::carry_out(const ActPtr& act, Now now) {
  if (const auto held = find_brake(act->plan, now)) {
    record_brake(*act->plan.pod, held, now);
    return withdraw(act, now);
  }
  for (const scheduling::PodPtr& victim : act->plan.choice.victims) {
    gate_.ask(deletion_of(*victim), "pod/" + victim->key().text(), now);
  }
  for (const scheduling::PodPtr& victim : act->plan.choice.victims) {
    if (!victim->metadata.deletion_timestamp) act->unseen.insert(victim->metadata.uid);
  }
  // The writes to one pod are sent in order, those to different pods in parallel.
  const std::vector<PreemptionWrite>& writes = act->plan.writes;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const bool is_first = i == 0 || writes[i - 1].pod != writes[i].pod;
    if (!is_first) continue;
    ++act->unanswered;
    write(act, i, now);
  }
}

void Preemptor::write(const ActPtr& act, std::size_t index, Now now) {
  const PreemptionWrite& what = act->plan.writes[index];
  auto done = [this, act, index](const Result<api::Json>& outcome, Now then) { on_written(act, index, outcome, then); };
  if (what.kind == PreemptionWrite::Kind::kDelete) {
    client_.remove(pod_path(*what.pod), delete_options(*what.pod), std::move(done));
  } else {
    client_.patch(pod_path(*what.pod, "status"), client::PatchType::kStrategicMerge,
                  scheduling::status_patch(what, act->plan.pod->spec.scheduler_name, now.wall), std::move(done));
  }
}

void Preemptor::on_written(const ActPtr& act, std::size_t index, const Result<api::Json>& outcome, Now now) {
  const PreemptionWrite& what = act->plan.writes[index];
  const std::string& uid = what.pod->metadata.uid;
  if (!outcome && outcome.error().code == ErrorCode::kNotFound) {
    act->unseen.erase(uid);
    return on_answered(act, now);
  }
  if (!outcome) {
    log_.warning(
        "a preemption was refused",
        {{"pod", what.pod->key().text()}, {"for_pod", act->plan.pod->key().text()}, {"error", outcome.error().text()}});
    act->unseen.erase(uid);
    // A failed write of kClearNomination is harmless: a pod that keeps its nomination does not take the room.
    act->failed = act->failed || what.kind != PreemptionWrite::Kind::kClearNomination;
    return on_answered(act, now);
  }
  const bool is_last = index + 1 == act->plan.writes.size() || act->plan.writes[index + 1].pod != what.pod;
  const auto current = acts_.find(act->plan.pod->metadata.uid);
  if (current == acts_.end() || current->second != act) return;  // the preemptor no longer needs the room
  if (!is_last) return write(act, index + 1, now);
  if (what.kind == PreemptionWrite::Kind::kDelete) {
    hooks_.events_of(*act->plan.pod)
        .record(client::reference_to(*what.pod), client::EventType::kNormal, "Preempted",
                scheduling::preempted_text(*act->plan.pod, act->plan.choice.node), now);
  }
  on_answered(act, now);
}

void Preemptor::on_answered(const ActPtr& act, Now now) {
  if (--act->unanswered > 0) return;
  const std::string uid = act->plan.pod->metadata.uid;
  const auto current = acts_.find(uid);
  if (current == acts_.end() || current->second != act) return;
  if (act->failed) return withdraw(act, now);
  if (act->unseen.empty()) return end(uid);
  client_.at(now.mono + kSightMax, [this, act, uid](Now) {
    const auto found = acts_.find(uid);
    if (found != acts_.end() && found->second == act) end(uid);
  });
}

void Preemptor::withdraw(const ActPtr& act, Now now) {
  const Plan& plan = act->plan;
  client_.patch(pod_path(*plan.pod, "status"), client::PatchType::kStrategicMerge,
                scheduling::status_patch({PreemptionWrite::Kind::kClearNomination, plan.pod},
                                         plan.pod->spec.scheduler_name, now.wall),
                {});
  end(plan.pod->metadata.uid);
  hooks_.on_withdrawn(plan, now);
}

void Preemptor::on_pod(const scheduling::PodPtr& before, const scheduling::PodPtr& after) {
  if (!before) return;
  const std::string& uid = before->metadata.uid;
  const bool is_gone = !after || after->metadata.uid != uid;
  if (!gate_.held().empty() && (is_gone || !after->spec.node_name.empty())) {
    gate_.release("pod/" + before->key().text());
  }
  if (acts_.empty()) return;
  if (is_gone || !after->spec.node_name.empty()) acts_.erase(uid);  // the pod's open writes are abandoned
  if (!is_gone && !after->metadata.deletion_timestamp) return;
  std::erase_if(acts_, [&uid](const auto& entry) {
    Act& act = *entry.second;
    return act.unseen.erase(uid) > 0 && act.unseen.empty() && act.unanswered == 0;
  });
}

}  // namespace spillway::controllers
