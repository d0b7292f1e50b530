#include "apps/proxy/health_checks.h"

#include <fmt/format.h>

#include <cstddef>

namespace spillway::apps {
namespace {

constexpr std::size_t kServersMax = 128;

}  // namespace

void HealthChecks::serve(const std::vector<proxy::HealthCheckPort>& ports) {
  checks_.clear();
  for (const proxy::HealthCheckPort& each : ports) {
    if (checks_.size() == kServersMax) {
      process_.log().warning("some health checks of load balancers are not served",
                             {{"served", static_cast<std::uint64_t>(kServersMax)},
                              {"asked_for", static_cast<std::uint64_t>(ports.size())}});
      break;
    }
    checks_[each.port] = each;
  }
  std::erase_if(servers_, [this](const auto& server) {
    if (checks_.contains(server.first)) return false;
    process_.end(*server.second);
    return true;
  });
  for (const auto& [port, check] : checks_) {
    if (!servers_.contains(port)) begin(port);
  }
}

void HealthChecks::begin(std::int32_t port) {
  auto server = PagesServer::create(process_, "0.0.0.0", static_cast<std::uint16_t>(port),
                                    [this, port](std::string_view) { return answer(port); });
  if (server) {
    servers_[port] = &process_.add(*std::move(server));
    return;
  }
  const proxy::HealthCheckPort& check = checks_[port];
  process_.log().warning("a health check of a load balancer is not served",
                         {{"service", check.ns + "/" + check.service}, {"error", server.error().text()}});
}

api::Response HealthChecks::answer(std::int32_t port) const {
  const auto found = checks_.find(port);
  if (found == checks_.end()) return page_of(503, "the Service was deleted\n");
  const proxy::HealthCheckPort& check = found->second;
  const bool healthy = is_healthy_();
  api::Response response =
      page_of(healthy && check.local_endpoints > 0 ? 200 : 503,
              fmt::format("{{\n\t\"service\": {{\n\t\t\"namespace\": \"{}\",\n\t\t\"name\": \"{}\"\n\t}},\n"
                          "\t\"localEndpoints\": {},\n\t\"serviceProxyHealthy\": {}\n}}",
                          check.ns, check.service, check.local_endpoints, healthy),
              "application/json");
  response.headers.emplace_back("X-Load-Balancing-Endpoint-Weight", std::to_string(check.local_endpoints));
  return response;
}

}  // namespace spillway::apps
