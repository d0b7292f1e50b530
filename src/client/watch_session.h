// What a watch does next: pure state of one list-then-watch, without I/O. 410: list again now; unavailable: back off,
// jittered, doubling from 0.8 s to 30 s; a normal close resumes from the last resourceVersion.
// Thread: loop. Source: spec "API server contract", 9.12; client-go reflector behaviour.
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
  /// The list failed or the watch ended; nullopt: closed normally.
  Next on_end(const std::optional<Error>& error, Rng& rng);

  const std::string& resource_version() const { return resource_version_; }

 private:
  std::string resource_version_;
  int failures_ = 0;
};

}  // namespace spillway::client
