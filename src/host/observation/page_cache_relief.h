// Reclaims page cache from the cgroups of pods, before one of them is evicted for memory (policy/eviction/relief.h).
// Version 2: memory.reclaim, and with "swappiness=0", so that no page is swapped out instead. Version 1 cannot reclaim
// a part of a cgroup's cache: memory.force_empty reclaims all of it, so it is written only for cgroups without a
// process, which ended containers leave behind.
// Thread: loop; the files are read and written on a thread of its own, since the kernel may wait for a disk.
// Source: kernel documents "cgroup-v2.rst", memory.reclaim, and "cgroup-v1/memory.rst", 5.1.
#pragma once

#include "agent/contract/ports.h"
#include "host/cgroup/cgroup.h"
#include "host/kernel/blocking_thread.h"
#include "host/observation/observer.h"
#include "policy/eviction/cache_reclaim.h"
#include "runtime/loop.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace spillway::host {

/// Bytes of files in `stat` (the text of memory.stat), inactive and active, of the cgroup and those below it; nullopt:
/// the text has no such line.
std::optional<Bytes> parse_page_cache(CgroupVersion version, std::string_view stat);

/// Bytes of files that were reclaimed and read again, likewise; nullopt: the kernel does not count them.
std::optional<Bytes> parse_refaulted(CgroupVersion version, std::string_view stat);

/// Executes one order, and waits for the kernel.
eviction::ReliefOutcome reclaim_page_cache(const CgroupDir& pod, const eviction::CacheReclaim& order);

class PageCacheRelief {
 public:
  explicit PageCacheRelief(runtime::Loop& loop) : loop_(loop) {}

  /// Carries the orders out one after the other, then calls `done` on the loop. Pods that are not in `pods` are left
  /// out of the answer.
  void run(const agent::RelieveMemory& command, std::span<const PodView> pods,
           std::function<void(agent::Relieved)> done);

 private:
  runtime::Loop& loop_;
  std::optional<BlockingThread> thread_;  // begun with the first order
};

}  // namespace spillway::host
