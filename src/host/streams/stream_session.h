// A session over one upgraded connection of a client: exec, attach or port-forward. Thread: loop.
#pragma once

#include "api/exchange/upgrade.h"
#include "base/time.h"

#include <string>

namespace spillway::host {

class StreamSession : public api::UpgradedInput {
 public:
  /// Upstream's streamingConnectionIdleTimeout.
  static constexpr Duration kIdleMax = hours(4);

  /// A session without data for this long is cut. Called before open().
  void set_idle_max(Duration idle_max) { idle_max_ = idle_max; }

  /// Called once the connection is upgraded.
  virtual void open() = 0;
  /// True if the session has ended and may be removed.
  virtual bool over() const = 0;
  /// Ends the session at once, as when the client disconnects.
  virtual void cut() = 0;

 protected:
  Duration idle_max() const { return idle_max_; }

 private:
  Duration idle_max_ = kIdleMax;
};

/// An answer to a client that is not upgraded.
void refuse_stream(api::ResponseSink& sink, int status, const std::string& text);

}  // namespace spillway::host
