#include "host/observation/observer.h"

#include "host/cgroup/memory_stat.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/proc_files.h"
#include "host/observation/net_dev.h"
#include "host/reaction/psi.h"

#include <algorithm>
#include <concepts>
#include <utility>

namespace spillway::host {
namespace {

constexpr Duration kCpuWindow = milliseconds(500);  // rates over shorter times are noise

void add_estimates(api::MemoryStats& stats, const MemoryReading& reading) {
  if (reading.mem_available) stats.mem_available_bytes = static_cast<std::uint64_t>(reading.mem_available->count());
  if (reading.swap_left) stats.swap_left_bytes = reading.swap_left->count();
}

api::MemoryStats stats_of(const MemoryReading& reading, WallTime at) {
  api::MemoryStats stats;
  stats.time = at;
  stats.available_bytes = static_cast<std::uint64_t>(reading.available.count());
  stats.usage_bytes = static_cast<std::uint64_t>(reading.usage.count());
  stats.working_set_bytes = static_cast<std::uint64_t>((reading.limit - reading.available).count());
  add_estimates(stats, reading);
  return stats;
}

Result<MemoryReading> read_node_gauge(std::optional<MemoryGauge>& gauge, const NodeSlice& slice) {
  if (!gauge) {
    SPILLWAY_TRY(opened, MemoryGauge::open(slice.measured(), slice.memory()));
    gauge = std::move(opened);
  }
  return gauge->read(Figures::kEverything);
}

Result<MemoryReading> read_pods_gauge(std::optional<MemoryGauge>& gauge, const NodeSlice& slice) {
  if (!gauge) {
    SPILLWAY_TRY(opened, MemoryGauge::open_with_own_limit(slice.kubepods(), slice.memory()));
    gauge = std::move(opened);
  }
  return gauge->read(Figures::kEverything);
}

/// Adds the values of the other estimators of memory, to figures that are complete without them.
void add_estimates(std::optional<api::MemoryStats>& stats, const Result<MemoryReading>& reading) {
  if (stats && reading) add_estimates(*stats, *reading);
}

/// The time at which the machine was booted; `now` if the kernel does not report it.
WallTime boot_time(WallTime now) {
  const Result<std::string> text = read_file("/proc/uptime");
  if (!text) return now;
  const Result<Duration> up = parse_uptime(*text);
  return up ? now - std::chrono::duration_cast<WallTime::duration>(*up) : now;
}

/// The name of the walks of the volume's directory.
std::string place_of(const PodView& pod, const VolumeView& volume) {
  return fmt::format("{}/{}", pod.uid, volume.name);
}

}  // namespace

Observer::Observer(runtime::Loop& loop, const NodeSlice& slice, telemetry::Log log, std::string state_dir,
                   agent::PressureStats pressure)
    : slice_(slice),
      log_(std::move(log)),
      pressure_(pressure),
      made_(loop.now().wall),
      started_(slice.is_host() ? boot_time(made_) : made_),
      fs_(loop, std::move(state_dir)),
      disk_(loop) {
  fs_.refresh();
}

void Observer::report_own_cgroup() {
  const Result<std::string> text = read_file("/proc/self/cgroup");
  if (!text) return;
  const std::string path = parse_memory_path(*text, slice_.kubepods().version());
  if (path == "/" || path.contains("/..")) return;  // everything, or out of sight
  const Result<CgroupDir> root = slice_.kubepods().hierarchy_root();
  if (!root) return;
  Result<CgroupDir> own = root->open_path(path);
  if (own) own_ = *std::move(own);
}

Observer::Seen& Observer::seen(const CgroupDir& cgroup) {
  auto [entry, is_new] = seen_.try_emplace(cgroup.path(), cgroup);
  if (!is_new && entry->second.pass != pass_ && entry->second.stats.is_stale()) entry->second = Seen(cgroup);
  entry->second.pass = pass_;
  return entry->second;
}

std::optional<api::CpuStats> Observer::observe_cpu(const CgroupDir& cgroup, Now now) {
  Seen& before = seen(cgroup);
  const Result<CpuUsage> usage = before.stats.cpu(cgroup);
  if (!usage) return std::nullopt;
  const CpuSample sample{now.mono.time_since_epoch().count(), *usage};
  if (!before.cpu) {
    before.cpu = sample;
  } else if (sample.at_nanos - before.cpu->at_nanos >= kCpuWindow.count()) {
    const Result<std::uint64_t> rate = compute_cpu_rate(*before.cpu, sample);
    before.cpu_rate = rate ? *rate : 0;  // zero as upstream, for a counter that went backwards
    before.cpu = sample;
  }
  return api::CpuStats{now.wall, before.cpu_rate, usage->total_nanos};
}

template <typename Stats>
void Observer::observe_cgroup(const CgroupDir& cgroup, Stats& stats, Now now) {
  stats.cpu = observe_cpu(cgroup, now);
  const Result<CgroupMemory> memory = seen(cgroup).stats.memory(cgroup);
  if (memory) {
    stats.memory = to_memory_stats(*memory, now.wall);
    stats.swap = to_swap_stats(*memory, now.wall);
    if constexpr (std::same_as<Stats, api::PodStats>) stats.file_cache = to_file_cache(*memory);
  }
  observe_pressure(cgroup, stats, now);
}

/// The machine's own is in /proc; cgroups have theirs in version 2 alone.
std::optional<api::PsiStats> Observer::observe_psi(const CgroupDir& cgroup, std::string_view resource) const {
  const bool whole_machine = slice_.is_host() && &cgroup == &slice_.measured();
  const Result<std::string> text = whole_machine
                                       ? read_file(fmt::format("/proc/pressure/{}", resource))
                                       : cgroup.read(Controller::kMemory, fmt::format("{}.pressure", resource));
  if (!text) return std::nullopt;
  const Result<Psi> psi = parse_psi(*text);
  return psi ? std::optional(to_psi_stats(*psi)) : std::nullopt;
}

template <typename Stats>
void Observer::observe_pressure(const CgroupDir& cgroup, Stats& stats, Now now) const {
  if (pressure_ == agent::PressureStats::kLeftOut) return;
  if (stats.cpu) stats.cpu->psi = observe_psi(cgroup, "cpu");
  if (stats.memory) stats.memory->psi = observe_psi(cgroup, "memory");
  if (auto psi = observe_psi(cgroup, "io")) stats.io = api::IoStats{now.wall, std::move(psi)};
}

Result<CgroupMemory> Observer::read_node_memory() const {
  std::optional<MemInfo> machine;
  if (slice_.is_host()) {
    SPILLWAY_TRY(text, read_file("/proc/meminfo"));
    SPILLWAY_TRY(parsed, parse_meminfo(text));
    machine = parsed;
  }
  return read_memory(slice_.measured(), machine ? &*machine : nullptr);
}

/// Pods without a network of their own share the machine's: its counters are theirs.
std::optional<api::NetworkStats> Observer::observe_network(Now now) const {
  const Result<std::string> text = read_file("/proc/self/net/dev");
  if (!text) return std::nullopt;
  const Result<api::NetworkStats> network = parse_net_dev(*text, now.wall);
  return network ? std::optional(*network) : std::nullopt;
}

Result<api::RlimitStats> Observer::observe_rlimit(Now now) const {
  SPILLWAY_TRY(machine, read_process_limits());
  api::RlimitStats stats{now.wall, machine.max_pid, machine.running_processes};
  const std::optional<std::int64_t> pids_max = slice_.options().pids_max;
  if (slice_.is_host() || !pids_max) return stats;
  SPILLWAY_TRY(text, slice_.slice().read(Controller::kPids, "pids.current"));
  const std::optional<std::uint64_t> current = parse_number(text);
  if (!current) return invalid("pids.current", "\"{}\" is not a number", text);
  stats.max_pid = pids_max;
  stats.running_processes = static_cast<std::int64_t>(*current);
  return stats;
}

api::PodStats Observer::observe_pod(const PodView& pod, Now now) {
  api::PodStats stats;
  stats.uid = pod.uid;
  stats.ns = pod.pod.ns;
  stats.name = pod.pod.name;
  stats.start_time = pod.started;
  observe_cgroup(*pod.cgroup, stats, now);
  const std::optional<api::FsStats> fs = fs_.latest(now.mono);
  const std::optional<DirectoryUsage> work = disk_.latest(pod.uid);
  std::uint64_t log_bytes = 0;
  std::optional<std::uint64_t> processes = 0;
  for (const ContainerView& container : pod.containers) {
    api::ContainerStats found;
    found.name = container.name;
    found.start_time = container.started;
    observe_cgroup(*container.cgroup, found, now);
    if (container.log_size) {
      found.logs = fs.value_or(api::FsStats{});
      found.logs->time = now.wall;
      found.logs->used_bytes = static_cast<std::uint64_t>(container.log_size->count());
      found.logs->inodes_used = 1;
      log_bytes += *found.logs->used_bytes;
    }
    if (work) {
      // Containers of a pod share its directory: the first one answers for it.
      const bool first = stats.containers.empty();
      found.rootfs = fs.value_or(api::FsStats{});
      found.rootfs->time = work->at;
      found.rootfs->used_bytes = first ? work->used_bytes : 0;
      found.rootfs->inodes_used = first ? work->inodes : 0;
    }
    const Result<std::uint64_t> count = CgroupStats::processes(*container.cgroup);
    processes = processes && count ? std::optional(*processes + *count) : std::nullopt;
    stats.containers.push_back(std::move(found));
  }
  stats.process_count = processes;
  std::uint64_t volume_bytes = 0;
  std::uint64_t volume_inodes = 0;
  for (const VolumeView& volume : pod.volumes) {
    const std::optional<DirectoryUsage> usage = disk_.latest(place_of(pod, volume));
    if (!usage) continue;
    api::VolumeStats& found = stats.volumes.emplace_back();
    found.name = volume.name;
    found.fs = fs.value_or(api::FsStats{});
    found.fs.time = usage->at;
    found.fs.used_bytes = usage->used_bytes;
    found.fs.inodes_used = usage->inodes;
    volume_bytes += usage->used_bytes;
    volume_inodes += usage->inodes;
  }
  if (work) {
    stats.ephemeral_storage = fs.value_or(api::FsStats{});
    stats.ephemeral_storage->time = work->at;
    stats.ephemeral_storage->used_bytes = work->used_bytes + log_bytes + volume_bytes;
    stats.ephemeral_storage->inodes_used = work->inodes + stats.containers.size() + volume_inodes;
  }
  return stats;
}

void Observer::report(const std::optional<Error>& problem) {
  const std::string text = problem ? problem->text() : std::string();
  if (text == reported_) return;
  reported_ = text;
  if (problem) log_.warning("statistics incomplete", {{"node", slice_.options().node}, {"error", text}});
}

Result<api::Summary> Observer::observe(std::span<const PodView> pods, Now now) {
  ++pass_;
  api::Summary summary;
  summary.node.node_name = slice_.options().node;
  const Result<CgroupMemory> memory = read_node_memory();
  const Result<api::RlimitStats> rlimit = observe_rlimit(now);
  fs_.refresh();
  summary.node.fs = fs_.latest(now.mono);
  if (!memory && !rlimit && !summary.node.fs) return memory.error();
  if (memory) {
    summary.node.memory = to_memory_stats(*memory, now.wall);
    summary.node.swap = to_swap_stats(*memory, now.wall);
  }
  add_estimates(summary.node.memory, read_node_gauge(node_gauge_, slice_));
  if (rlimit) summary.node.rlimit = *rlimit;
  report(!memory ? std::optional(memory.error()) : !rlimit ? std::optional(rlimit.error()) : std::nullopt);
  summary.node.start_time = started_;
  summary.node.cpu = observe_cpu(slice_.measured(), now);
  observe_pressure(slice_.measured(), summary.node, now);
  summary.node.network = observe_network(now);
  summary.node.image_fs = summary.node.fs;  // without images, imagefs is the file system of the state directory
  summary.node.container_fs = summary.node.fs;

  api::ContainerStats all_pods;
  all_pods.name = "pods";
  all_pods.start_time = made_;
  observe_cgroup(slice_.kubepods(), all_pods, now);
  add_estimates(all_pods.memory, read_pods_gauge(pods_gauge_, slice_));
  summary.node.system_containers.push_back(std::move(all_pods));
  if (own_) {
    api::ContainerStats kubelet;
    kubelet.name = "kubelet";
    kubelet.start_time = made_;
    observe_cgroup(own_, kubelet, now);
    if (kubelet.memory) summary.node.system_containers.push_back(std::move(kubelet));
  }
  for (const PodView& pod : pods) {
    summary.pods.push_back(observe_pod(pod, now));
    if (!pod.own_network) summary.pods.back().network = summary.node.network;
  }
  std::vector<DiskUsage::Place> places;
  for (const PodView& pod : pods) {
    if (!pod.work_directory.empty()) places.push_back({pod.uid, pod.work_directory});
    for (const VolumeView& volume : pod.volumes) places.push_back({place_of(pod, volume), volume.directory});
  }
  disk_.refresh(std::move(places));
  std::erase_if(seen_, [this](const auto& entry) { return entry.second.pass != pass_; });
  return summary;
}

Result<api::Summary> Observer::observe_node_memory_alone(Now now) {
  SPILLWAY_TRY(node, read_node_gauge(node_gauge_, slice_));
  api::Summary summary;
  summary.node.node_name = slice_.options().node;
  summary.node.memory = stats_of(node, now.wall);
  api::ContainerStats all_pods;
  all_pods.name = "pods";
  const Result<MemoryReading> pods = read_pods_gauge(pods_gauge_, slice_);
  if (pods) all_pods.memory = stats_of(*pods, now.wall);
  summary.node.system_containers.push_back(std::move(all_pods));
  if (const Result<api::RlimitStats> rlimit = observe_rlimit(now)) summary.node.rlimit = *rlimit;
  fs_.refresh();
  summary.node.fs = fs_.latest(now.mono);
  summary.node.image_fs = summary.node.fs;
  summary.node.container_fs = summary.node.fs;
  return summary;
}

}  // namespace spillway::host
