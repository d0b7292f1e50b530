// Network commands of probes and hooks: a request, a connection or a call, each with a time-out and an answer.
// Thread: any (plain values). Source: spec "Pod lifecycle", 9.5.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "policy/containers/grpc_action.h"
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

/// Health of a service, by Check of grpc.health.v1 in the clear. Answered by GrpcAnswered with the same id.
struct AskGrpc {
  std::uint64_t id = 0;
  std::string host;
  std::uint16_t port = 0;
  std::string service;  // may be empty: the server as a whole
  Duration timeout{};   // for the connection and the call together
};

/// The answer with the first containers::kProbeOutputMax bytes of its body, or why there is none.
struct HttpAnswered {
  std::uint64_t id = 0;
  Result<containers::HttpAnswer> answer;
};

/// The result of a TCP connection.
struct TcpTried {
  std::uint64_t id = 0;
  Outcome outcome;
};

struct GrpcAnswered {
  std::uint64_t id = 0;
  containers::GrpcAnswer answer;
};

}  // namespace spillway::agent
