// Frees the memory of processes that are being killed without waiting for them to get the processor themselves:
// process_mrelease(2), on a thread of its own, because it takes as long as there is memory to free. The call works only
// until a process has begun to take its memory down itself, which it then does alone; so the thread is awake before the
// kill. Thread: brace(), release() and relax() from one thread, which never waits; the rest the loop. Where the
// kernel has no such call nothing happens.
// Source: spec "Wake-up sources", 6; process_mrelease(2).
#pragma once

#include "host/reaction/dying_processes.h"

#include <array>
#include <atomic>
#include <thread>

namespace spillway::host {

class MemoryRelease {
 public:
  /// `survived`: an eventfd that is rung when a process was not being killed after all, as it has a handler of its own.
  explicit MemoryRelease(int survived);
  ~MemoryRelease();
  MemoryRelease(const MemoryRelease&) = delete;
  MemoryRelease& operator=(const MemoryRelease&) = delete;

  /// A kill is a matter of microseconds: the thread waits awake for release() or relax(), for a few milliseconds.
  void brace() noexcept;
  void relax() noexcept;

  /// Queues the processes; if the queue is full, the kernel alone frees their memory.
  void release(DyingProcesses dying) noexcept;

 private:
  void run() noexcept;
  bool free_waiting() noexcept;

  int survived_;
  UniqueFd wake_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> braced_{false};
  std::array<std::atomic<int>, DyingProcesses::kCountMax> waiting_;  // pidfds; -1: free
  std::thread thread_;
};

}  // namespace spillway::host
