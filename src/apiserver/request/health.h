// The pages /healthz, /livez and /readyz: the health of each part of the server by name, and of the whole. Only the
// pages of single parts, which need a right, show reasons; the page of the whole is public. Thread: any (pure). Source:
// spec "API server contract", 6.4; Kubernetes docs, "Kubernetes API health endpoints".
#pragma once

#include "api/exchange/exchange.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spillway::apiserver {

/// The state of one part of the server at this moment.
struct HealthCheck {
  /// The remedy for a failure.
  enum class Cure {
    kPatience,  // recovers by itself or by an operator: not ready meanwhile
    kRestart,   // needs a restart of the server: it is not live
  };

  std::string name;  // "store", "poststarthook/bootstrap-objects"
  Cure cure = Cure::kPatience;
  std::string problem;  // empty: the part is well
};

struct HealthAnswer {
  int code = 200;
  std::string body;
};

bool is_health_page(const api::Target& target);

/// The page of the whole, of one part (/readyz/NAME), or nullopt: the path is no such page. /readyz asks every part,
/// the others those that a restart would cure. Parameters: `verbose`, and `exclude` as often as one likes.
std::optional<HealthAnswer> health_page(const api::Target& target, std::span<const HealthCheck> checks);

}  // namespace spillway::apiserver
