#include "host/reaction/pressure_watch.h"

#include "host/kernel/kernel_file.h"
#include "host/reaction/reaction_thread.h"
#include "policy/eviction/notifier.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace spillway::host {
namespace {

using Source = ReactionThread::Source;

constexpr Duration kLookEvery = seconds(1);
constexpr Duration kRearmEvery = seconds(10);
constexpr Bytes kRearmMove = mebibytes(1);

}  // namespace

PressureWatch::PressureWatch(runtime::Loop& loop, const NodeSlice& slice, int epoll, telemetry::Log log,
                             MemoryGauge gauge)
    : loop_(loop), slice_(slice), epoll_(epoll), log_(std::move(log)), gauge_(std::move(gauge)) {}

Result<std::unique_ptr<PressureWatch>> PressureWatch::create(runtime::Loop& loop, const NodeSlice& slice, int epoll,
                                                             telemetry::Log log, ControllerWakes wakes) {
  SPILLWAY_TRY(gauge, MemoryGauge::open(slice.measured(), slice.memory()));
  std::unique_ptr<PressureWatch> watch(  // NOLINT: private constructor
      new PressureWatch(loop, slice, epoll, std::move(log), std::move(gauge)));
  watch->open_psi();
  if (wakes == ControllerWakes::kLeftOut) return watch;
  watch->open_memory_events();
  watch->sources_.usage_threshold =
      slice.slice().version() == CgroupVersion::kV1 &&
      ::faccessat(slice.measured().fd(Controller::kMemory), "cgroup.event_control", W_OK, AT_EACCESS) == 0;
  return watch;
}

PressureWatch::~PressureWatch() {
  if (timer_) loop_.cancel(*timer_);
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

void PressureWatch::set_thresholds(std::vector<Bytes> available, eviction::MemoryEstimator by) {
  by_ = by;
  std::ranges::sort(available, std::greater<>());
  thresholds_ = std::move(available);
  disarm();
  rearm();
}

void PressureWatch::disarm() {
  usage_event_.reset();  // and it leaves the epoll set
  armed_usage_.reset();
}

/// Usage passes what it is now, and what is left until then, when memory.available passes the threshold.
void PressureWatch::rearm() {
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
  if (!sources_.usage_threshold || thresholds_.empty()) return;
  const Now now = loop_.now();
  const Figures figures = by_ == eviction::MemoryEstimator::kWorkingSet ? Figures::kWorkingSet : Figures::kEverything;
  const Result<MemoryReading> reading = gauge_.read(figures);
  const std::optional<Bytes> available = reading ? reading->left_by(by_) : std::nullopt;
  if (available) {
    const auto next = std::ranges::find_if(thresholds_, [&](Bytes each) { return each < *available; });
    const Bytes limit = next == thresholds_.end() ? thresholds_.back() : *next;
    const Bytes usage{
        eviction::usage_at_threshold(api::Quantity::of_bytes(limit), (reading->usage + *available).count(), 0)};
    const bool moved = !armed_usage_ || usage - *armed_usage_ >= kRearmMove || *armed_usage_ - usage >= kRearmMove;
    if (moved || now.mono - armed_at_ >= kRearmEvery) {
      const Outcome armed = arm(usage);
      if (!armed) {
        sources_.usage_threshold = false;
        return log_.warning("memory threshold not armed", {{"error", armed.error().text()}});
      }
      armed_at_ = now.mono;
    }
  }
  timer_ = loop_.at(now.mono + kLookEvery, [this] {
    timer_.reset();
    rearm();
  });
}

Outcome PressureWatch::arm(Bytes usage) {
  disarm();
  const CgroupDir& cgroup = slice_.measured();
  UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return errno_error("eventfd", errno);
  const UniqueFd file(::openat(cgroup.fd(Controller::kMemory), "memory.usage_in_bytes", O_RDONLY | O_CLOEXEC));
  if (!file) return errno_error("memory.usage_in_bytes", errno);
  SPILLWAY_TRY_VOID(cgroup.write(Controller::kMemory, "cgroup.event_control",
                                 fmt::format("{} {} {}", event.get(), file.get(), usage.count())));
  usage_event_ = std::move(event);
  armed_usage_ = usage;
  add_waker(usage_event_.get(), EPOLLIN, ReactionThread::tag(Source::kUsageThreshold, usage_event_.get()));
  return {};
}

}  // namespace spillway::host
