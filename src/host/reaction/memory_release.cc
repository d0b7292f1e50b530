#include "host/reaction/memory_release.h"

#include "host/kernel/thread_rank.h"
#include "runtime/clock.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace spillway::host {
namespace {

using runtime::RealClock;

constexpr long kProcessMrelease = 448;  // older C libraries do not name it
constexpr Duration kBracedLimit = milliseconds(20);

void wake_releaser(int eventfd) noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(eventfd, &one, sizeof one));
}

}  // namespace

MemoryRelease::MemoryRelease(int survived) : survived_(survived), wake_(::eventfd(0, EFD_CLOEXEC)) {
  for (std::atomic<int>& slot : waiting_) slot.store(-1);
  thread_ = std::thread([this] { run(); });
}

MemoryRelease::~MemoryRelease() {
  stop_.store(true);
  wake_releaser(wake_.get());
  thread_.join();
  for (std::atomic<int>& slot : waiting_) UniqueFd(slot.exchange(-1)).reset();
}

void MemoryRelease::brace() noexcept {
  if (!braced_.exchange(true)) wake_releaser(wake_.get());
}

void MemoryRelease::relax() noexcept {
  braced_.store(false);
}

void MemoryRelease::release(DyingProcesses dying) noexcept {
  std::size_t slot = 0;
  for (UniqueFd& pidfd : dying.held()) {
    while (slot < waiting_.size() && waiting_[slot].load() >= 0) ++slot;
    if (slot == waiting_.size()) break;
    waiting_[slot++].store(pidfd.release());
  }
  braced_.store(false);
  if (slot > 0) wake_releaser(wake_.get());
}

bool MemoryRelease::free_waiting() noexcept {
  bool any = false;
  for (std::atomic<int>& slot : waiting_) {
    const UniqueFd pidfd(slot.exchange(-1));
    if (!pidfd) continue;
    any = true;
    // The call refuses processes that are not being killed, so a recycled pid is safe.
    if (::syscall(kProcessMrelease, pidfd.get(), 0U) != 0 && errno == EINVAL) wake_releaser(survived_);
  }
  return any;
}

void MemoryRelease::run() noexcept {
  get_ahead();
  for (;;) {
    std::uint64_t times = 0;
    static_cast<void>(!::read(wake_.get(), &times, sizeof times));
    if (stop_.load()) return;
    const Instant limit = RealClock::read_mono() + kBracedLimit;
    while (!free_waiting() && braced_.load() && RealClock::read_mono() < limit) ::sched_yield();
  }
}

}  // namespace spillway::host
