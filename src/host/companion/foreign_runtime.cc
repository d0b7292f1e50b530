#include "host/companion/foreign_runtime.h"

#include "agent/contract/log_paths.h"
#include "host/cgroup/cgroup_kill.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/pidfd.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace spillway::host {
namespace {

constexpr Duration kPursueMax = milliseconds(50);
/// Waits between measurements of a deleted pod's disk usage: kubelet and runtime need some time to delete its files.
constexpr Duration kStorageWait = milliseconds(500);
constexpr int kStartField = 22;

std::shared_ptr<ContainerHandle> make_handle(const CgroupDir& cgroup) {
  const auto pid = oldest_process(cgroup);
  if (!pid) return nullptr;
  Result<UniqueFd> pidfd = open_pidfd(*pid);
  // the process has ended, and its number may belong to another one
  if (!pidfd || oldest_process(cgroup) != pid) return nullptr;
  auto handle = std::make_shared<ContainerHandle>();
  handle->pidfd = *std::move(pidfd);
  handle->directory.reset(::fcntl(cgroup.fd(Controller::kMemory), F_DUPFD_CLOEXEC, 3));
  return handle;
}

}  // namespace

std::optional<std::uint64_t> parse_start_ticks(std::string_view stat) {
  const std::size_t name_end = stat.rfind(')');  // the name may hold blanks and parentheses
  if (name_end == std::string_view::npos) return std::nullopt;
  std::string_view rest = stat.substr(name_end + 1);
  for (int field = 3;; ++field) {
    const std::size_t begin = rest.find_first_not_of(' ');
    if (begin == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(begin);
    const std::size_t end = std::min(rest.find_first_of(" \n"), rest.size());
    if (field == kStartField) return parse_number(rest.substr(0, end));
    rest.remove_prefix(end);
  }
}

std::optional<pid_t> oldest_process(const CgroupDir& cgroup) {
  const Result<std::vector<pid_t>> pids = tree_pids(cgroup);
  if (!pids) return std::nullopt;
  std::optional<std::pair<std::uint64_t, pid_t>> oldest;
  for (const pid_t pid : *pids) {
    if (pid <= 0) continue;  // 0: a process of a pid namespace that we cannot see into
    const Result<std::string> stat = read_file(fmt::format("/proc/{}/stat", pid));
    const auto start = stat ? parse_start_ticks(*stat) : std::nullopt;
    if (start && (!oldest || std::pair(*start, pid) < *oldest)) oldest = {*start, pid};
  }
  if (!oldest) return std::nullopt;
  return oldest->second;
}

ForeignRuntime::ForeignRuntime(runtime::Loop& loop, const CgroupDir& root, const NodeSlice& slice,
                               agent::Host::Receiver& receiver, telemetry::Log log, Options options)
    : loop_(loop),
      events_(loop, receiver),
      log_(std::move(log)),
      options_(std::move(options)),
      finder_(root, options_.driver, options_.cgroup_root),
      observer_(loop, slice, log_, options_.node_directory, agent::PressureStats::kLeftOut),
      relief_(loop) {
  if (options_.runtime_socket.empty()) return;
  storage_ = std::make_unique<StorageFeed>(
      loop_, StorageFeed::Options{.socket = options_.runtime_socket, .node_directory = options_.node_directory}, log_,
      [this] { events_.emit(agent::PressureWake{"storage"}); });
}

ForeignRuntime::~ForeignRuntime() {
  for (auto& [uid, entry] : pods_) forget_ending(entry);
}

void ForeignRuntime::forget_ending(Entry& entry) {
  if (entry.ending) loop_.cancel(entry.ending->timer);
  entry.ending.reset();
}

void ForeignRuntime::set_pods(const std::vector<agent::PodPlace>& pods) {
  std::map<std::string, Entry> next;
  for (const agent::PodPlace& place : pods) {
    const auto known = pods_.find(place.uid);
    Entry entry = known == pods_.end() ? Entry{} : std::move(known->second);
    if (known != pods_.end()) pods_.erase(known);
    entry.place = place;
    next.emplace(place.uid, std::move(entry));
  }
  for (auto& [uid, entry] : pods_) forget_ending(entry);
  pods_ = std::move(next);
}

/// Pods are added and removed by others: everything is searched again, and what still exists is kept.
void ForeignRuntime::refresh(Entry& entry) {
  Result<CgroupDir> cgroup = finder_.find(entry.place, std::move(entry.cgroup));
  entry.cgroup = cgroup ? *std::move(cgroup) : CgroupDir();
  std::vector<FoundContainer> held;
  std::map<std::string, std::shared_ptr<ContainerHandle>> before;
  std::map<std::string, std::shared_ptr<ContainerHandle>> after;
  for (Container& container : entry.containers) {
    if (container.handle) before[container.found.id] = container.handle;
    held.push_back(std::move(container.found));
  }
  entry.containers.clear();
  const agent::StorageReading* storage = storage_ ? storage_->latest(loop_.now().mono) : nullptr;
  if (entry.cgroup) {
    for (FoundContainer& found : PodFinder::containers(entry.cgroup, std::move(held))) {
      Container container{std::move(found), {}, {}};
      const auto named = std::ranges::find(entry.place.containers, container.found.id, &agent::NamedContainer::id);
      if (named != entry.place.containers.end()) {
        container.name = named->name;
      } else if (storage != nullptr) {  // the status follows
        const agent::RuntimeContainer* reported = agent::find_container(storage->runtime, container.found.id);
        if (reported != nullptr) container.name = reported->name;
      }
      if (!container.found.monitor) {
        const auto held_before = before.find(container.found.id);
        container.handle = held_before != before.end() ? held_before->second : make_handle(container.found.cgroup);
        if (container.handle && container.handle->name.empty()) container.handle->name = container.name;
        if (container.handle) after[container.found.id] = container.handle;
      }
      entry.containers.push_back(std::move(container));
    }
  }
  if (after != before) entry.target.reset();
}

void ForeignRuntime::refresh_all() {
  bool changed = false;
  for (auto& [uid, entry] : pods_) {
    const bool had_target = entry.target != nullptr;
    refresh(entry);
    changed = changed || (had_target && !entry.target);
  }
  if (changed) events_.change_targets();
}

std::size_t ForeignRuntime::found() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(pods_, [](const auto& each) { return static_cast<bool>(each.second.cgroup); }));
}

