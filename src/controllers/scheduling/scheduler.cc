#include "controllers/scheduling/scheduler.h"

#include "controllers/scheduling/scheduler_parts.h"
#include "policy/scheduling/gates.h"
#include "policy/storage/claim_rules.h"
#include "policy/storage/volume_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

using scheduling::ClusterChange;

client::ObjectKey key_of(const api::Pod& pod) {
  return client::key_of(pod.metadata);
}

/// kube-scheduler's names for the events of one kind.
struct EventNames {
  std::string_view add;
  std::string_view update;
  std::string_view remove;

  std::string_view of(bool was_there, bool is_there) const { return !was_there ? add : is_there ? update : remove; }
};

constexpr EventNames kClaimEvents{"PersistentVolumeClaimAdd", "PersistentVolumeClaimUpdate",
                                  "PersistentVolumeClaimDelete"};
constexpr EventNames kVolumeEvents{"PersistentVolumeAdd", "PersistentVolumeUpdate", "PersistentVolumeDelete"};
constexpr EventNames kClassEvents{"StorageClassAdd", "StorageClassUpdate", "StorageClassDelete"};

/// True if the volumes differ in members that decide which claim gets them, or which nodes reach them.
bool is_another(const api::PersistentVolume& before, const api::PersistentVolume& after) {
  return before.claim_ref != after.claim_ref || before.status.phase != after.status.phase ||
         before.required_nodes != after.required_nodes || before.metadata.labels != after.metadata.labels ||
         before.capacity != after.capacity || before.access_modes != after.access_modes ||
         storage::class_of(before) != storage::class_of(after);
}

std::string render_all(const std::vector<policy::Reason>& reasons) {
  std::string text;
  for (const policy::Reason& reason : reasons) {
    if (!text.empty()) text += "; ";
    text += policy::render(reason);
  }
  return text;
}

}  // namespace

Scheduler::Scheduler(Options options, Rng rng, telemetry::Log log, telemetry::Registry& metrics)
    : options_(std::move(options)),
      log_(std::move(log)),
      client_("spillway-scheduler", rng.fork("client")),
      nodes_(client_, client::object_path("v1", "nodes", {})),
      pods_(client_, client::object_path("v1", "pods", {}),
            "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"),
      budgets_(client_, client::object_path("policy/v1", "poddisruptionbudgets", {})),
      queue_(options_.backoff),
      parts_(std::make_unique<Parts>(*this, rng, metrics)) {
  for (const scheduling::Profile& profile : options_.profiles) {
    const std::string stream = options_.profiles.size() == 1 ? "events" : "events of " + profile.scheduler;
    events_.try_emplace(profile.scheduler, client_, rng.fork(stream), profile.scheduler);
  }
  nodes_.cache().listen({[this](const auto& before, const auto& after, Now now) {
    on_node(before, after);
    if (!after) parts_->volume_binding.check_waits(now);
  }});
  pods_.cache().listen({[this](const auto& before, const auto& after, Now now) { on_pod(before, after, now); }});
  parts_->storage.claims().listen(
      {[this](const auto& before, const auto& after, Now now) { on_claim(before, after, now); }});
  parts_->storage.volumes().listen(
      {[this](const auto& before, const auto& after, Now now) { on_volume(before, after, now); }});
  parts_->storage.classes().listen({[this](const auto& before, const auto& after, Now) { on_class(before, after); }});
  if (!options_.respect_budgets) return;
  budgets_.cache().listen(
      {[this](const auto& before, const auto& after, Now) { parts_->preemption.on_budget(before, after); }});
}

Scheduler::~Scheduler() = default;

std::vector<ExtenderCall> Scheduler::take_extender_calls() {
  return parts_->extender_calls.take_calls();
}

std::size_t Scheduler::unschedulable() const {
  return parts_->refused.size();
}

void Scheduler::start(Now now) {
  client_.start(now);
}

void Scheduler::on_api_event(const client::ApiEvent& event, Now now) {
  client_.on_api_event(event, now);
  schedule(now);
}

void Scheduler::on_wakeup(Now now) {
  client_.on_wakeup(now);
  schedule(now);
}

void Scheduler::on_extender_answer(std::uint64_t id, const Result<api::Response>& response, Now now) {
  parts_->extender_calls.on_answer(id, response, now);
  client_.on_wakeup(now);
  schedule(now);
}

