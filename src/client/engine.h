// The contract between an engine that talks to an API server and whatever drives it: the real loop (runtime/) or the
// simulator (sim/). An engine does no I/O: it is given events with the time, and returns commands. Thread: loop.
// Ordering: events of one CallId arrive in order; commands are executed in the order they were left.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spillway::client {

/// Names a call or a watch within one engine; never reused by it.
using CallId = std::uint64_t;

// Commands.

struct SendCall {
  CallId id = 0;
  api::Request request;
  // time that the request waited for the rate limit; absent: its kind is not limited
  std::optional<Duration> rate_limited_for = {};
};

struct OpenWatch {
  CallId id = 0;
  api::Request request;
};

/// Ends a watch; no event of this watch follows.
struct CloseWatch {
  CallId id = 0;
};

using ApiCommand = std::variant<SendCall, OpenWatch, CloseWatch>;

// Events.

/// The answer to a call. An error means that no answer arrived (connection refused, time-out), not an HTTP status.
struct CallDone {
  CallId id = 0;
  Result<api::Response> response;
};

/// One event of a watch: {"type":…,"object":…} as one complete JSON document, parsed, or both.
struct WatchFrame {
  CallId id = 0;
  std::shared_ptr<const std::string> document;  // null if the event did not arrive as JSON
  api::WatchDocumentPtr event = {};             // the parsed event; null if it arrived as bytes only
};

/// The watch is over. An error carries the API's reason (kExpired for 410) or kServiceUnavailable.
struct WatchEnded {
  CallId id = 0;
  std::optional<Error> error;
};

using ApiEvent = std::variant<CallDone, WatchFrame, WatchEnded>;

class ApiEngine {
 public:
  virtual ~ApiEngine() = default;

  /// The name in logs and the User-Agent header: "node-lifecycle-controller".
  virtual std::string_view name() const = 0;
  virtual void start(Now now) = 0;
  virtual void on_api_event(const ApiEvent& event, Now now) = 0;
  /// Called at or after next_wakeup(); may be called early.
  virtual void on_wakeup(Now now) = 0;
  virtual std::optional<Instant> next_wakeup() const = 0;
  /// Commands since the last call, in order.
  virtual std::vector<ApiCommand> take_api_commands() = 0;
};

/// Port: carries commands to an API server and events back. Implemented in process, over HTTPS, and by the simulated
/// network.
class Transport {
 public:
  class Receiver {
   public:
    virtual ~Receiver() = default;
    virtual void on_api_event(ApiEvent event) = 0;
  };

  virtual ~Transport() = default;
  /// The receiver must outlive the transport or be dropped with disconnect(). Never calls back from inside execute().
  virtual void execute(ApiCommand command, Receiver& receiver) = 0;
  /// Forgets all calls and watches of this receiver.
  virtual void disconnect(Receiver& receiver) = 0;
};

}  // namespace spillway::client