std::shared_ptr<const ReactionTarget> ForeignRuntime::find_target(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (options_.signals == Signals::kDryRun || found == pods_.end() || !found->second.cgroup) return nullptr;
  Entry& entry = found->second;
  if (entry.target) return entry.target;
  const bool named = any_named(entry);
  const bool monitors = std::ranges::any_of(entry.containers, [](const Container& each) { return each.found.monitor; });
  std::vector<std::shared_ptr<ContainerHandle>> handles;
  for (const Container& container : entry.containers) {
    if (container.handle && (!named || !container.name.empty())) handles.push_back(container.handle);
  }
  // The processor shares of the pods' classes are the kubelet's: the pod's own are raised alone.
  entry.target = std::make_shared<const ReactionTarget>(entry.cgroup, entry.cgroup, std::move(handles),
                                                        monitors ? KillScope::kContainers : KillScope::kPod);
  return entry.target;
}

PodFolder ForeignRuntime::folder_of(const agent::PodPlace& place) const {
  const std::string& uid = place.cgroup_uid;
  return {.uid = uid,
          .logs = agent::pod_log_directory(options_.log_directory, place.pod, uid),
          .directory = fmt::format("{}/pods/{}", options_.node_directory, uid),
          .volumes = place.volumes};
}

void ForeignRuntime::ask_for_storage() {
  std::vector<PodFolder> folders;
  for (const auto& [uid, entry] : pods_) {
    if (entry.cgroup) folders.push_back(folder_of(entry.place));
  }
  storage_->refresh(std::move(folders));
}

void ForeignRuntime::describe_pods(api::Summary& summary) const {
  const agent::StorageReading* storage = storage_ ? storage_->latest(loop_.now().mono) : nullptr;
  if (storage == nullptr) return;
  for (api::PodStats& pod : summary.pods) {
    const PodFolder folder = folder_of(pods_.at(pod.uid).place);
    pod.volumes = storage_->volumes(folder, summary.node.fs);
    agent::describe_pod(pod, folder.uid, summary.node.fs, *storage);
  }
}

std::vector<PodView> ForeignRuntime::views() const {
  std::vector<PodView> views;
  for (const auto& [uid, entry] : pods_) {
    if (!entry.cgroup) continue;
    PodView view{.uid = uid,
                 .pod = entry.place.pod,
                 .cgroup = &entry.cgroup,
                 .work_directory = {},
                 .containers = {},
                 .started = {}};
    for (const Container& container : entry.containers) {
      if (!container.name.empty()) view.containers.push_back({container.name, &container.found.cgroup, {}, {}});
    }
    views.push_back(std::move(view));
  }
  return views;
}

Result<api::Summary> ForeignRuntime::observe_now() {
  refresh_all();
  const Now now = loop_.now();
  SPILLWAY_TRY(summary, observer_.observe(views(), now));
  agent::describe_node(summary.node, storage_ ? storage_->latest(now.mono) : nullptr);
  describe_pods(summary);
  if (storage_) ask_for_storage();
  return summary;
}

