// Probes and lifecycle hooks of a container, as api::Container's documents contain them.
// Thread: any (plain values). Source: Kubernetes API reference, "Pod"; Kubernetes docs, "Liveness, Readiness and
// Startup Probes", "Container Lifecycle Hooks".
#pragma once

#include "api/json/json.h"
#include "api/object/pod.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::api {

struct HttpGetAction {
  std::string host;  // empty: the pod's address
  std::string port;  // as it is written: a number or a name
  std::string path;
  std::string scheme;                                        // "", HTTP, HTTPS
  std::vector<std::pair<std::string, std::string>> headers;  // in order, names may repeat

  friend bool operator==(const HttpGetAction&, const HttpGetAction&) = default;
};

struct TcpSocketAction {
  std::string host;
  std::string port;

  friend bool operator==(const TcpSocketAction&, const TcpSocketAction&) = default;
};

struct GrpcAction {
  std::int64_t port = 0;
  std::string service;

  friend bool operator==(const GrpcAction&, const GrpcAction&) = default;
};

/// The action of a probe or hook. One member is set, if the object is valid.
struct Handler {
  std::optional<std::vector<std::string>> exec;  // a command
  std::optional<HttpGetAction> http_get;
  std::optional<TcpSocketAction> tcp_socket;
  std::optional<GrpcAction> grpc;
  std::optional<std::int64_t> sleep_seconds;

  friend bool operator==(const Handler&, const Handler&) = default;
};

/// Numbers that are missing have the API server's defaults.
struct Probe {
  Handler handler;
  std::int64_t initial_delay_seconds = 0;
  std::int64_t period_seconds = 10;
  std::int64_t timeout_seconds = 1;
  std::int64_t success_threshold = 1;
  std::int64_t failure_threshold = 3;
  std::optional<std::int64_t> termination_grace_period_seconds;

  friend bool operator==(const Probe&, const Probe&) = default;
};

/// nullopt: null, there is none.
std::optional<Probe> probe_of(const Json& document);
/// `hook`: "postStart" or "preStop"; nullopt: there is no such hook.
std::optional<Handler> hook_of(const Container& container, std::string_view hook);

/// spec.readinessGates: the types of conditions that must be true as well.
std::vector<std::string> readiness_gates_of(const Pod& pod);

}  // namespace spillway::api
