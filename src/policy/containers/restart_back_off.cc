#include "policy/containers/restart_back_off.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::containers {
namespace {

/// 10s, 1m20s, 5m0s.
std::string text_of(Duration delay) {
  const auto whole = std::chrono::duration_cast<seconds>(delay).count();
  return whole < 60 ? fmt::format("{}s", whole) : fmt::format("{}m{}s", whole / 60, whole % 60);
}

}  // namespace

std::optional<Duration> RestartBackOff::ask(Instant now, std::optional<Instant> finished, const BackOffBounds& bounds) {
  if (!finished) return std::nullopt;
  const bool forgotten = !permitted_ || *finished - *permitted_ > 2 * bounds.longest;
  if (!forgotten && now - *finished < delay_) return delay_;
  delay_ = forgotten ? bounds.first : std::min(delay_ * 2, bounds.longest);
  permitted_ = now;
  return std::nullopt;
}

std::string back_off_message(Duration delay, std::string_view container, std::string_view pod) {
  return fmt::format("back-off {} restarting failed container={} pod={}", text_of(delay), container, pod);
}

std::string back_off_event(std::string_view container, std::string_view pod) {
  return fmt::format("Back-off restarting failed container {} in pod {}", container, pod);
}

}  // namespace spillway::containers