bool Scheduler::is_pending(const api::Pod& pod) const {
  return pod.spec.node_name.empty() && events_.contains(pod.spec.scheduler_name) && !pod.metadata.deletion_timestamp &&
         !api::is_terminal(pod);
}

bool Scheduler::is_mine(const api::Pod& pod) const {
  return is_pending(pod) && scheduling::gates_text(pod).empty();
}

client::EventRecorder& Scheduler::events_of(const api::Pod& pod) {
  return events_.find(pod.spec.scheduler_name)->second;
}

std::string Scheduler::node_of(const api::Pod& pod) const {
  if (!pod.spec.node_name.empty()) return pod.spec.node_name;
  const auto assumed = assumed_.find(pod.metadata.uid);
  return assumed == assumed_.end() ? std::string() : assumed->second;
}

void Scheduler::update_promise(const PodPtr& before, const PodPtr& after) {
  const auto promised = [](const PodPtr& pod) {
    return pod && pod->spec.node_name.empty() ? pod->status.nominated_node_name : std::string();
  };
  if (!promised(after).empty() && !assumed_.contains(after->metadata.uid)) {
    promise_node(after->status.nominated_node_name, after);
  } else if (before && parts_->placer.surroundings().has_promises()) {
    const bool is_gone = !after || after->metadata.uid != before->metadata.uid || !after->spec.node_name.empty();
    // A promise of our own is counted before the status shows it.
    if (is_gone || !promised(before).empty())
      promise_node({}, before, is_gone && after ? after->spec.node_name : std::string());
  }
  update_promised_labels(before, after);
}

void Scheduler::update_promised_labels(const PodPtr& before, const PodPtr& after) {
  scheduling::Surroundings& around = parts_->placer.surroundings();
  if (!before || !after || !around.has_promises() || before->metadata.uid != after->metadata.uid ||
      before->metadata.labels == after->metadata.labels) {
    return;
  }
  const std::string node = around.nominate({}, after);
  if (node.empty()) return;
  around.nominate(node, after);  // the present promise, whichever scheduler made it
  parts_->refused.requeue(ClusterChange::pod_changed(*before, *after, nodes_.cache().find(node)));
}

std::string_view Scheduler::event_of(const PodPtr& before, const PodPtr& after) const {
  const bool was_assigned = before && !before->spec.node_name.empty();
  if (after && !after->spec.node_name.empty()) return was_assigned ? "AssignedPodUpdate" : "AssignedPodAdd";
  if (was_assigned) return "AssignedPodDelete";
  if (!events_.contains((after ? after : before)->spec.scheduler_name)) return {};
  if (!before) return "UnschedulablePodAdd";
  return after ? "UnschedulablePodUpdate" : "UnschedulablePodDelete";
}

