#include "host/observer.h"

#include "host/kernel_file.h"
#include "host/memory_stat.h"
#include "host/proc_files.h"

#include <algorithm>
#include <utility>

namespace spillway::host {
namespace {

constexpr Duration kCpuWindow = milliseconds(500);  // shorter ones are noise

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

/// What the other estimators of memory say, beside figures that are complete without them.
void add_estimates(std::optional<api::MemoryStats>& stats, const Result<MemoryReading>& reading) {
  if (stats && reading) add_estimates(*stats, *reading);
}

}  // namespace

Observer::Observer(runtime::Loop& loop, const NodeSlice& slice, telemetry::Log log, std::string state_dir)
    : slice_(slice), log_(std::move(log)), fs_(loop, std::move(state_dir)), disk_(loop) {
  fs_.refresh();
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
    before.cpu_rate = rate ? *rate : 0;  // as upstream reports a counter that went backwards
    before.cpu = sample;
  }
  return api::CpuStats{now.wall, before.cpu_rate, usage->total_nanos};
}

std::optional<api::MemoryStats> Observer::observe_memory(const CgroupDir& cgroup, Now now) {
  const Result<CgroupMemory> memory = seen(cgroup).stats.memory(cgroup);
  if (!memory) return std::nullopt;
  return to_memory_stats(*memory, now.wall);
}

Result<api::MemoryStats> Observer::observe_node_memory(Now now) const {
  std::optional<MemInfo> machine;
  if (slice_.is_host()) {
    SPILLWAY_TRY(text, read_file("/proc/meminfo"));
    SPILLWAY_TRY(parsed, parse_meminfo(text));
    machine = parsed;
  }
  SPILLWAY_TRY(memory, read_memory(slice_.measured(), machine ? &*machine : nullptr));
  return to_memory_stats(memory, now.wall);
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
  stats.cpu = observe_cpu(*pod.cgroup, now);
  stats.memory = observe_memory(*pod.cgroup, now);
  const std::optional<api::FsStats> fs = fs_.latest(now.mono);
  const std::optional<DirectoryUsage> work = disk_.latest(pod.uid);
  std::uint64_t log_bytes = 0;
  std::optional<std::uint64_t> processes = 0;
  for (const ContainerView& container : pod.containers) {
    api::ContainerStats found;
    found.name = container.name;
    found.cpu = observe_cpu(*container.cgroup, now);
    found.memory = observe_memory(*container.cgroup, now);
    found.logs = fs.value_or(api::FsStats{});
    found.logs->time = now.wall;
    found.logs->used_bytes = static_cast<std::uint64_t>(container.log_size.count());
    found.logs->inodes_used = 1;
    log_bytes += *found.logs->used_bytes;
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
  if (work) {
    stats.ephemeral_storage = fs.value_or(api::FsStats{});
    stats.ephemeral_storage->time = work->at;
    stats.ephemeral_storage->used_bytes = work->used_bytes + log_bytes;
    stats.ephemeral_storage->inodes_used = work->inodes + stats.containers.size();
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
  const Result<api::MemoryStats> memory = observe_node_memory(now);
  const Result<api::RlimitStats> rlimit = observe_rlimit(now);
  fs_.refresh();
  summary.node.fs = fs_.latest(now.mono);
  if (!memory && !rlimit && !summary.node.fs) return memory.error();
  if (memory) summary.node.memory = *memory;
  add_estimates(summary.node.memory, read_node_gauge(node_gauge_, slice_));
  if (rlimit) summary.node.rlimit = *rlimit;
  report(!memory ? std::optional(memory.error()) : !rlimit ? std::optional(rlimit.error()) : std::nullopt);
  summary.node.cpu = observe_cpu(slice_.measured(), now);
  summary.node.image_fs = summary.node.fs;  // processes have no image: both are the state directory's file system
  summary.node.container_fs = summary.node.fs;

  api::ContainerStats all_pods;
  all_pods.name = "pods";
  all_pods.cpu = observe_cpu(slice_.kubepods(), now);
  all_pods.memory = observe_memory(slice_.kubepods(), now);
  add_estimates(all_pods.memory, read_pods_gauge(pods_gauge_, slice_));
  summary.node.system_containers.push_back(std::move(all_pods));
  for (const PodView& pod : pods) summary.pods.push_back(observe_pod(pod, now));
  std::vector<DiskUsage::Place> places;
  for (const PodView& pod : pods) places.push_back({pod.uid, pod.work_directory});
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
