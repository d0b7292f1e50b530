// One pass over the machine: reads the usage of the node, its pods and containers into a Summary. A value that cannot
// be read is absent, never zero. Processor rates are computed from the passes before. The file system's sizes are the
// last known ones: the pass never waits for another thread.
// Thread: loop. Source: spec "Eviction manager", 2; spec "Node agent", 10.
#pragma once

#include "agent/contract/options.h"
#include "api/object/meta.h"
#include "api/object/summary.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/cgroup_stats.h"
#include "host/cgroup/cpu_stat.h"
#include "host/cgroup/node_slice.h"
#include "host/disk/disk_usage.h"
#include "host/disk/fs_probe.h"
#include "host/reaction/memory_gauge.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

struct ContainerView {
  std::string name;
  const CgroupDir* cgroup = nullptr;
  std::optional<Bytes> log_size;
  std::optional<WallTime> started;
};

/// A directory that a pod writes, beside its own.
struct VolumeView {
  std::string name;
  std::string directory;
};

struct PodView {
  std::string uid;
  api::PodKey pod;
  const CgroupDir* cgroup = nullptr;
  std::string work_directory;             // directory where the pod's containers write; empty: unknown
  std::vector<ContainerView> containers;  // running containers
  std::optional<WallTime> started;
  bool own_network = false;  // else the machine's
  std::vector<VolumeView> volumes;
};

class Observer {
 public:
  Observer(runtime::Loop& loop, const NodeSlice& slice, telemetry::Log log, std::string state_dir,
           agent::PressureStats pressure);

  /// Adds the cgroup of this process to the readings, as the system container "kubelet", if it has one.
  void report_own_cgroup();

  /// An error: nothing of the node itself can be read; it names the file.
  Result<api::Summary> observe(std::span<const PodView> pods, Now now);

  /// Memory of the node and of all pods together, from held descriptors; processes, and the file system's sizes
  /// besides: cheap enough for every millisecond.
  Result<api::Summary> observe_node_memory_alone(Now now);

  /// Calls `then` on the loop once the sizes of the file system were read at `since` or later; see FsProbe.
  void after_disk_reading_since(Instant since, std::function<void()> then) {
    fs_.after_reading_since(since, std::move(then));
  }

 private:
  /// State of one cgroup from earlier passes.
  struct Seen {
    explicit Seen(const CgroupDir& cgroup) : stats(cgroup) {}

    CgroupStats stats;
    std::optional<CpuSample> cpu;
    std::optional<std::uint64_t> cpu_rate;
    std::uint64_t pass = 0;
  };

  Seen& seen(const CgroupDir& cgroup);
  /// The figures that node, pods and containers have in common.
  template <typename Stats>
  void observe_cgroup(const CgroupDir& cgroup, Stats& stats, Now now);
  std::optional<api::CpuStats> observe_cpu(const CgroupDir& cgroup, Now now);
  std::optional<api::PsiStats> observe_psi(const CgroupDir& cgroup, std::string_view resource) const;
  template <typename Stats>
  void observe_pressure(const CgroupDir& cgroup, Stats& stats, Now now) const;
  Result<CgroupMemory> read_node_memory() const;
  std::optional<api::NetworkStats> observe_network(Now now) const;
  Result<api::RlimitStats> observe_rlimit(Now now) const;
  api::PodStats observe_pod(const PodView& pod, Now now);
  void report(const std::optional<Error>& problem);

  const NodeSlice& slice_;
  telemetry::Log log_;
  std::map<std::string, Seen, std::less<>> seen_;
  std::uint64_t pass_ = 0;
  std::string reported_;
  std::optional<MemoryGauge> node_gauge_;
  std::optional<MemoryGauge> pods_gauge_;
  agent::PressureStats pressure_;
  CgroupDir own_;     // empty: not reported
  WallTime made_;     // kubepods
  WallTime started_;  // the node: with the machine, or as a slice with kubepods
  FsProbe fs_;
  DiskUsage disk_;
};

}  // namespace spillway::host
