#include "agent/resizes/pod_resizes.h"

#include "agent/containers/pod_resources.h"
#include "api/object/pod_requests.h"
#include "base/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace spillway::agent {
namespace {

using containers::GroupAmounts;
using containers::GroupChange;
using containers::PodResources;

constexpr Duration kRetryPending = minutes(3);        // longest wait until a pending resize is tried again
constexpr Duration kRetryFailedResize = seconds(10);  // a limit that could not be set, or was in use

GroupAmounts amounts_of(const api::PodSpec& spec, const api::Container& container) {
  const ContainerLimits limits = limits_of(spec, container);
  return {.memory_limit = limits.memory_limit,
          .cpu_limit_milli = limits.cpu_limit_milli,
          .cpu_request_milli = limits.cpu_request_milli};
}

/// The amounts of the pod's cgroup.
GroupAmounts pod_amounts(const api::Pod& pod) {
  const CreatePod made = create_pod_command(pod);
  return {.memory_limit = made.memory_limit,
          .cpu_limit_milli = made.cpu_limit_milli,
          .cpu_request_milli = made.cpu_request_milli};
}

/// Amounts above all others: a change to anything else shrinks them.
constexpr GroupAmounts kUnknownAmounts{
    .memory_limit = {}, .cpu_limit_milli = {}, .cpu_request_milli = std::numeric_limits<std::int64_t>::max()};

template <typename Amount>
std::optional<Amount> larger_limit(const std::optional<Amount>& a, const std::optional<Amount>& b) {
  return a && b ? std::optional(std::max(*a, *b)) : std::nullopt;
}

GroupAmounts larger_of(const GroupAmounts& a, const GroupAmounts& b) {
  return {.memory_limit = larger_limit(a.memory_limit, b.memory_limit),
          .cpu_limit_milli = larger_limit(a.cpu_limit_milli, b.cpu_limit_milli),
          .cpu_request_milli = std::max(a.cpu_request_milli, b.cpu_request_milli)};
}

api::Pod with_resources(const api::Pod& pod, const PodResources& resources) {
  api::Pod made = pod;
  containers::set_resources(made.spec, resources);
  return made;
}

/// True if the pod counts for less than before, by its allocation and by what its status says is in force.
bool counts_less(const api::Pod& before, const api::Pod& now) {
  const api::ResourceList old = api::effective_requests(before, {});
  const api::ResourceList present = api::effective_requests(now, {});
  return std::ranges::any_of(old, [&](const auto& each) {
    const auto found = present.find(each.first);
    return found == present.end() || found->second < each.second;
  });
}

bool has_process(const ContainerRun& run) {
  return run.state == ContainerRun::State::kRunning || run.state == ContainerRun::State::kStarting;
}

}  // namespace

PodResizes::PodResizes(AgentContext& context, std::function<admission::NodeSituation()> situation, Pods& pods,
                       ResourceBooks books, telemetry::Registry* metrics)
    : context_(context), situation_(std::move(situation)), pods_(pods), books_(std::move(books)), metrics_(metrics) {
  count_present();
}

PodResizes::Entry* PodResizes::find(const std::string& uid) {
  const auto found = entries_.find(uid);
  return found == entries_.end() ? nullptr : &found->second;
}

std::shared_ptr<const api::Pod> PodResizes::with_allocation(const std::shared_ptr<const api::Pod>& pod) const {
  const PodResources* allocated = books_.allocated.find(pod->metadata.uid);
  if (allocated == nullptr || containers::has_resources(pod->spec, *allocated)) return pod;
  return std::make_shared<const api::Pod>(with_resources(*pod, *allocated));
}

