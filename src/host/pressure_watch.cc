#include "host/pressure_watch.h"

#include "host/kernel_file.h"

#include <fcntl.h>
#include <poll.h>
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

constexpr Duration kLookEvery = seconds(1);
constexpr Duration kRearmEvery = seconds(10);
constexpr Bytes kRearmMove = mebibytes(1);

}  // namespace

PressureWatch::PressureWatch(runtime::Loop& loop, const NodeSlice& slice, agent::Host::Receiver& receiver,
                             telemetry::Log log, MemoryGauge gauge)
    : loop_(loop), slice_(slice), receiver_(receiver), log_(std::move(log)), gauge_(std::move(gauge)) {}

Result<std::unique_ptr<PressureWatch>> PressureWatch::create(runtime::Loop& loop, const NodeSlice& slice,
                                                             agent::Host::Receiver& receiver, telemetry::Log log) {
  SPILLWAY_TRY(gauge, MemoryGauge::open(slice.measured(), slice.memory()));
  std::unique_ptr<PressureWatch> watch(  // NOLINT: private constructor
      new PressureWatch(loop, slice, receiver, std::move(log), std::move(gauge)));
  watch->open_psi();
  watch->open_memory_events();
  watch->sources_.usage_threshold =
      slice.slice().version() == CgroupVersion::kV1 &&
      ::faccessat(slice.measured().fd(Controller::kMemory), "cgroup.event_control", W_OK, AT_EACCESS) == 0;
  return watch;
}

PressureWatch::~PressureWatch() {
  if (timer_) loop_.cancel(*timer_);
  for (UniqueFd* fd : {&psi_, &inotify_, &usage_event_})
    if (*fd) loop_.unwatch_fd(fd->get());
}

void PressureWatch::open_psi() {
  const bool own = slice_.slice().version() == CgroupVersion::kV2 && !slice_.is_host();
  PsiTrigger trigger = own ? open_psi_trigger(slice_.slice().fd(Controller::kMemory), "memory.pressure")
                           : open_psi_trigger(AT_FDCWD, "/proc/pressure/memory");
  sources_.psi = trigger.window;
  psi_ = std::move(trigger.fd);
  if (psi_) loop_.watch_fd(psi_.get(), POLLPRI, [this] { on_psi(); });
}

void PressureWatch::on_psi() {
  pollfd state{psi_.get(), POLLPRI, 0};
  if (::poll(&state, 1, 0) <= 0) return;
  if ((state.revents & POLLERR) != 0) {  // its cgroup is gone
    loop_.unwatch_fd(psi_.get());
    psi_.reset();
    sources_.psi = PsiWindow::kNone;
    return;
  }
  wake("psi");
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
  loop_.watch_fd(inotify_.get(), POLLIN, [this] {
    std::array<char, 4096> events;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    while (::read(inotify_.get(), events.data(), events.size()) > 0) {
    }
    wake("memory.events");
  });
}

void PressureWatch::set_thresholds(std::vector<Bytes> available) {
  std::ranges::sort(available, std::greater<>());
  thresholds_ = std::move(available);
  disarm();
  rearm();
}

void PressureWatch::disarm() {
  if (usage_event_) loop_.unwatch_fd(usage_event_.get());
  usage_event_.reset();
  armed_usage_.reset();
}

/// Usage passes limit - threshold + inactive_file when memory.available passes the threshold.
void PressureWatch::rearm() {
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
  if (!sources_.usage_threshold || thresholds_.empty()) return;
  const Now now = loop_.now();
  const Result<MemoryReading> reading = gauge_.read();
  if (reading) {
    const auto next = std::ranges::find_if(thresholds_, [&](Bytes each) { return each < reading->available; });
    const Bytes usage = reading->usage + reading->available - (next == thresholds_.end() ? thresholds_.back() : *next);
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
  loop_.watch_fd(usage_event_.get(), POLLIN, [this] {
    std::uint64_t times = 0;
    static_cast<void>(!::read(usage_event_.get(), &times, sizeof times));
    wake("memcg-threshold");
  });
  return {};
}

void PressureWatch::wake(std::string_view source) {
  loop_.post([this, alive = std::weak_ptr(alive_), source = std::string(source)] {
    if (!alive.expired()) receiver_.on_host_event(agent::PressureWake{source});
  });
}

}  // namespace spillway::host
