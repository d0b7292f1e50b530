#include "apps/commands/commands.h"
#include "apps/process/terminal.h"
#include "base/unique_fd.h"

#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace spillway::apps {
namespace {

constexpr milliseconds kTick{10};
constexpr std::size_t kPage = 4096;

int fail(const char* what) {
  print_err("spillway: stress: {}: {}\n", what, std::strerror(errno));
  return cli::kExitFailure;
}

timespec to_timespec(Duration duration) {
  const auto whole = std::chrono::duration_cast<seconds>(duration);
  return {.tv_sec = whole.count(), .tv_nsec = (duration - whole).count()};
}

/// Blocks until the timer fires; false on an error.
bool wait(int timer, Duration interval) {
  const itimerspec once{.it_interval = {}, .it_value = to_timespec(interval)};
  if (timerfd_settime(timer, 0, &once, nullptr) != 0) return false;
  std::uint64_t fired = 0;
  while (read(timer, &fired, sizeof fired) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

}  // namespace

int run_stress(const cli::StressCommand& command) {
  const UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  if (!timer) return fail("timerfd_create");
  const auto size = static_cast<std::size_t>(command.memory.count());
  void* area = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) return fail("mmap");  // NOLINT: the macro's own cast
  madvise(area, size, MADV_NOHUGEPAGE);         // the rate is then even; a refusal changes nothing else
  auto* bytes = static_cast<volatile char*>(area);

  const bool at_once = command.rate_per_second == Bytes{0};
  const auto per_tick = static_cast<std::size_t>(command.rate_per_second.count() * kTick.count() / 1000);
  const std::size_t step = at_once ? size : std::max(per_tick, kPage);
  for (std::size_t touched = 0; touched < size;) {
    const std::size_t until = std::min(touched + step, size);
    for (; touched < until; touched += kPage) bytes[touched] = 1;
    if (touched < size && !wait(timer.get(), kTick)) return fail("timer");
  }
  print_out("holding {} bytes for {} s\n", size, std::chrono::duration_cast<seconds>(command.hold).count());
  std::fflush(stdout);
  return wait(timer.get(), command.hold) ? cli::kExitOk : fail("timer");
}

}  // namespace spillway::apps
