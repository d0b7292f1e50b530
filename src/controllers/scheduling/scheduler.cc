#include "controllers/scheduling/scheduler.h"

#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "controllers/shared/paths.h"
#include "policy/scheduling/gates.h"
#include "policy/storage/claim_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

using scheduling::ClusterChange;

client::ObjectKey key_of(const api::Pod& pod) {
  return client::key_of(pod.metadata);
}

/// All plug-ins whose verdicts this scheduler computes itself.
scheduling::FilterSet all_plugins() {
  scheduling::FilterSet all;
  for (const scheduling::Filter filter : scheduling::kFilters) {
    if (filter != scheduling::Filter::kExtender) all.insert(filter);
  }
  return all;
}

std::vector<std::string> names_of(const std::vector<scheduling::Profile>& profiles) {
  std::vector<std::string> names;
  for (const scheduling::Profile& profile : profiles) names.push_back(profile.scheduler);
  return names;
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
      storage_(client_),
      attachments_(client_, [this](std::string_view event) { try_claimants_again(event); }),
      placer_(options_.profiles),
      feed_(client_, placer_.surroundings(), [this](const scheduling::ClusterChange& change) { try_again(change); }),
      queue_(options_.backoff),
      search_(rng.fork("preemption")),
      preemptor_(
          client_, log_, metrics, options_.brakes,
          {.events_of = [this](const api::Pod& pod) -> client::EventRecorder& { return events_of(pod); },
           .still_holds = [this](const Preemptor::Plan& plan) { return preemption_holds(plan); },
           .on_withdrawn = [this](const Preemptor::Plan& plan, Now now) { on_preemption_withdrawn(plan, now); }}),
      scheduler_metrics_(metrics, names_of(options_.profiles)),
      timings_(metrics, options_.stopwatch),
      desk_(client_, log_, metrics, options_.extenders) {
  for (const scheduling::Profile& profile : options_.profiles) {
    const std::string stream = options_.profiles.size() == 1 ? "events" : "events of " + profile.scheduler;
    events_.try_emplace(profile.scheduler, client_, rng.fork(stream), profile.scheduler);
  }
  nodes_.cache().listen({[this](const auto& before, const auto& after, Now now) {
    on_node(before, after);
    if (!after) look_at_waits(now);
  }});
  pods_.cache().listen({[this](const auto& before, const auto& after, Now now) { on_pod(before, after, now); }});
  storage_.claims().listen({[this](const auto& before, const auto& after, Now now) { on_claim(before, after, now); }});
  storage_.volumes().listen(
      {[this](const auto& before, const auto& after, Now now) { on_volume(before, after, now); }});
  storage_.classes().listen({[this](const auto& before, const auto& after, Now) { on_class(before, after); }});
  if (!options_.respect_budgets) return;
  budgets_.cache().listen({[this](const auto& before, const auto& after, Now) { on_budget(before, after); }});
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

void Scheduler::note_promise(const PodPtr& before, const PodPtr& after) {
  const auto promised = [](const PodPtr& pod) {
    return pod && pod->spec.node_name.empty() ? pod->status.nominated_node_name : std::string();
  };
  if (!promised(after).empty() && !assumed_.contains(after->metadata.uid)) {
    promise_node(after->status.nominated_node_name, after);
  } else if (before && placer_.surroundings().has_promises()) {
    const bool is_gone = !after || after->metadata.uid != before->metadata.uid || !after->spec.node_name.empty();
    // A promise of our own is counted before the status shows it.
    if (is_gone || !promised(before).empty())
      promise_node({}, before, is_gone && after ? after->spec.node_name : std::string());
  }
  note_labels_of_promised(before, after);
}

void Scheduler::note_labels_of_promised(const PodPtr& before, const PodPtr& after) {
  scheduling::Surroundings& around = placer_.surroundings();
  if (!before || !after || !around.has_promises() || before->metadata.uid != after->metadata.uid ||
      before->metadata.labels == after->metadata.labels) {
    return;
  }
  const std::string node = around.nominate({}, after);
  if (node.empty()) return;
  around.nominate(node, after);  // the present one, whichever scheduler promised it
  try_again(ClusterChange::pod_changed(*before, *after, nodes_.cache().find(node)));
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
  const EventTiming timing(timings_, event_of(before, after));
  const api::Pod& pod = after ? *after : *before;
  const client::ObjectKey key = key_of(pod);
  preemptor_.on_pod(before, after);
  if (before) {
    const std::string was_on = node_of(*before);
    if (!after || before->metadata.uid != after->metadata.uid) assumed_.erase(before->metadata.uid);
    const bool leaves = !after || before->metadata.uid != after->metadata.uid || node_of(*after) != was_on;
    if (!was_on.empty() && leaves) {
      pods_on_nodes_ -= pods_by_node_[was_on].erase(key);
      recount(was_on);
      if (!refused_.empty() || !rounds_.empty()) {
        try_again(ClusterChange::pod_removed(*before, nodes_.cache().find(was_on)));
      }
    }
  }
  if (after && !after->spec.node_name.empty()) end_wait(after->metadata.uid);  // bound by any scheduler
  if (before && (!after || before->metadata.uid != after->metadata.uid)) {
    end_wait(before->metadata.uid);
    attempts_.erase(before->metadata.uid);
    rounds_.erase(before->metadata.uid);
    victim_rounds_.erase(before->metadata.uid);
  }
  note_promise(before, after);
  const bool is_another = before && after && before->metadata.uid != after->metadata.uid;
  if (!after || is_another || !after->spec.node_name.empty()) {
    queue_.erase(key);
    forget_refusal(key);
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
    const bool same_look = same_pod && before->metadata.labels == after->metadata.labels &&
                           before->metadata.deletion_timestamp == after->metadata.deletion_timestamp;
    if (!same_look || before->spec.containers != after->spec.containers) {
      recount(now_on);
      try_again(same_pod ? ClusterChange::pod_changed(*before, *after, nodes_.cache().find(now_on))
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
  EventTiming timing(timings_, !before ? "NodeAdd" : after ? "" : "NodeDelete");
  if (after) {
    placer_.set_node(after);
    if (!before) recount(after->metadata.name);
  } else {
    placer_.erase(before->metadata.name);
  }
  if (refused_.empty() && rounds_.empty()) return;
  const auto change = ClusterChange::of_node(before, after);
  if (!change) return;
  timing.name(change->label());
  try_again(*change);
}

void Scheduler::recount(const std::string& node) {
  const auto pods = pods_by_node_.find(node);
  if (pods != pods_by_node_.end() && pods->second.empty()) pods_by_node_.erase(pods);
  const std::vector<PodPtr> there = pods_on(node);
  std::vector<const api::Pod*> pointers;
  for (const PodPtr& pod : there) pointers.push_back(pod.get());
  placer_.set_pods(node, pointers);
}

void Scheduler::forget_refusal(const client::ObjectKey& key) {
  refused_.erase(key);
  claimants_.erase(key);
  related_.erase(key);
  asking_.erase(key);
}

const scheduling::PendingPod& Scheduler::pending_of(const client::ObjectKey& key, const PodPtr& pod) {
  Asking& known = asking_[key];
  if (known.pod != pod) known = {pod, scheduling::make_pending(*pod, placer_.profile_of(*pod))};
  return known.pending;
}

scheduling::HintWatch Scheduler::hint_timing(const ClusterChange& change) {
  if (!options_.stopwatch || !timings_.next_hints_are_sampled()) return {};
  return [this, event = change.label(), last = timings_.read()](scheduling::Filter plugin, bool queues) mutable {
    const std::optional<Instant> now = timings_.read();
    if (now && last) timings_.note_hint(plugin, event, queues, *now - *last);
    last = timings_.read();  // the time of recording does not count for the next hint
  };
}

bool Scheduler::may_let_in(const client::ObjectKey& key, scheduling::FilterSet refused_by,
                           const ClusterChange& change) {
  const PodPtr pod = pods_.cache().find(key);
  if (!pod) return false;
  const scheduling::RefusedPod refused{pending_of(key, pod), refused_by};
  const auto hint = scheduling::hint_for(refused, change, placer_.surroundings(), hint_timing(change));
  if (hint.queue && log_.enabled(telemetry::Level::kDebug)) {
    log_.debug("a change may let in a pod", {{"pod", key},
                                             {"change", change.label()},
                                             {"why", scheduling::to_string(hint.why)},
                                             {"plugin", hint.by ? scheduling::to_string(*hint.by) : "none"}});
  }
  return hint.queue;
}

void Scheduler::try_again(const ClusterChange& change) {
  using State = scheduling::PodQueue::State;
  const auto ask = [&](const client::ObjectKey& key) {
    const auto waiting = queue_.find(key);
    if (!waiting || (waiting->state != State::kRefused && waiting->state != State::kTried)) return;
    // A pod that is being tried may be refused by any plug-in, as its result is not known yet.
    const auto by = waiting->state == State::kTried ? all_plugins() : waiting->refused_by;
    if (may_let_in(key, by, change)) queue_.wake(key, change.label());
  };
  for (const client::ObjectKey& key : keys_of_rounds()) ask(key);
  if (change.kind() == ClusterChange::Kind::kPodAdd) {
    for (const client::ObjectKey& key : related_) ask(key);  // one more pod helps only pods with terms for it
  } else {
    for (const auto& [key, message] : refused_) ask(key);
  }
}

void Scheduler::try_all_again(std::string_view event) {
  for (const auto& [key, message] : refused_) queue_.wake(key, event);
}

void Scheduler::arm_retry() {
  const auto since = queue_.refused_since();
  if (retry_armed_ || !since) return;
  retry_armed_ = true;
  client_.at(*since + options_.unschedulable_retry, [this](Now now) {
    retry_armed_ = false;
    queue_.wake_refused_until(now.mono - options_.unschedulable_retry);
    arm_retry();
  });
}

void Scheduler::promise_node(const std::string& node, const PodPtr& pod, std::string_view counts_on) {
  const std::string before = placer_.surroundings().nominate(node, pod);
  if (before.empty() || before == node || before == counts_on) return;
  try_again(ClusterChange::pod_removed(*pod, nodes_.cache().find(before)));
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
  begin_rounds(now);
  scheduler_metrics_.show({.active = queue_.active() + line_.size() + rounds_.size(),
                           .backoff = queue_.backing_off(),
                           .unschedulable = queue_.refused(),
                           .gated = gated_.size()},
                          {.nodes = placer_.nodes().size(),
                           .pods = pods_on_nodes_,
                           .assumed_pods = assumed_.size(),
                           .bindings = bindings_ + extender_bindings_ + waits_for_volumes_},
                          queue_);
}

void Scheduler::place_pods(Now now) {
  while (bindings_ < options_.bindings_max) {
    const std::optional<client::ObjectKey> next = queue_.pop(now.mono);
    if (!next) break;
    const client::ObjectKey& key = *next;
    const PodPtr pod = pods_.cache().find(key);
    if (!pod || !is_mine(*pod) || !node_of(*pod).empty()) continue;
    if (concerns_extenders(*pod)) {
      line_up(pod);
      continue;
    }
    const scheduling::PodVolumes volumes(*pod, volumes_now());
    if (!volumes.problem().empty()) {
      claimants_.insert(key);
      refuse(pod, scheduling::refuse_everywhere(volumes.problem(), placer_.nodes().size()), {}, now);
      continue;
    }
    const scheduling::VolumeFilter filter = volumes.filter();
    const scheduling::Placement placement = place(*pod, filter);
    if (!placement.node) {
      if (filter) claimants_.insert(key);
      refuse(pod, placement, filter, now);
      continue;
    }
    settle(pod, placement, volumes, now);
  }
  // A pod that waits for a free binding needs no timer: the end of a binding starts it.
  if (bindings_ < options_.bindings_max) backoff_over_.set(client_, queue_.next_due());
}

scheduling::Placement Scheduler::place(const api::Pod& pod, const scheduling::VolumeFilter& volumes) {
  if (!options_.stopwatch) return placer_.place(pod, volumes);
  const Instant begin = options_.stopwatch();
  scheduling::Placement placement = placer_.place(pod, volumes);
  scheduler_metrics_.note_algorithm(options_.stopwatch() - begin);
  return placement;
}

scheduling::VolumeView Scheduler::volumes_now() const {
  return {.storage = storage_.lookup(),
          .nodes = placer_.nodes(),
          .taken = taken_,
          .csi_node = [this](const std::string& node) { return attachments_.csi_node(node); },
          .attachments = [this](const std::string& node) { return attachments_.attached_to(node); }};
}

void Scheduler::settle(const PodPtr& pod, const scheduling::Placement& placement, const scheduling::PodVolumes& volumes,
                       Now now) {
  const std::string& node = *placement.node;
  if (log_.enabled(telemetry::Level::kDebug)) {
    log_.debug("placing pod", {{"pod", key_of(*pod)}, {"node", node}, {"reasons", render_all(placement.reasons)}});
  }
  attempts_.insert_or_assign(pod->metadata.uid,
                             Attempt{queue_.course_of(key_of(*pod)), now.mono, timings_.next_is_sampled()});
  assume(*pod, node);
  ++bindings_;
  if (!volumes.waits_for_claims()) return bind(pod, node, now);
  bind_claims(pod, node, volumes.plan(placer_.nodes().at(node).node->metadata), now);
}

Scheduler::PodPtr Scheduler::still_waiting(const PodPtr& pod) const {
  PodPtr current = pods_.cache().find(key_of(*pod));
  const bool waits =
      current && current->metadata.uid == pod->metadata.uid && is_mine(*current) && node_of(*current).empty();
  return waits ? current : nullptr;
}

void Scheduler::assume(const api::Pod& pod, const std::string& node) {
  assumed_[pod.metadata.uid] = node;
  if (placer_.surroundings().has_promises()) {
    if (const PodPtr known = pods_.cache().find(key_of(pod))) promise_node({}, known, node);
  }
  if (pods_by_node_[node].insert(key_of(pod)).second) {
    ++pods_on_nodes_;
    placer_.add_pod(node, pod);
  } else {
    recount(node);
  }
  try_again(ClusterChange::pod_added(pod));
}

void Scheduler::give_up(const PodPtr& pod, const std::string& node, Now now) {
  const client::ObjectKey key = key_of(*pod);
  if (assumed_.erase(pod->metadata.uid) == 0) return;  // bound or gone meanwhile
  attempts_.erase(pod->metadata.uid);
  pods_on_nodes_ -= pods_by_node_[node].erase(key);
  recount(node);
  queue_.fail(key, now.mono);
  try_again(ClusterChange::pod_removed(*pod, nodes_.cache().find(node)));
}

void Scheduler::bind(const PodPtr& pod, const std::string& node, Now now) {
  if (const auto attempt = attempts_.find(pod->metadata.uid); attempt != attempts_.end()) {
    timings_.note_point(SchedulerTimings::Point::kPreBind, SchedulerTimings::Status::kSuccess, pod->spec.scheduler_name,
                        attempt->second.sampled, now.mono - attempt->second.found);
  }
  const std::vector<std::size_t> binders = desk_.asked_for(scheduling::ExtenderVerb::kBind, *pod);
  if (binders.empty()) return bind_by_api(pod, node, now);
  bind_by_extender(binders.front(), pod, node, now);
}

void Scheduler::bind_by_api(const PodPtr& pod, const std::string& node, Now now) {
  const auto attempt = attempts_.find(pod->metadata.uid);
  const bool sampled = attempt != attempts_.end() && attempt->second.sampled;
  const api::Json binding = api::Json::object(
      {{"apiVersion", "v1"},
       {"kind", "Binding"},
       {"metadata",
        api::Json::object({{"name", pod->metadata.name}, {"namespace", pod->metadata.ns}, {"uid", pod->metadata.uid}})},
       {"target", api::Json::object({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}})}});
  client_.create(pod_path(*pod, "binding"), binding,
                 [this, pod, node, sampled, begin = now.mono](const Result<api::Json>& outcome, Now then) {
                   using Status = SchedulerTimings::Status;
                   timings_.note_point(SchedulerTimings::Point::kBind, outcome ? Status::kSuccess : Status::kError,
                                       pod->spec.scheduler_name, sampled, then.mono - begin);
                   on_bound(pod, node, outcome ? Outcome() : Outcome(outcome.error()), then);
                 });
}

void Scheduler::on_bound(const PodPtr& pod, const std::string& node, const Outcome& outcome, Now now) {
  const client::ObjectKey key = key_of(*pod);
  --bindings_;
  const auto attempt = attempts_.extract(pod->metadata.uid);
  const auto course = attempt ? attempt.mapped().course : std::nullopt;
  if (outcome) {
    forget_refusal(key);
    scheduler_metrics_.count_attempt(pod->spec.scheduler_name, SchedulerMetrics::Result::kScheduled, course, now.mono);
    log_.info("pod bound", {{"pod", key}, {"node", node}});
    events_of(*pod).record(client::reference_to(*pod), client::EventType::kNormal, "Scheduled",
                           fmt::format("Successfully assigned {} to {}", key, node), now);
    return;  // the assumption holds until the cache shows the node
  }
  scheduler_metrics_.count_attempt(pod->spec.scheduler_name, SchedulerMetrics::Result::kError, course, now.mono);
  log_.warning("binding failed", {{"pod", key}, {"node", node}, {"error", outcome.error().text()}});
  give_up(pod, node, now);
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
