// The kernel's notifications about memory, which make the watching thread read before its time: PSI triggers, inotify
// on memory.events (version 2), usage thresholds (version 1). They are opened and re-armed here and put into the
// thread's epoll set. A wake means "read now", never "kill". Thread: loop. Sources that the kernel does not offer are
// named states, not errors; the agent's own polling needs none of them. Source: spec "Wake-up sources", 2, 3, 6.
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "host/cgroup/node_slice.h"
#include "host/reaction/psi.h"
#include "host/reaction/usage_threshold.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace spillway::host {

class PressureWatch {
 public:
  /// The notifications of the memory controller: usage thresholds and memory.events.
  enum class ControllerWakes { kUsed, kLeftOut };

  /// Event sources that work on this machine.
  struct Sources {
    PsiWindow psi = PsiWindow::kNone;
    bool memory_events = false;
    bool usage_threshold = false;
  };

  /// `epoll`: the set that gets the descriptors, edge-triggered and tagged (ReactionThread::tag); it outlives this
  /// object or has no waiting thread any more. Errors: the node's memory cannot be read.
  static Result<std::unique_ptr<PressureWatch>> create(runtime::Loop& loop, const NodeSlice& slice, int epoll,
                                                       telemetry::Log log,
                                                       ControllerWakes wakes = ControllerWakes::kUsed);
  ~PressureWatch();
  PressureWatch(const PressureWatch&) = delete;
  PressureWatch& operator=(const PressureWatch&) = delete;

  /// Amounts of memory.available, and of allocatableMemory.available, which covers all pods together.
  struct Amounts {
    std::vector<Bytes> node = {};
    std::vector<Bytes> pods = {};
  };

  /// Amounts at which to wake, if the kernel supports it (version 1). Empty: none.
  void set_thresholds(Amounts available, eviction::MemoryEstimator by = eviction::MemoryEstimator::kWorkingSet);

  const Sources& sources() const { return sources_; }

 private:
  PressureWatch(const NodeSlice& slice, int epoll, telemetry::Log log);

  void open_psi();
  void open_memory_events();
  void add_waker(int fd, std::uint32_t events, std::uint64_t tag) const;

  const NodeSlice& slice_;
  int epoll_;
  telemetry::Log log_;
  Sources sources_;
  UniqueFd psi_;
  UniqueFd inotify_;
  std::optional<UsageThreshold> node_;  // version 1
  std::optional<UsageThreshold> pods_;  // version 1
};

}  // namespace spillway::host
