// Finds the server behind the Service of an APIService: one of its ready pods, or one of its Endpoints if it selects no
// pods, else its cluster IP. An address that leads back to this machine or its link is refused, so that the right to
// write a Service or Endpoints is not one to reach this machine with the identity of this server.
// Thread: loop. Source: Kubernetes docs, "Configure the Aggregation Layer", contacting the extension API server.
#pragma once

#include "apiserver/aggregation/remote_api.h"
#include "apiserver/ports/aggregated_gateway.h"
#include "apiserver/read/core.h"
#include "base/error.h"

#include <optional>
#include <string>

namespace spillway::apiserver {

/// kServiceUnavailable: there is no such Service or port, or no address. kForbidden: an address that is not allowed.
Result<AggregatedServer> server_of(Core& core, const RemoteApi& api);

/// The condition Available, without the time.
struct Availability {
  std::string status;  // True, False, Unknown
  std::string reason;
  std::string message;

  friend bool operator==(const Availability&, const Availability&) = default;
};

/// The problem that the Service and its Endpoints alone show, in upstream's words; nullopt: none.
std::optional<Availability> service_problem(const Core& core, const RemoteApi& api);

}  // namespace spillway::apiserver
