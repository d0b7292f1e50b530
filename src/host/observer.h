// One pass over the machine: what the node, its pods and containers use, as a Summary. What cannot be read is absent,
// never zero. Processor rates come from the passes before. The file system's sizes are the last ones known: the pass
// never waits for another thread.
// Thread: loop. Source: spec "Eviction manager", 2; spec "Node agent", 10.
#pragma once

#include "api/meta.h"
#include "api/summary.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "host/cgroup.h"
#include "host/cgroup_stats.h"
#include "host/cpu_stat.h"
#include "host/disk_usage.h"
#include "host/fs_probe.h"
#include "host/memory_gauge.h"
#include "host/node_slice.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::host {

struct ContainerView {
  std::string name;
  const CgroupDir* cgroup = nullptr;
  Bytes log_size;
};

struct PodView {
  std::string uid;
  api::PodKey pod;
  const CgroupDir* cgroup = nullptr;
  std::string work_directory;             // where its containers write
  std::vector<ContainerView> containers;  // running ones
};

class Observer {
 public:
  Observer(runtime::Loop& loop, const NodeSlice& slice, telemetry::Log log, std::string state_dir);

  /// An error: nothing of the node itself can be read; it names the file.
  Result<api::Summary> observe(std::span<const PodView> pods, Now now);

  /// Memory of the node and of all pods together, from held descriptors; processes, and the file system's sizes
  /// besides: cheap enough for every millisecond.
  Result<api::Summary> observe_node_memory_alone(Now now);

 private:
  /// What is known of one cgroup from earlier passes.
  struct Seen {
    explicit Seen(const CgroupDir& cgroup) : stats(cgroup) {}

    CgroupStats stats;
    std::optional<CpuSample> cpu;
    std::optional<std::uint64_t> cpu_rate;
    std::uint64_t pass = 0;
  };

  Seen& seen(const CgroupDir& cgroup);
  std::optional<api::CpuStats> observe_cpu(const CgroupDir& cgroup, Now now);
  std::optional<api::MemoryStats> observe_memory(const CgroupDir& cgroup, Now now);
  Result<api::MemoryStats> observe_node_memory(Now now) const;
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
  FsProbe fs_;
  DiskUsage disk_;
};

}  // namespace spillway::host