void PodResizes::begin(const std::shared_ptr<const api::Pod>& pod, Existed existed, Now now) {
  const std::string& uid = pod->metadata.uid;
  Entry& entry = entries_[uid];
  entry.wanted = pod;
  const bool saved = books_.allocated.find(uid) != nullptr;
  if (!saved) books_.allocated.set(uid, containers::resources_of(pod->spec));
  const PodResources& allocated = *books_.allocated.find(uid);
  if (existed == Existed::kNo) books_.actuated.set(uid, allocated);
  if (books_.actuated.find(uid) == nullptr) {
    // A saved pod lacks this entry while a resize is under way: then nothing is certain.
    books_.actuated.set(uid, saved ? PodResources() : allocated);
  }
  if (existed == Existed::kYes) {
    const auto reported = [&](std::string_view type) {
      const api::PodCondition* found = api::find_condition(pod->status.conditions, type);
      return found == nullptr ? std::nullopt : std::optional(*found);
    };
    entry.pending = reported(containers::kPodResizePending);
    entry.in_progress = reported(containers::kPodResizeInProgress);
    if (entry.in_progress) entry.began = now.mono;
  }
  entry.is_in_force = !entry.in_progress && allocated == *books_.actuated.find(uid);
  if (entry.is_in_force) entry.pod_in_force = pod_amounts(*with_allocation(pod));
  if (entry.pending || entry.in_progress) count_present();
}

GroupAmounts PodResizes::amounts_for(const api::Pod& allocated) const {
  const PodResources* actuated = books_.actuated.find(allocated.metadata.uid);
  const GroupAmounts wanted = pod_amounts(allocated);
  if (actuated == nullptr) return wanted;
  if (actuated->containers.empty()) return {.cpu_request_milli = wanted.cpu_request_milli};
  return larger_of(wanted, pod_amounts(with_resources(allocated, *actuated)));
}

void PodResizes::observe(const std::shared_ptr<const api::Pod>& pod, Now now) {
  const std::string uid = pod->metadata.uid;
  Entry* entry = find(uid);
  const PodResources* allocated = books_.allocated.find(uid);
  if (entry == nullptr || allocated == nullptr) return;
  const std::shared_ptr<const api::Pod> before = std::exchange(entry->wanted, pod);
  if (waiting_ > 0 && before != pod && counts_less(*with_allocation(before), *with_allocation(pod)))
    retry(ResizeTrigger::kPodResized, now);
  if (containers::has_resources(pod->spec, *allocated)) {
    if (std::exchange(entry->waits, false)) --waiting_;
    if (!entry->pending) return;
    entry->pending.reset();
    count_present();
    return pods_.on_resize(uid, now);
  }
  const PodResources asked = containers::resources_of(pod->spec);
  const bool same = before != pod && containers::resources_of(before->spec) == asked;
  if (same && (entry->waits || entry->pending)) return;
  if (!same) metrics_.count_request(*allocated, asked);
  if (!std::exchange(entry->waits, true)) ++waiting_;
  retry(ResizeTrigger::kPodUpdated, now);
}

void PodResizes::retry(ResizeTrigger trigger, Now now) {
  if (waiting_ == 0 || pods_.is_preempting() || std::exchange(retrying_, true)) return;
  std::vector<containers::ResizeRank> ranks;
  for (const auto& [uid, entry] : entries_) {
    if (!entry.waits) continue;
    const api::Pod& pod = *entry.wanted;
    ranks.push_back({.raises_requests = containers::raises_requests(with_allocation(entry.wanted)->spec, pod.spec),
                     .priority = api::priority_of(pod),
                     .guaranteed = api::qos_of(pod) == api::QosClass::kGuaranteed,
                     .pending_since = entry.pending ? entry.pending->last_transition_time : std::nullopt,
                     .pod = pod.key(),
                     .uid = uid});
  }
  std::ranges::sort(ranks);
  for (const containers::ResizeRank& rank : ranks) {
    Entry* entry = find(rank.uid);
    if (entry != nullptr && entry->waits) try_one(*entry, trigger, now);
  }
  retrying_ = false;
  set_timer(now);
}

void PodResizes::set_timer(Now now) {
  if (timer_) context_.api.cancel(*std::exchange(timer_, std::nullopt));
  if (waiting_ == 0) return;
  timer_ = context_.api.at(now.mono + kRetryPending, [this](Now later) {
    timer_.reset();
    retry(ResizeTrigger::kPeriodic, later);
    if (!timer_) set_timer(later);
  });
}

