// The servers by which load balancers check if this node has endpoints of a Service (healthCheckNodePort). One that
// cannot listen is logged, and retried at the next change. Thread: loop. Bounds: 128 servers; those of higher ports are
// left out. Source: Kubernetes docs, "Create an External Load Balancer", preserving the client source IP.
#pragma once

#include "apps/process/process.h"
#include "apps/proxy/pages_server.h"

#include "proxy/service_table.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace spillway::apps {

class HealthChecks {
 public:
  /// `is_healthy`: of the proxy.
  HealthChecks(Process& process, std::function<bool()> is_healthy)
      : process_(process), is_healthy_(std::move(is_healthy)) {}

  /// Runs servers for these Services, and stops all others.
  void serve(const std::vector<proxy::HealthCheckPort>& ports);

 private:
  void begin(std::int32_t port);
  api::Response answer(std::int32_t port) const;

  Process& process_;
  std::function<bool()> is_healthy_;
  std::map<std::int32_t, proxy::HealthCheckPort> checks_;
  std::map<std::int32_t, const Part*> servers_;
};

}  // namespace spillway::apps
