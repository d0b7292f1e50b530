#include "host/reaction/pressure_watch.h"

#include "host/kernel/kernel_file.h"
#include "host/reaction/reaction_thread.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

namespace spillway::host {
namespace {

using Source = ReactionThread::Source;

}  // namespace

PressureWatch::PressureWatch(const NodeSlice& slice, int epoll, telemetry::Log log)
    : slice_(slice), epoll_(epoll), log_(std::move(log)) {}

PressureWatch::~PressureWatch() = default;

Result<std::unique_ptr<PressureWatch>> PressureWatch::create(runtime::Loop& loop, const NodeSlice& slice, int epoll,
                                                             telemetry::Log log, ControllerWakes wakes) {
  SPILLWAY_TRY(node, MemoryGauge::open(slice.measured(), slice.memory()));
  std::unique_ptr<PressureWatch> watch(new PressureWatch(slice, epoll, log));  // NOLINT: private constructor
  watch->open_psi();
  if (wakes == ControllerWakes::kLeftOut) return watch;
  watch->open_memory_events();
  if (!UsageThreshold::is_offered(slice.measured())) return watch;
  watch->sources_.usage_threshold = true;
  const auto wake = [raw = watch.get()](int fd) {
    raw->add_waker(fd, EPOLLIN, ReactionThread::tag(Source::kUsageThreshold, fd));
  };
  watch->node_.emplace(loop, slice.measured(), std::move(node), log, wake);
  SPILLWAY_TRY(pods, MemoryGauge::open_with_own_limit(slice.kubepods(), slice.memory()));
  watch->pods_.emplace(loop, slice.kubepods(), std::move(pods), std::move(log), wake);
  return watch;
}

void PressureWatch::set_thresholds(Amounts available, eviction::MemoryEstimator by) {
  if (node_) node_->set(std::move(available.node), by);
  if (pods_) pods_->set(std::move(available.pods), by);
}

void PressureWatch::add_waker(int fd, std::uint32_t events, std::uint64_t tag) const {
  epoll_event event{};
  event.events = events | EPOLLET;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0)
    log_.warning("pressure source not watched", {{"errno", errno}});
}

void PressureWatch::open_psi() {
  const bool own = slice_.slice().version() == CgroupVersion::kV2 && !slice_.is_host();
  PsiTrigger trigger = own ? open_psi_trigger(slice_.slice().fd(Controller::kMemory), "memory.pressure")
                           : open_psi_trigger(AT_FDCWD, "/proc/pressure/memory");
  sources_.psi = trigger.window;
  psi_ = std::move(trigger.fd);
  if (psi_) add_waker(psi_.get(), EPOLLPRI, ReactionThread::tag(Source::kPsi, psi_.get()));
}

void PressureWatch::open_memory_events() {
  if (slice_.slice().version() != CgroupVersion::kV2) return;
  inotify_.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  const std::string file = slice_.kubepods().file_path(Controller::kMemory) + "/memory.events";
  if (!inotify_ || ::inotify_add_watch(inotify_.get(), file.c_str(), IN_MODIFY) < 0) {
    inotify_.reset();
    return;
  }
  sources_.memory_events = true;
  add_waker(inotify_.get(), EPOLLIN, ReactionThread::tag(Source::kMemoryEvents, inotify_.get()));
}

}  // namespace spillway::host