void Scheduler::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  const EventTiming timing(parts_->timings, event_of(before, after));
  const api::Pod& pod = after ? *after : *before;
  const client::ObjectKey key = key_of(pod);
  parts_->preemption.on_pod(before, after);
  if (before) {
    const std::string was_on = node_of(*before);
    if (!after || before->metadata.uid != after->metadata.uid) assumed_.erase(before->metadata.uid);
    const bool is_removed = !after || before->metadata.uid != after->metadata.uid || node_of(*after) != was_on;
    if (!was_on.empty() && is_removed) {
      pods_on_nodes_ -= pods_by_node_[was_on].erase(key);
      recount(was_on);
      if (!parts_->refused.empty() || !parts_->cycles.empty()) {
        parts_->refused.requeue(ClusterChange::pod_removed(*before, nodes_.cache().find(was_on)));
      }
    }
  }
  const bool is_bound = after && !after->spec.node_name.empty();  // by any scheduler
  if (is_bound) parts_->volume_binding.end(after->metadata.uid);
  if (before && (!after || before->metadata.uid != after->metadata.uid)) {
    parts_->volume_binding.end(before->metadata.uid);
    parts_->bindings.erase(before->metadata.uid);
    parts_->cycles.erase(before->metadata.uid);
    parts_->preemption.erase(before->metadata.uid);
  }
  update_promise(before, after);
  const bool is_another = before && after && before->metadata.uid != after->metadata.uid;
  if (!after || is_another || !after->spec.node_name.empty()) {
    queue_.erase(key);
    parts_->refused.forget(key);
  }
  gated_.erase(key);
  if (!after) return;
  if (is_pending(*after) && !is_mine(*after)) gated_.insert(key);
  if (!after->spec.node_name.empty()) assumed_.erase(after->metadata.uid);
  const std::string now_on = node_of(*after);
  if (!now_on.empty()) {
    const bool counted = !pods_by_node_[now_on].insert(key).second;
    if (!counted) ++pods_on_nodes_;
    const bool same_pod = counted && before && before->metadata.uid == after->metadata.uid;
    const bool scheduled_alike = same_pod && before->metadata.labels == after->metadata.labels &&
                                 before->metadata.deletion_timestamp == after->metadata.deletion_timestamp;
    if (!scheduled_alike || before->spec.containers != after->spec.containers) {
      recount(now_on);
      parts_->refused.requeue(same_pod ? ClusterChange::pod_changed(*before, *after, nodes_.cache().find(now_on))
                                       : ClusterChange::pod_added(*after));
    }
    return;
  }
  const bool same_wish = before && before->metadata.uid == after->metadata.uid && before->spec == after->spec &&
                         before->metadata.labels == after->metadata.labels;
  if (!is_mine(*after)) return queue_.erase(key);
  queue_.enter(*after, now.mono);
  if (!same_wish) queue_.wake(key);
}

void Scheduler::on_node(const std::shared_ptr<const api::Node>& before, const std::shared_ptr<const api::Node>& after) {
  EventTiming timing(parts_->timings, !before ? "NodeAdd" : after ? "" : "NodeDelete");
  if (after) {
    parts_->placer.set_node(after);
    if (!before) recount(after->metadata.name);
  } else {
    parts_->placer.erase(before->metadata.name);
  }
  if (parts_->refused.empty() && parts_->cycles.empty()) return;
  const auto change = ClusterChange::of_node(before, after);
  if (!change) return;
  timing.name(change->label());
  parts_->refused.requeue(*change);
}

void Scheduler::recount(const std::string& node) {
  const auto pods = pods_by_node_.find(node);
  if (pods != pods_by_node_.end() && pods->second.empty()) pods_by_node_.erase(pods);
  const std::vector<PodPtr> there = pods_on(node);
  std::vector<const api::Pod*> pointers;
  for (const PodPtr& pod : there) pointers.push_back(pod.get());
  parts_->placer.set_pods(node, pointers);
}

void Scheduler::promise_node(const std::string& node, const PodPtr& pod, std::string_view counts_on) {
  const std::string before = parts_->placer.surroundings().nominate(node, pod);
  if (before.empty() || before == node || before == counts_on) return;
  parts_->refused.requeue(ClusterChange::pod_removed(*pod, nodes_.cache().find(before)));
}

/// Logs lists that are refused: each is retried for as long as the scheduler runs, and no pod's status shows it.
void Scheduler::report_refused_lists() {
  for (const client::InformerBase* each : client_.informers()) {
    if (!each->refusal()) {
      refused_lists_.erase(each);
    } else if (refused_lists_.insert(each).second) {
      const bool is_needed = each->need() == client::Need::kRequired;
      const std::string_view effect = each->lists() > 0 ? "what was read last stands"
                                      : is_needed       ? "no pod is placed without it"
                                                        : "it counts as empty";
      log_.warning("a list is refused",
                   {{"path", each->path()}, {"effect", effect}, {"error", each->refusal()->text()}});
    }
  }
}

void Scheduler::schedule(Now now) {
  report_refused_lists();
  if (!client_.synced()) return;
  place_pods(now);
  parts_->cycles.begin(options_.extended_max - std::min(options_.extended_max, parts_->bindings.at_extenders()), now);
  parts_->metrics.show(
      {.active = queue_.active() + parts_->cycles.size(),
       .backoff = queue_.backing_off(),
       .unschedulable = queue_.refused(),
       .gated = gated_.size()},
      {.nodes = parts_->placer.nodes().size(),
       .pods = pods_on_nodes_,
       .assumed_pods = assumed_.size(),
       .bindings = parts_->bindings.under_way() + parts_->bindings.at_extenders() + parts_->volume_binding.waiting()},
      queue_);
}

