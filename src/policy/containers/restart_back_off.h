// The back-off of a container that ends repeatedly: the wait before it is started again.
// Thread: any (a plain value). Source: Kubernetes docs, "Pod Lifecycle", container restart policy; spec "Pod
// lifecycle", 5.14; vectors pod-lifecycle/restart_backoff.
#pragma once

#include "base/time.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::containers {

struct BackOffBounds {
  Duration first = seconds(10);
  Duration longest = seconds(300);
};

/// The back-off between restarts of one container with one definition.
class RestartBackOff {
 public:
  /// nullopt: it may be started now, and the next wait grows. Else how long a container waits from its end.
  /// `finished`: when its newest instance ended; nullopt: none has.
  std::optional<Duration> ask(Instant now, std::optional<Instant> finished, const BackOffBounds& bounds = {});

  /// The wait of the next start, counted from the end before it. Zero: it may start at once.
  Duration delay() const { return delay_; }

 private:
  Duration delay_{};
  std::optional<Instant> permitted_;  // the last start
};

/// `pod`: "p_ns(u1)".
std::string back_off_message(Duration delay, std::string_view container, std::string_view pod);
std::string back_off_event(std::string_view container, std::string_view pod);

}  // namespace spillway::containers