void PodResizes::try_one(Entry& entry, ResizeTrigger trigger, Now now) {
  const std::vector<const api::Pod*> active = pods_.active();
  const std::string& uid = entry.wanted->metadata.uid;
  const bool is_active = std::ranges::any_of(active, [&](const api::Pod* each) { return each->metadata.uid == uid; });
  const auto& managers = context_.options.managers;
  const admission::ResizeSettings settings{.swaps = context_.options.containers_swap,
                                           .static_cpus = managers.cpus.policy == "static",
                                           .static_memory = managers.memory.policy == "Static"};
  if (!is_active) {
    entry.waits = false;
    --waiting_;
    return;
  }
  const admission::Answer answer =
      admission::admit_resize(situation_(), settings, *entry.wanted, *with_allocation(entry.wanted), active);
  answer.refusal ? refuse(entry, answer, now) : allocate(entry, trigger, now);
}

void PodResizes::refuse(Entry& entry, const admission::Answer& answer, Now now) {
  const api::Pod& pod = *entry.wanted;
  const admission::Refusal& refusal = *answer.refusal;
  const bool infeasible = refusal.reason == admission::kInfeasible;
  const std::optional<api::PodCondition> before = entry.pending;
  entry.pending = containers::resize_condition(containers::kPodResizePending, refusal.reason, refusal.message,
                                               pod.metadata.generation, before, now.wall);
  if (infeasible) {
    entry.waits = false;
    --waiting_;
    metrics_.count_infeasible(admission::infeasible_detail(answer));
  }
  const bool is_new = !before || before->reason != entry.pending->reason ||
                      before->observed_generation != entry.pending->observed_generation;
  if (is_new) {
    context_.log.info("resize is not possible now", {{"pod", pod.key().text()},
                                                     {"reason", refusal.reason},
                                                     {"message", refusal.message},
                                                     {"reasons", policy::render(answer.reasons)}});
    record(pod, client::EventType::kWarning, infeasible ? "ResizeInfeasible" : "ResizeDeferred",
           fmt::format("Pod resize {}: {}", refusal.reason,
                       containers::resize_details(pod.spec, pod.metadata.generation, refusal.message)),
           now);
  }
  count_present();
  if (is_new || before->message != refusal.message) pods_.on_resize(pod.metadata.uid, now);
}

void PodResizes::allocate(Entry& entry, ResizeTrigger trigger, Now now) {
  const std::shared_ptr<const api::Pod> pod = entry.wanted;
  if (entry.pending && entry.pending->reason == admission::kDeferred) metrics_.count_accepted(trigger);
  books_.allocated.set(pod->metadata.uid, containers::resources_of(pod->spec));
  entry.waits = false;
  --waiting_;
  entry.pending.reset();
  entry.in_progress =
      containers::resize_condition(containers::kPodResizeInProgress, {}, {}, pod->metadata.generation, {}, now.wall);
  entry.is_in_force = false;
  entry.not_before.reset();
  entry.began = now.mono;
  context_.log.info("resize is allocated", {{"pod", pod->key().text()}, {"pod_uid", pod->metadata.uid}});
  record(*pod, client::EventType::kNormal, "ResizeStarted",
         "Pod resize started: " + containers::resize_details(pod->spec, pod->metadata.generation, {}), now);
  count_present();
  pods_.on_resize(pod->metadata.uid, now);
}

void PodResizes::on_starting(const std::string& uid, const api::Container& container) {
  const PodResources* actuated = books_.actuated.find(uid);
  if (actuated == nullptr || !actuated->containers.contains(container.name)) return;
  PodResources changed = *actuated;
  changed.containers[container.name] = container.resources;
  books_.actuated.set(uid, std::move(changed));
}