void Scheduler::place_pods(Now now) {
  while (parts_->bindings.under_way() < options_.bindings_max) {
    const std::optional<client::ObjectKey> next = queue_.pop(now.mono);
    if (!next) break;
    const client::ObjectKey& key = *next;
    const PodPtr pod = pods_.cache().find(key);
    if (!pod || !is_mine(*pod) || !node_of(*pod).empty()) continue;
    if (!options_.extenders.empty() && parts_->cycles.concerns(*pod)) {
      parts_->cycles.line_up(pod);
      continue;
    }
    const scheduling::PodVolumes volumes(*pod, volumes_now());
    if (!volumes.problem().empty()) {
      parts_->refused.add_claimant(key);
      refuse(pod, scheduling::refuse_everywhere(volumes.problem(), parts_->placer.nodes().size()), {}, now);
      continue;
    }
    const scheduling::VolumeFilter filter = volumes.filter();
    const scheduling::Placement placement = place(*pod, filter);
    if (!placement.node) {
      if (filter) parts_->refused.add_claimant(key);
      refuse(pod, placement, filter, now);
      continue;
    }
    start_binding(pod, placement, volumes, now);
  }
  // A pod that waits for a free binding needs no timer: the end of a binding starts it.
  if (parts_->bindings.under_way() < options_.bindings_max) backoff_over_.set(client_, queue_.next_due());
}

scheduling::Placement Scheduler::place(const api::Pod& pod, const scheduling::VolumeFilter& volumes) {
  if (!options_.stopwatch) return parts_->placer.place(pod, volumes);
  const Instant begin = options_.stopwatch();
  scheduling::Placement placement = parts_->placer.place(pod, volumes);
  parts_->metrics.record_algorithm(options_.stopwatch() - begin);
  return placement;
}

scheduling::VolumeView Scheduler::volumes_now() const {
  return {.storage = parts_->storage.lookup(),
          .nodes = parts_->placer.nodes(),
          .taken = parts_->volume_binding.taken(),
          .csi_node = [this](const std::string& node) { return parts_->attachments.csi_node(node); },
          .attachments = [this](const std::string& node) { return parts_->attachments.attached_to(node); }};
}

void Scheduler::start_binding(const PodPtr& pod, const scheduling::Placement& placement,
                              const scheduling::PodVolumes& volumes, Now now) {
  const std::string& node = *placement.node;
  if (log_.enabled(telemetry::Level::kDebug)) {
    log_.debug("placing pod", {{"pod", key_of(*pod)}, {"node", node}, {"reasons", render_all(placement.reasons)}});
  }
  parts_->bindings.begin(*pod, queue_.course_of(key_of(*pod)), now);
  assume(*pod, node);
  if (!volumes.waits_for_claims()) return parts_->bindings.bind(pod, node, now);
  parts_->volume_binding.begin(pod, node, volumes.plan(parts_->placer.nodes().at(node).node->metadata), now);
}

Scheduler::PodPtr Scheduler::still_waiting(const PodPtr& pod) const {
  PodPtr current = pods_.cache().find(key_of(*pod));
  const bool waits =
      current && current->metadata.uid == pod->metadata.uid && is_mine(*current) && node_of(*current).empty();
  return waits ? current : nullptr;
}

