// Frees the memory of processes that are being killed without waiting for them to get the processor themselves:
// process_mrelease(2), on a thread of its own, because it takes as long as there is memory to free. Thread: release()
// from one thread, which never waits; the rest the loop. Where the kernel has no such call nothing happens.
// Source: spec "Wake-up sources", 6; process_mrelease(2).
#pragma once

#include "host/reaction_target.h"
#include "host/unique_fd.h"

#include <array>
#include <atomic>
#include <thread>

namespace spillway::host {

class MemoryRelease {
 public:
  MemoryRelease();
  ~MemoryRelease();
  MemoryRelease(const MemoryRelease&) = delete;
  MemoryRelease& operator=(const MemoryRelease&) = delete;

  /// Processes beyond what waits already are left to the kernel.
  void release(const KilledProcesses& killed) noexcept;

 private:
  void run() noexcept;

  UniqueFd wake_;
  std::atomic<bool> stop_{false};
  std::array<std::atomic<int>, 64> waiting_;  // pidfds; -1: free
  std::thread thread_;
};

}  // namespace spillway::host