void PodResizes::advance(const PodWorker& worker, Now now) {
  Entry* entry = find(worker.uid());
  if (entry == nullptr || entry->is_in_force || entry->under_way) return;
  SPILLWAY_CHECK(books_.allocated.find(worker.uid()) != nullptr && books_.actuated.find(worker.uid()) != nullptr);
  const PodResources& allocated = *books_.allocated.find(worker.uid());
  PodResources in_force = *books_.actuated.find(worker.uid());
  bool starts = false;
  for (const auto* list : {&worker.init_containers, &worker.containers}) {
    for (const ContainerRun& run : *list) {
      const auto wanted = allocated.containers.find(run.spec->name);
      if (wanted == allocated.containers.end()) continue;
      // a container without process gets the new resources at its next start
      if (!has_process(run)) in_force.containers[run.spec->name] = wanted->second;
      starts = starts || run.state == ContainerRun::State::kStarting;
    }
  }
  books_.actuated.set(worker.uid(), in_force);
  if (entry->not_before && now.mono < *entry->not_before) return;
  const GroupAmounts pod = pod_amounts(*worker.pod);
  if (in_force == allocated && entry->pod_in_force == pod) return finish(*entry, now);
  if (!starts) send_steps(worker.uid(), *entry, worker, now);
}

void PodResizes::send_steps(const std::string& uid, Entry& entry, const PodWorker& worker, Now now) {
  const PodResources& in_force = *books_.actuated.find(uid);
  PodResources present = in_force;
  const api::Pod before = with_resources(*worker.pod, in_force);
  const api::PodSpec& spec = worker.pod->spec;
  std::vector<GroupChange> changes;
  for (const auto* list : {&worker.init_containers, &worker.containers}) {
    for (const ContainerRun& run : *list) {
      if (!has_process(run) || run.stopping) continue;
      const auto& old = list == &worker.containers ? before.spec.containers : before.spec.init_containers;
      const auto was = std::ranges::find(old, run.spec->name, &api::Container::name);
      if (was == old.end()) continue;
      const bool known = in_force.containers.contains(run.spec->name);
      changes.push_back({.container = run.spec->name,
                         .before = known ? amounts_of(before.spec, *was) : kUnknownAmounts,
                         .after = amounts_of(spec, *run.spec)});
      present.containers[run.spec->name] = run.spec->resources;
    }
  }
  GroupChange whole{
      .container = {}, .before = entry.pod_in_force.value_or(kUnknownAmounts), .after = pod_amounts(*worker.pod)};
  present.whole = spec.resources;
  entry.sent = std::move(present);
  entry.pod_sent = whole.after;
  if (containers::resize_steps(whole, changes).empty()) {
    books_.actuated.set(uid, entry.sent);
    entry.pod_in_force = entry.pod_sent;
    if (entry.sent == *books_.allocated.find(uid)) finish(entry, now);
    return;
  }
  books_.actuated.doubt(uid);
  entry.under_way = ++last_id_;
  context_.host_commands.emplace_back(ResizePod{
      .id = last_id_, .uid = uid, .pod = std::move(whole), .containers = std::move(changes), .definition = worker.pod});
}

void PodResizes::on_resized(const PodResized& event, Now now) {
  Entry* entry = find(event.uid);
  if (entry == nullptr || entry->under_way != event.id) return;
  entry->under_way.reset();
  if (!event.problem.empty()) {
    fail(event.uid, *entry, event.problem, now);
  } else {
    books_.actuated.set(event.uid, entry->sent);
    entry->pod_in_force = entry->pod_sent;
    entry->not_before.reset();
    if (entry->in_progress && !entry->in_progress->reason.empty()) {
      entry->in_progress = containers::resize_condition(containers::kPodResizeInProgress, {}, {},
                                                        entry->in_progress->observed_generation, {}, now.wall);
    }
  }
  pods_.on_resize(event.uid, now);
}

