// Decides the next step of a watch: pure state of one list-then-watch, without I/O. After 410 it lists again, the first
// time at once. When the server is unavailable or silent it backs off, jittered, doubling from 0.8 s to 30 s, and
// resumes. A normal close resumes at once from the last resourceVersion unless the watch delivered nothing. Thread:
// loop. Source: spec "API server contract", 9.12; client-go reflector behaviour.
#pragma once

#include "base/error.h"
#include "base/rng.h"
#include "base/time.h"

#include <optional>
#include <string>

namespace spillway::client {

class WatchSession {
 public:
  struct Next {
    bool relist = false;
    Duration wait{};
  };

  /// A list answered with this resourceVersion.
  void on_listed(std::string resource_version);
  /// An event or bookmark carried this resourceVersion.
  void on_progress(std::string resource_version);
  /// The list failed or the watch ended; nullopt: closed normally. kTimeout: nothing arrived for too long; when that
  /// happens twice in a row the resourceVersion is suspected (a restored store) and the next step is a list.
  Next on_end(const std::optional<Error>& error, Rng& rng);

  const std::string& resource_version() const { return resource_version_; }

 private:
  Duration back_off(Rng& rng);

  std::string resource_version_;  // empty: list first
  int failures_ = 0;              // ends in a row without an event
};

}  // namespace spillway::client
