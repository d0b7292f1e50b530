// The slices of pods, which systemd makes, limits and removes: one call at a time, in order, on a thread of its own.
// Thread: loop; outcomes are delivered on the loop, later. Bounds: kQueueMax calls that wait. Source: Kubernetes docs,
// "Container Runtimes" (the systemd cgroup driver).
#pragma once

#include "host/cgroup/cgroup_limits.h"
#include "host/kernel/blocking_thread.h"
#include "host/systemd/systemd_bus.h"
#include "policy/cgroups/cgroup_name.h"
#include "runtime/loop.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace spillway::host {

class SliceUnits {
 public:
  static constexpr std::size_t kQueueMax = 10'000;
  using Done = std::move_only_function<void(Outcome)>;

  /// `bus`: of the start of the process; the thread has it from now on.
  SliceUnits(runtime::Loop& loop, CgroupVersion version, std::unique_ptr<SystemdBus> bus);

  /// Starts the slice with these limits; an existing one gets them. `done` is called once.
  void start(const cgroups::SliceUnit& unit, const CgroupLimits& limits, Done done);
  void limit(const std::string& unit, const CgroupLimits& limits, Done done);
  void stop(const std::string& unit, Done done);

 private:
  void submit(std::function<Outcome(SystemdBus&)> call, Done done);

  runtime::Loop& loop_;
  CgroupVersion version_;
  std::shared_ptr<SystemdBus> bus_;
  BlockingThread thread_;
};

/// Starts the slice at the start of a process, and waits.
Outcome start_slice(SystemdBus& bus, const cgroups::SliceUnit& unit, const CgroupLimits& limits, CgroupVersion version);

}  // namespace spillway::host
