// One upgraded connection of a client with something of this node. Thread: loop.
#pragma once

#include "api/exchange/upgrade.h"

#include <string>

namespace spillway::host {

class StreamSession : public api::UpgradedInput {
 public:
  /// Once the connection is upgraded.
  virtual void open() = 0;
  /// True if the session has ended and may be removed.
  virtual bool over() const = 0;
  /// Ends the session at once, as when the client disconnects.
  virtual void cut() = 0;
};

/// An answer to a client that is not upgraded.
void refuse_stream(api::ResponseSink& sink, int status, const std::string& text);

}  // namespace spillway::host
