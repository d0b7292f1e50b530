#include "host/companion/foreign_runtime.h"

#include "host/cgroup/cgroup_kill.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/pidfd.h"

#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <utility>

namespace spillway::host {
namespace {

constexpr Duration kPursueMax = milliseconds(50);
constexpr int kStartField = 22;

std::shared_ptr<ContainerHandle> make_handle(const CgroupDir& cgroup) {
  const auto pid = oldest_process(cgroup);
  if (!pid) return nullptr;
  Result<UniqueFd> pidfd = open_pidfd(*pid);
  if (!pidfd || oldest_process(cgroup) != pid) return nullptr;  // it ended, and the number may be another's
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
    if (pid <= 0) continue;  // of a namespace that we cannot see into
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
      slice_(slice),
      receiver_(receiver),
      log_(std::move(log)),
      options_(std::move(options)),
      finder_(root, options_.driver, options_.cgroup_root),
      observer_(loop, slice, log_, options_.state_dir, agent::PressureStats::kLeftOut) {}

ForeignRuntime::~ForeignRuntime() {
  for (auto& [uid, entry] : pods_) forget_ending(entry);
}

void ForeignRuntime::emit(agent::HostEvent event) {
  if (before_event_) before_event_();
  loop_.post([this, alive = std::weak_ptr(alive_), event = std::move(event)]() mutable {
    if (!alive.expired()) receiver_.on_host_event(std::move(event));
  });
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

/// Pods come and go without our doing: everything is looked for again, what is still there is kept.
void ForeignRuntime::look_for(Entry& entry) {
  Result<CgroupDir> cgroup = finder_.find(entry.place, std::move(entry.cgroup));
  entry.cgroup = cgroup ? *std::move(cgroup) : CgroupDir();
  std::vector<FoundContainer> held;
  std::map<std::string, std::shared_ptr<ContainerHandle>> handles;
  for (Container& container : entry.containers) {
    handles[container.found.id] = container.handle;
    held.push_back(std::move(container.found));
  }
  entry.containers.clear();
  std::map<std::string, std::shared_ptr<ContainerHandle>> now;
  if (entry.cgroup) {
    for (FoundContainer& found : PodFinder::containers(entry.cgroup, std::move(held))) {
      Container container{std::move(found), {}, {}};
      const auto named = std::ranges::find(entry.place.containers, container.found.id, &agent::NamedContainer::id);
      if (named != entry.place.containers.end()) container.name = named->name;
      if (!container.found.monitor) {
        container.handle = handles[container.found.id];
        if (!container.handle) container.handle = make_handle(container.found.cgroup);
        if (container.handle && container.handle->name.empty()) container.handle->name = container.name;
        now[container.found.id] = container.handle;
      }
      entry.containers.push_back(std::move(container));
    }
  }
  std::erase_if(handles, [](const auto& each) { return each.second == nullptr; });
  std::erase_if(now, [](const auto& each) { return each.second == nullptr; });
  if (now != handles) entry.target.reset();
}

void ForeignRuntime::look_for_all() {
  bool changed = false;
  for (auto& [uid, entry] : pods_) {
    const bool had_target = entry.target != nullptr;
    look_for(entry);
    changed = changed || (had_target && !entry.target);
  }
  if (changed && targets_changed_) targets_changed_();
}

std::size_t ForeignRuntime::found() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(pods_, [](const auto& each) { return static_cast<bool>(each.second.cgroup); }));
}

std::shared_ptr<const ReactionTarget> ForeignRuntime::find_target(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (options_.hands == Hands::kTied || found == pods_.end() || !found->second.cgroup) return nullptr;
  Entry& entry = found->second;
  if (entry.target) return entry.target;
  const bool any_named =
      std::ranges::any_of(entry.containers, [](const Container& each) { return !each.name.empty(); });
  const bool monitors = std::ranges::any_of(entry.containers, [](const Container& each) { return each.found.monitor; });
  std::vector<std::shared_ptr<ContainerHandle>> handles;
  for (const Container& container : entry.containers) {
    if (container.handle && (!any_named || !container.name.empty())) handles.push_back(container.handle);
  }
  // The processor shares of the pods' classes are the kubelet's: the pod's own are raised alone.
  entry.target = std::make_shared<const ReactionTarget>(entry.cgroup, entry.cgroup, std::move(handles),
                                                        monitors ? KillScope::kContainers : KillScope::kPod);
  return entry.target;
}

Result<api::Summary> ForeignRuntime::observe_all() {
  look_for_all();
  std::vector<PodView> views;
  for (const auto& [uid, entry] : pods_) {
    if (!entry.cgroup) continue;
    PodView view{uid, entry.place.pod, &entry.cgroup, {}, {}};
    for (const Container& container : entry.containers) {
      if (!container.name.empty()) view.containers.push_back({container.name, &container.found.cgroup, {}});
    }
    views.push_back(std::move(view));
  }
  return observer_.observe(views, loop_.now());
}

void ForeignRuntime::execute(agent::HostCommand command) {
  if (const auto* look = std::get_if<agent::Observe>(&command)) {
    const bool whole = look->depth == agent::ObserveDepth::kWhole;
    Result<api::Summary> seen = whole ? observe_all() : observer_.observe_node_memory_alone(loop_.now());
    return emit(agent::Observed{look->id, std::move(seen), look->depth, eviction::StorageLayout{}});
  }
  if (const auto* end = std::get_if<agent::StopPod>(&command)) return stop(end->uid, end->grace);
  if (const auto* reclaim = std::get_if<agent::ReclaimNode>(&command)) {
    return emit(agent::Reclaimed{reclaim->id, {}});  // that is the kubelet's
  }
  log_.error("a companion starts and removes nothing", {{"command", command.index()}});
}

void ForeignRuntime::stop(const std::string& uid, Duration grace) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || options_.hands == Hands::kTied) return emit(agent::PodStopped{uid});
  Entry& entry = found->second;
  look_for(entry);
  const Instant due = loop_.now().mono + grace;
  if (entry.ending) {
    entry.ending->due = std::min(entry.ending->due, due);
    loop_.cancel(entry.ending->timer);
  } else {
    entry.ending = Ending{.due = due};
    for (const Container& container : entry.containers) {
      if (grace == Duration{} || container.name.empty() || !container.handle) continue;
      if (container.handle->terminated.exchange(true)) continue;
      ignored(send_signal(container.handle->pidfd.get(), SIGTERM), "it ended by itself");
    }
  }
  pursue(uid);
}

