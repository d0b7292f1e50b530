#include "apiserver/serving/server_health.h"

#include "apiserver/serving/serving_state.h"

#include <fmt/format.h>

namespace spillway::apiserver {

std::vector<HealthCheck> ServerHealth::checks() const {
  using Cure = HealthCheck::Cure;
  std::vector<HealthCheck> checks{{.name = "ping", .cure = Cure::kRestart, .problem = {}},
                                  {.name = "store", .cure = Cure::kRestart, .problem = state_.lost()},
                                  {.name = "store-writes", .problem = core_.store.refusing().value_or("")}};
  add_stores(checks);
  checks.push_back({.name = "informer-sync", .problem = loading_problem()});
  checks.push_back({.name = "poststarthook/bootstrap-objects",
                    .problem = state_.is_serving() ? "" : "the built-in objects are not complete yet"});
  if (more_) {
    for (HealthCheck& check : more_()) checks.push_back(std::move(check));
  }
  checks.push_back({.name = "shutdown", .problem = state_.is_shutting_down() ? "the server is shutting down" : ""});
  return checks;
}

/// Adds the stores of single resources: requests for all others are served without them.
void ServerHealth::add_stores(std::vector<HealthCheck>& checks) const {
  for (const auto& feed : state_.feeds()) {
    const Origin& origin = feed->origin();
    if (origin.is_main()) continue;
    checks.push_back({.name = "store/" + origin.name(), .cure = HealthCheck::Cure::kRestart, .problem = feed->lost()});
    checks.push_back({.name = "store-writes/" + origin.name(), .problem = origin.store().refusing().value_or("")});
  }
}

std::string ServerHealth::loading_problem() const {
  std::string names;
  for (const auto& feed : state_.feeds()) {
    if (!feed->is_loading()) continue;
    if (!names.empty()) names += " and ";
    names += feed->origin().is_main() ? "the store" : "the store of " + feed->origin().name();
  }
  return names.empty() ? names : fmt::format("the objects of {} are being loaded", names);
}

}  // namespace spillway::apiserver
