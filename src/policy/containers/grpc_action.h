// The outcome of a grpc probe: evaluates the answer to Check of grpc.health.v1.
// Thread: any (pure). Source: Kubernetes docs, "Liveness, Readiness and Startup Probes", gRPC probes; spec "Pod
// lifecycle", 9.5.
#pragma once

#include "base/time.h"
#include "policy/containers/http_action.h"

#include <string>
#include <string_view>

namespace spillway::containers {

struct GrpcAnswer {
  /// kNotConnected, kLate: the time-out passed before there was a connection, before there was an answer.
  /// kUnimplemented: the server does not implement the health service. kFailed: `text` is the error.
  enum class End { kAnswered, kNotConnected, kLate, kUnimplemented, kFailed };

  End end = End::kFailed;
  int status = 0;  // kAnswered: a number of ServingStatus
  std::string text;

  friend bool operator==(const GrpcAnswer&, const GrpcAnswer&) = default;
};

/// `address`: address and port of the server; `timeout`: for connection and call together.
ProbeVerdict evaluate_grpc(const GrpcAnswer& answer, std::string_view address, Duration timeout);

}  // namespace spillway::containers