void PodResizes::fail(const std::string& uid, Entry& entry, const std::string& problem, Now now) {
  const std::optional<api::PodCondition> before = entry.in_progress;
  const std::int64_t generation = before ? before->observed_generation : entry.wanted->metadata.generation;
  entry.in_progress = containers::resize_condition(containers::kPodResizeInProgress, containers::kResizeError, problem,
                                                   generation, before, now.wall);
  if (before && before->reason == containers::kResizeError)
    entry.in_progress->last_probe_time = before->last_probe_time;
  entry.not_before = now.mono + kRetryFailedResize;
  context_.api.at(*entry.not_before, [this, uid](Now later) {
    Entry* again = find(uid);
    if (again == nullptr || again->is_in_force || !again->not_before || later.mono < *again->not_before) return;
    pods_.on_resize(uid, later);
  });
  if (before && before->reason == containers::kResizeError && before->message == problem) return;
  const api::Pod& pod = *with_allocation(entry.wanted);
  context_.log.warning("resize has failed", {{"pod", pod.key().text()}, {"error", problem}});
  record(pod, client::EventType::kWarning, "ResizeError",
         "Pod resize error: " + containers::resize_details(pod.spec, generation, problem), now);
  if (entry.began) metrics_.record_end(now.mono - *entry.began, false);
}

void PodResizes::finish(Entry& entry, Now now) {
  entry.is_in_force = true;
  books_.actuated.trust(entry.wanted->metadata.uid);
  if (!entry.in_progress) return;
  const std::int64_t generation = entry.in_progress->observed_generation;
  entry.in_progress.reset();
  const std::shared_ptr<const api::Pod> pod = with_allocation(entry.wanted);
  context_.log.info("resize is in force", {{"pod", pod->key().text()}, {"pod_uid", pod->metadata.uid}});
  record(*pod, client::EventType::kNormal, "ResizeCompleted",
         "Pod resize completed: " + containers::resize_details(pod->spec, generation, {}), now);
  if (entry.began) metrics_.record_end(now.mono - *std::exchange(entry.began, std::nullopt), true);
  count_present();
}

void PodResizes::forget(const std::string& uid) {
  const auto found = entries_.find(uid);
  books_.allocated.erase(uid);
  books_.actuated.erase(uid);
  if (found == entries_.end()) return;
  if (found->second.waits) --waiting_;
  const bool counted = found->second.pending || found->second.in_progress;
  entries_.erase(found);
  if (counted) count_present();
}

void PodResizes::keep_only(const std::set<std::string, std::less<>>& uids) {
  books_.allocated.keep_only(uids);
  books_.actuated.keep_only(uids);
}

ResizeReport PodResizes::report_of(const std::string& uid) const {
  ResizeReport report{.conditions = {}, .allocated = books_.allocated.find(uid), .actuated = books_.actuated.find(uid)};
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return report;
  for (const auto& condition : {found->second.pending, found->second.in_progress}) {
    if (condition) report.conditions.push_back(*condition);
  }
  return report;
}

std::vector<HostCommand> PodResizes::take_saves() {
  std::vector<HostCommand> saves;
  for (ResourceBook* book : {&books_.allocated, &books_.actuated}) {
    if (auto save = book->take_save()) saves.emplace_back(*std::move(save));
  }
  return saves;
}

void PodResizes::count_present() const {
  ResizesNow now;
  for (const auto& [uid, entry] : entries_) {
    if (entry.pending) ++(entry.pending->reason == admission::kInfeasible ? now.infeasible : now.deferred);
    if (entry.in_progress) ++now.in_progress;
  }
  metrics_.set_present(now);
}

void PodResizes::record(const api::Pod& pod, client::EventType type, std::string_view reason, std::string_view message,
                        Now now) {
  api::ObjectReference about = client::reference_to(pod);
  about.resource_version.clear();
  context_.events.record(about, type, reason, message, now);
}

api::Json PodResizes::state() const {
  api::Json resizes = api::Json::object();
  for (const auto& [uid, entry] : entries_) {
    if (entry.is_in_force && !entry.pending) continue;
    resizes[uid] = api::Json::object({{"inForce", entry.is_in_force},
                                      {"pending", entry.pending ? api::Json(entry.pending->reason) : api::Json()},
                                      {"underWay", entry.under_way.has_value()},
                                      {"waits", entry.waits}});
  }
  return resizes;
}

}  // namespace spillway::agent
