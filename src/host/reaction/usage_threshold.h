// The kernel's usage threshold of one cgroup of version 1, for the eviction thresholds: the highest amount below the
// present one is armed, and armed anew as the page cache changes.
// Thread: loop. Source: kernel docs, cgroup-v1/memory, "Memory thresholds"; spec "Wake-up sources", 2, 3; spec
// "Eviction manager", 11.
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "host/cgroup/cgroup.h"
#include "host/reaction/memory_gauge.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <functional>
#include <optional>
#include <vector>

namespace spillway::host {

class UsageThreshold {
 public:
  /// Receives every descriptor that wakes when the threshold is passed; it is closed when another one is armed.
  using Armed = std::function<void(int fd)>;

  /// `cgroup` must outlive this object.
  UsageThreshold(runtime::Loop& loop, const CgroupDir& cgroup, MemoryGauge gauge, telemetry::Log log, Armed armed)
      : loop_(loop), cgroup_(cgroup), gauge_(std::move(gauge)), log_(std::move(log)), on_armed_(std::move(armed)) {}

  ~UsageThreshold();
  UsageThreshold(const UsageThreshold&) = delete;
  UsageThreshold& operator=(const UsageThreshold&) = delete;

  /// True if the kernel has thresholds for this cgroup, and we may set them.
  static bool is_offered(const CgroupDir& cgroup);

  /// Sets the amounts of available memory at which to wake. Empty: none.
  void set(std::vector<Bytes> available, eviction::MemoryEstimator by);

 private:
  void rearm();
  void disarm();
  Outcome arm(Bytes usage);

  runtime::Loop& loop_;
  const CgroupDir& cgroup_;
  MemoryGauge gauge_;
  telemetry::Log log_;
  Armed on_armed_;
  std::vector<Bytes> thresholds_;  // descending
  eviction::MemoryEstimator by_ = eviction::MemoryEstimator::kWorkingSet;
  bool refused_ = false;  // by the kernel
  UniqueFd event_;
  std::optional<Bytes> armed_usage_;
  Instant armed_at_;
  std::optional<runtime::Loop::TimerId> timer_;
};

}  // namespace spillway::host
