// The streams of an exec or attach: parsed by an agent from its query, and encoded by an API server. Thread: any
// (pure). Source: spec "Pod lifecycle", 11.1, 11.7; vectors pod-lifecycle/stream_options.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"

#include <string>

namespace spillway::api {

struct StreamOptions {
  bool in = false;
  bool out = false;
  bool err = false;
  bool tty = false;

  friend bool operator==(const StreamOptions&, const StreamOptions&) = default;
};

/// Parses the query of a request to an agent: "input=1&output=1&error=1&tty=1"; only 1 counts. A terminal has no error
/// stream. kBadRequest: the query names none of the three streams.
Result<StreamOptions> parse_stream_options(const Target& target);

/// Parses the query of a request to an API server: "stdin=true&stdout=true&stderr=true&tty=true". Nothing is refused.
StreamOptions requested_streams(const Target& target);

/// "input=1&output=1": what parse_stream_options() reads.
std::string to_query(const StreamOptions& options);

}  // namespace spillway::api