/// Until no process of its containers is left. A sandbox that outlives them is the kubelet's to end.
void ForeignRuntime::pursue(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || !found->second.ending) return;
  Entry& entry = found->second;
  if (loop_.now().mono >= entry.ending->due) {
    look_for(entry);
    kill(entry);
  }
  if (is_stopped(entry)) {
    forget_ending(entry);
    return emit(agent::PodStopped{uid});
  }
  entry.ending->timer = loop_.at(loop_.now().mono + entry.ending->wait, [this, uid] { pursue(uid); });
  entry.ending->wait = std::min(entry.ending->wait * 2, kPursueMax);
}

bool ForeignRuntime::is_stopped(const Entry& entry) const {
  const bool any_named =
      std::ranges::any_of(entry.containers, [](const Container& each) { return !each.name.empty(); });
  return std::ranges::all_of(entry.containers, [&](const Container& container) {
    if (container.found.monitor || (any_named && container.name.empty())) return true;
    const Result<bool> empty = is_empty(container.found.cgroup);
    return empty && *empty;
  });
}

void ForeignRuntime::kill(const Entry& entry) const {
  for (const Container& container : entry.containers) {
    if (container.found.monitor) continue;
    if (const Outcome killed = kill_all(container.found.cgroup); !killed) {
      log_.warning("container not killed",
                   {{"cgroup", container.found.cgroup.path()}, {"error", killed.error().text()}});
    }
  }
}

}  // namespace spillway::host
