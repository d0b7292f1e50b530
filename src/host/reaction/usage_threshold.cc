#include "host/reaction/usage_threshold.h"

#include "host/kernel/kernel_file.h"
#include "policy/eviction/notifier.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <utility>

namespace spillway::host {
namespace {

constexpr Duration kUsageCheckInterval = seconds(1);
constexpr Duration kRearmEvery = seconds(10);
constexpr Bytes kRearmMove = mebibytes(1);

}  // namespace

UsageThreshold::~UsageThreshold() {
  if (timer_) loop_.cancel(*timer_);
}

bool UsageThreshold::is_offered(const CgroupDir& cgroup) {
  return cgroup.version() == CgroupVersion::kV1 &&
         ::faccessat(cgroup.fd(Controller::kMemory), "cgroup.event_control", W_OK, AT_EACCESS) == 0;
}

void UsageThreshold::set(std::vector<Bytes> available, eviction::MemoryEstimator by) {
  by_ = by;
  std::ranges::sort(available, std::greater<>());
  thresholds_ = std::move(available);
  disarm();
  rearm();
}

void UsageThreshold::disarm() {
  event_.reset();  // closing also removes the descriptor from the epoll set
  armed_usage_.reset();
}

/// Usage passes what it is now, and what is left until then, when what is available passes the threshold.
void UsageThreshold::rearm() {
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
  if (refused_ || thresholds_.empty()) return;
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
        refused_ = true;
        return log_.warning("memory threshold not armed",
                            {{"cgroup", cgroup_.path()}, {"error", armed.error().text()}});
      }
      armed_at_ = now.mono;
    }
  }
  timer_ = loop_.at(now.mono + kUsageCheckInterval, [this] {
    timer_.reset();
    rearm();
  });
}

Outcome UsageThreshold::arm(Bytes usage) {
  disarm();
  UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return errno_error("eventfd", errno);
  const UniqueFd file(::openat(cgroup_.fd(Controller::kMemory), "memory.usage_in_bytes", O_RDONLY | O_CLOEXEC));
  if (!file) return errno_error("memory.usage_in_bytes", errno);
  SPILLWAY_TRY_VOID(cgroup_.write(Controller::kMemory, "cgroup.event_control",
                                  fmt::format("{} {} {}", event.get(), file.get(), usage.count())));
  event_ = std::move(event);
  armed_usage_ = usage;
  on_armed_(event_.get());
  return {};
}

}  // namespace spillway::host