void Scheduler::refuse(const PodPtr& pod, const scheduling::Placement& placement,
                       const scheduling::VolumeFilter& volumes, Now now) {
  const client::ObjectKey key = pod->key().text();
  queue_.refuse(key, now.mono, placement.refused_by);
  parts_->metrics.count_attempt(pod->spec.scheduler_name, SchedulerMetrics::Result::kUnschedulable,
                                queue_.course_of(key), now.mono);
  const bool sampled = parts_->timings.next_is_sampled();
  const scheduling::FilterSet by = placement.refused_by;
  if (by.contains(scheduling::Filter::kPodTopologySpread) || by.contains(scheduling::Filter::kInterPodAffinity) ||
      by.contains(scheduling::Filter::kExtender)) {
    parts_->refused.add_related(key);
  }
  parts_->refused.arm_retry();
  const std::string& uid = pod->metadata.uid;
  if (parts_->preemption.is_under_way(uid)) {  // the reported reason stays unchanged
    parts_->refused.message_of(key);
    return;
  }
  parts_->preemption.count_attempt();
  const std::optional<Instant> begin = parts_->timings.read();
  const scheduling::Preemption decided = parts_->preemption.decide(*pod, placement, volumes);
  if (const auto took = parts_->timings.since(begin)) {
    using Status = SchedulerTimings::Status;
    parts_->timings.record_point(SchedulerTimings::Point::kPostFilter,
                                 decided.choice() != nullptr ? Status::kSuccess : Status::kUnschedulable,
                                 pod->spec.scheduler_name, sampled, *took);
  }
  if (decided.choice() && parts_->preemption.ask_extenders(pod, placement.message, decided)) return;
  const std::string message = decided.message.empty() ? placement.message : placement.message + " " + decided.message;
  if (parts_->refused.message_of(key) != message) {
    log_.info("pod fits nowhere", {{"pod", key}, {"message", message}, {"reasons", render_all(placement.reasons)}});
  }
  parts_->preemption.conclude(pod, message, decided, false, now);
}

void Scheduler::on_extender_failed(const PodPtr& pod, const Error& error, Now now) {
  const client::ObjectKey key = key_of(*pod);
  parts_->metrics.count_attempt(pod->spec.scheduler_name, SchedulerMetrics::Result::kError, queue_.course_of(key),
                                now.mono);
  parts_->conditions.report(pod, error.text(), std::nullopt, now, "SchedulerError");
  queue_.fail(key, now.mono);
}

void Scheduler::on_claim(const ClaimPtr& before, const ClaimPtr& after, Now now) {
  const api::PersistentVolumeClaim& claim = after ? *after : *before;
  const std::string_view event = kClaimEvents.of(before != nullptr, after != nullptr);
  const EventTiming timing(parts_->timings, event);
  parts_->volume_binding.check_waits(now);
  parts_->refused.requeue_claimants_of(client::key_of(claim.metadata), event);
}

void Scheduler::on_volume(const VolumePtr& before, const VolumePtr& after, Now now) {
  if (before && after && !is_another(*before, *after)) return;
  const std::string_view event = kVolumeEvents.of(before != nullptr, after != nullptr);
  const EventTiming timing(parts_->timings, event);
  parts_->volume_binding.check_waits(now);
  parts_->refused.requeue_claimants(event);
}

void Scheduler::on_class(const ClassPtr& before, const ClassPtr& after) {
  const std::string_view event = kClassEvents.of(before != nullptr, after != nullptr);
  const EventTiming timing(parts_->timings, event);
  parts_->refused.requeue_claimants(event);
}

void Scheduler::assume(const api::Pod& pod, const std::string& node) {
  assumed_[pod.metadata.uid] = node;
  if (parts_->placer.surroundings().has_promises()) {
    if (const PodPtr known = pods_.cache().find(key_of(pod))) promise_node({}, known, node);
  }
  if (pods_by_node_[node].insert(key_of(pod)).second) {
    ++pods_on_nodes_;
    parts_->placer.add_pod(node, pod);
  } else {
    recount(node);
  }
  parts_->refused.requeue(ClusterChange::pod_added(pod));
}

void Scheduler::give_up(const PodPtr& pod, const std::string& node, Now now) {
  const client::ObjectKey key = key_of(*pod);
  if (assumed_.erase(pod->metadata.uid) == 0) return;  // bound or deleted meanwhile
  parts_->bindings.erase(pod->metadata.uid);
  pods_on_nodes_ -= pods_by_node_[node].erase(key);
  recount(node);
  queue_.fail(key, now.mono);
  parts_->refused.requeue(ClusterChange::pod_removed(*pod, nodes_.cache().find(node)));
}

std::vector<Scheduler::PodPtr> Scheduler::pods_on(const std::string& node) const {
  std::vector<PodPtr> pods;
  const auto bound = pods_by_node_.find(node);
  if (bound == pods_by_node_.end()) return pods;
  for (const client::ObjectKey& key : bound->second) {
    if (PodPtr pod = pods_.cache().find(key)) pods.push_back(std::move(pod));
  }
  return pods;
}

}  // namespace spillway::controllers
