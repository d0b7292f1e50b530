#include "host/memory_release.h"

#include "host/thread_rank.h"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace spillway::host {
namespace {

constexpr long kProcessMrelease = 448;  // older C libraries do not name it

void ring(int eventfd) noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(eventfd, &one, sizeof one));
}

}  // namespace

MemoryRelease::MemoryRelease() : wake_(::eventfd(0, EFD_CLOEXEC)) {
  for (std::atomic<int>& slot : waiting_) slot.store(-1);
  thread_ = std::thread([this] { run(); });
}

MemoryRelease::~MemoryRelease() {
  stop_.store(true);
  ring(wake_.get());
  thread_.join();
  for (std::atomic<int>& slot : waiting_) UniqueFd(slot.exchange(-1)).reset();
}

void MemoryRelease::release(const KilledProcesses& killed) noexcept {
  std::size_t slot = 0;
  bool any = false;
  for (std::size_t i = 0; i < killed.count; ++i) {
    while (slot < waiting_.size() && waiting_[slot].load() >= 0) ++slot;
    if (slot == waiting_.size()) break;
    const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, killed.pids[i], 0U));
    if (pidfd < 0) continue;
    waiting_[slot++].store(pidfd);
    any = true;
  }
  if (any) ring(wake_.get());
}

void MemoryRelease::run() noexcept {
  get_ahead();
  for (;;) {
    std::uint64_t times = 0;
    static_cast<void>(!::read(wake_.get(), &times, sizeof times));
    if (stop_.load()) return;
    for (std::atomic<int>& slot : waiting_) {
      const UniqueFd pidfd(slot.exchange(-1));
      // It refuses processes that are not being killed, so a recycled pid is in no danger.
      if (pidfd) static_cast<void>(::syscall(kProcessMrelease, pidfd.get(), 0U));
    }
  }
}

}  // namespace spillway::host