agent::Observed ForeignRuntime::observe(const agent::Observe& command) {
  const Now now = loop_.now();
  const bool whole = command.depth == agent::ObserveDepth::kWhole;
  agent::Observed seen{command.id, whole ? observe_now() : observer_.observe_node_memory_alone(now), command.depth, {}};
  const agent::StorageReading* storage = storage_ ? storage_->latest(now.mono) : nullptr;
  if (!storage_) seen.layout = eviction::StorageLayout{};  // no threshold of a disk
  if (storage != nullptr) seen.layout = agent::storage_layout(*storage);
  if (seen.summary && !whole) agent::describe_node(seen.summary->node, storage);
  if (seen.summary && storage_ && storage == nullptr) agent::remove_disk_usage(*seen.summary);
  return seen;
}

void ForeignRuntime::execute(agent::HostCommand command) {
  if (const auto* wanted = std::get_if<agent::Observe>(&command)) return events_.emit(observe(*wanted));
  if (const auto* end = std::get_if<agent::StopPod>(&command)) return stop(*end);
  if (const auto* reclaim = std::get_if<agent::ReclaimNode>(&command)) {
    agent::Reclaimed answer{reclaim->id, {}};
    for (const eviction::ReclaimAction action : reclaim->actions) {
      answer.outcomes.push_back({.action = action, .problem = "it is the kubelet's to delete them"});
    }
    return events_.emit(std::move(answer));
  }
  if (const auto* relieve = std::get_if<agent::RelieveMemory>(&command))
    return relief_.run(*relieve, views(), [this](agent::Relieved done) { events_.emit(std::move(done)); });
  log_.error("a companion starts and removes nothing", {{"command", command.index()}});
}

void ForeignRuntime::stop(const agent::StopPod& command) {
  const auto found = pods_.find(command.uid);
  if (found == pods_.end() || options_.signals == Signals::kDryRun) return events_.emit(agent::PodStopped{command.uid});
  Entry& entry = found->second;
  refresh(entry);
  const Instant due = loop_.now().mono + command.grace;
  if (entry.ending) {
    entry.ending->due = std::min(entry.ending->due, due);
    loop_.cancel(entry.ending->timer);
  } else {
    entry.ending = Ending{.due = due};
    for (const Container& container : entry.containers) {
      if (command.grace == Duration{} || container.name.empty() || !container.handle) continue;
      container.handle->terminate();
    }
  }
  entry.ending->storage_freed = entry.ending->storage_freed || command.storage_freed;
  pursue(command.uid);
}

/// Kills until no process of its containers is left and, if requested, none of their files. A sandbox that outlives
/// them is left to the kubelet.
void ForeignRuntime::pursue(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || !found->second.ending) return;
  Entry& entry = found->second;
  if (loop_.now().mono >= entry.ending->due) {
    refresh(entry);
    kill(entry);
  }
  if (is_stopped(entry)) {
    if (!entry.ending->stopped) entry.ending->stopped = loop_.now().mono;
    if (is_storage_freed(entry)) {
      forget_ending(entry);
      return events_.emit(agent::PodStopped{uid});
    }
    ask_for_storage();
    entry.ending->wait = kStorageWait;
  }
  entry.ending->timer = loop_.at(loop_.now().mono + entry.ending->wait, [this, uid] { pursue(uid); });
  if (!entry.ending->stopped) entry.ending->wait = std::min(entry.ending->wait * 2, kPursueMax);
}

bool ForeignRuntime::any_named(const Entry& entry) {
  return std::ranges::any_of(entry.containers, [](const Container& each) { return !each.name.empty(); });
}

bool ForeignRuntime::is_stopped(const Entry& entry) const {
  const bool named = any_named(entry);
  return std::ranges::all_of(entry.containers, [&](const Container& container) {
    if (container.found.monitor || (named && container.name.empty())) return true;
    const Result<bool> empty = is_empty(container.found.cgroup);
    return empty && *empty;
  });
}

bool ForeignRuntime::is_storage_freed(const Entry& entry) const {
  if (!entry.ending->storage_freed || !storage_) return true;
  const agent::StorageReading* storage = storage_->latest(loop_.now().mono);
  return storage != nullptr && storage->begun.mono > *entry.ending->stopped &&
         !agent::holds_containers(storage->runtime, entry.place.cgroup_uid);
}

/// Repeats the kill until it succeeds; a failure is reported once.
void ForeignRuntime::kill(Entry& entry) {
  for (const Container& container : entry.containers) {
    if (container.found.monitor) continue;
    const Outcome killed = kill_all(container.found.cgroup);
    if (killed || std::exchange(entry.ending->failure_reported, true)) continue;
    log_.warning("container not killed", {{"cgroup", container.found.cgroup.path()}, {"error", killed.error().text()}});
  }
}

}  // namespace spillway::host
