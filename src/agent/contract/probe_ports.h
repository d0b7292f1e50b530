// What probes and hooks ask of the network: one request, one connection, each with a time-out and an answer.
// Thread: any (plain values). Source: spec "Pod lifecycle", 9.5.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "policy/containers/http_action.h"

#include <cstdint>
#include <string>

namespace spillway::agent {

/// One GET, on a connection of its own; no certificate is verified. Answered by HttpAnswered with the same id.
struct AskHttp {
  std::uint64_t id = 0;
  containers::HttpAsk ask;
  Duration timeout{};
};

/// Answered by TcpTried with the same id.
struct TryTcp {
  std::uint64_t id = 0;
  std::string host;
  std::uint16_t port = 0;
  Duration timeout{};
};

/// The answer with the first containers::kProbeOutputMax bytes of its body, or why there is none.
struct HttpAnswered {
  std::uint64_t id = 0;
  Result<containers::HttpAnswer> answer;
};

/// Whether there was a connection.
struct TcpTried {
  std::uint64_t id = 0;
  Outcome outcome;
};

}  // namespace spillway::agent
