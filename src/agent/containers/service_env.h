// The variables by which a container finds Services: <NAME>_SERVICE_HOST, <NAME>_SERVICE_PORT, <NAME>_PORT_….
// Thread: any (pure). Source: Kubernetes docs, "Service", Discovering services, Environment variables; spec "Pod
// lifecycle", 6.7.
#pragma once

#include "agent/contract/options.h"
#include "api/object/pod.h"
#include "api/object/service.h"
#include "base/error.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace spillway::agent {

/// Bytes of names and values: as much as arguments and environment of a program may take in all (container_env.h).
inline constexpr std::size_t kServiceVariablesMax = 2 * 1024 * 1024;

/// The Services of the cluster, as far as they have been listed.
struct KnownServices {
  std::vector<std::shared_ptr<const api::Service>> all;
  bool read = false;  // at least once
  /// Address that stands in for the Service `kubernetes` of the namespace `default`, whether that exists or not.
  /// nullopt: that Service is used.
  std::optional<ApiServerAddress> api_server = std::nullopt;
};

/// Variables for the Services of the pod's namespace, if it wants service links, and "kubernetes" of the namespace
/// "default" always, unless its own namespace has one of that name. Errors, in upstream's words: kInvalid, the pod does
/// not state whether it wants links; kServiceUnavailable, the Services have not been read yet, for which a static pod
/// does not wait. In our words: kRequestEntityTooLarge, they would take more than kServiceVariablesMax bytes.
Result<api::StringMap> service_variables(const api::Pod& pod, const KnownServices& services);

}  // namespace spillway::agent
