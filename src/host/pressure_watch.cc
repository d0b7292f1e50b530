#include "host/pressure_watch.h"

#include "host/kernel_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::host {
namespace {

constexpr Bytes kFallFloor{4'000'000'000};  // bytes per second
constexpr Duration kPollMin = milliseconds(1);
constexpr Duration kPollMax = seconds(1);
constexpr Duration kPollBelow = milliseconds(10);
constexpr Duration kRemindEvery = milliseconds(500);
constexpr Duration kExactEvery = seconds(1);
constexpr Duration kFallMemory = seconds(10);
constexpr Duration kRearmEvery = seconds(10);
constexpr Bytes kRearmMove = mebibytes(1);
constexpr std::size_t kFallsMax = 64;

}  // namespace

Duration poll_interval_of(Bytes headroom, Bytes steepest_fall_per_second) {
  if (headroom <= Bytes{0}) return kPollMin;
  const std::int64_t fall = std::max(kFallFloor.count(), 2 * steepest_fall_per_second.count());
  const double half_seconds = static_cast<double>(headroom.count()) / static_cast<double>(fall) / 2.0;
  const Duration interval{static_cast<std::int64_t>(std::min(half_seconds, 1.0) * 1e9)};
  return std::clamp<Duration>(interval, kPollMin, kPollMax);
}

void FallMeter::add(Bytes available, Instant at) {
  const auto before = std::exchange(last_, std::pair(at, available));
  while (!falls_.empty() && at - falls_.front().at > kFallMemory) falls_.pop_front();
  if (!before || at <= before->first || available >= before->second) return;
  const double fallen = static_cast<double>((before->second - available).count());
  const double elapsed = std::chrono::duration<double>(at - before->first).count();
  const Bytes per_second{static_cast<std::int64_t>(std::min(fallen / elapsed, 1e15))};
  while (!falls_.empty() && falls_.back().per_second <= per_second) falls_.pop_back();
  if (falls_.size() < kFallsMax) falls_.push_back({at, per_second});
}

Bytes FallMeter::steepest(Instant now) const {
  for (const Fall& fall : falls_)
    if (now - fall.at <= kFallMemory) return fall.per_second;
  return Bytes{0};
}

PressureWatch::PressureWatch(runtime::Loop& loop, const NodeSlice& slice, agent::Host::Receiver& receiver,
                             telemetry::Log log, MemoryGauge gauge)
    : loop_(loop), slice_(slice), receiver_(receiver), log_(std::move(log)), gauge_(std::move(gauge)) {}

Result<std::unique_ptr<PressureWatch>> PressureWatch::create(runtime::Loop& loop, const NodeSlice& slice,
                                                             agent::Host::Receiver& receiver, telemetry::Log log) {
  SPILLWAY_TRY(gauge, MemoryGauge::open(slice));
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
  passed_ = 0;
  armed_usage_.reset();
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
  if (!thresholds_.empty()) poll();
}

std::optional<Bytes> PressureWatch::next_threshold(Bytes available) const {
  for (const Bytes threshold : thresholds_)
    if (threshold <= available) return threshold;
  return std::nullopt;
}

void PressureWatch::poll() {
  const Instant now = loop_.now().mono;
  Result<MemoryReading> reading = gauge_.read_quick();
  const auto below = [this](Bytes available) {
    return static_cast<std::size_t>(
        std::ranges::count_if(thresholds_, [&](Bytes threshold) { return available < threshold; }));
  };
  const bool crossing = reading && below(reading->available) > passed_;
  if (crossing || !last_exact_ || now - *last_exact_ >= kExactEvery) {
    reading = gauge_.read_exact();
    last_exact_ = now;
  }
  if (!reading && !failed_) log_.warning("memory gauge unreadable", {{"error", reading.error().text()}});
  failed_ = !reading;
  interval_ = kPollMax;
  if (reading) {
    falls_.add(reading->available, now);
    const std::size_t before = std::exchange(passed_, below(reading->available));
    const bool remind = passed_ > 0 && (!last_wake_ || now - *last_wake_ >= kRemindEvery);
    if (passed_ > before || remind) wake("poll");
    const std::optional<Bytes> next = next_threshold(reading->available);
    if (next) interval_ = poll_interval_of(reading->available - *next, falls_.steepest(now));
    if (passed_ > 0) interval_ = next ? std::min(interval_, kPollBelow) : kPollBelow;
    arm_usage_threshold(*reading, now);
  }
  timer_ = loop_.at(now + interval_, [this] {
    timer_.reset();
    poll();
  });
}

/// The kernel then tells when usage passes what makes the next threshold: usage = limit - threshold + inactive_file.
void PressureWatch::arm_usage_threshold(const MemoryReading& reading, Instant now) {
  if (!sources_.usage_threshold) return;
  const std::optional<Bytes> next = next_threshold(reading.available);
  if (!next) return;
  const Bytes usage = reading.usage + reading.available - *next;
  const bool moved = !armed_usage_ || usage - *armed_usage_ > kRearmMove || *armed_usage_ - usage > kRearmMove;
  if (!moved && now - armed_at_ < kRearmEvery) return;
  if (usage_event_) loop_.unwatch_fd(usage_event_.get());
  usage_event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const CgroupDir& cgroup = slice_.measured();
  const UniqueFd usage_file(::openat(cgroup.fd(Controller::kMemory), "memory.usage_in_bytes", O_RDONLY | O_CLOEXEC));
  if (!usage_event_ || !usage_file) return;
  const Outcome armed = cgroup.write(Controller::kMemory, "cgroup.event_control",
                                     fmt::format("{} {} {}", usage_event_.get(), usage_file.get(), usage.count()));
  if (!armed) {
    sources_.usage_threshold = false;
    usage_event_.reset();
    log_.warning("memory threshold not armed", {{"error", armed.error().text()}});
    return;
  }
  armed_usage_ = usage;
  armed_at_ = now;
  loop_.watch_fd(usage_event_.get(), POLLIN, [this] {
    std::uint64_t times = 0;
    static_cast<void>(::read(usage_event_.get(), &times, sizeof times));
    wake("memcg-threshold");
  });
}

void PressureWatch::wake(std::string_view source) {
  last_wake_ = loop_.now().mono;
  loop_.post([this, alive = std::weak_ptr(alive_), source = std::string(source)] {
    if (!alive.expired()) receiver_.on_host_event(agent::PressureWake{source});
  });
}

}  // namespace spillway::host
