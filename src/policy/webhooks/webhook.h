// Admission webhooks as their configurations describe them, read once and kept. Thread: any (plain values).
// Source: Kubernetes docs, "Dynamic Admission Control"; API reference, admissionregistration.k8s.io/v1.
#pragma once

#include "api/json/json.h"
#include "api/object/selector.h"
#include "base/time.h"
#include "policy/webhooks/match_conditions.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::webhooks {

/// Mutating webhooks are called one after the other, and before the object is validated; validating ones together, and
/// after it.
enum class Phase : std::uint8_t { kMutating, kValidating };

enum class Scope : std::uint8_t { kAny, kCluster, kNamespaced };

/// The requests that a webhook applies to: one entry of each list has to match.
struct Rule {
  std::vector<std::string> operations;  // "CREATE", "UPDATE", "DELETE", "CONNECT", "*"
  std::vector<std::string> groups;
  std::vector<std::string> versions;
  std::vector<std::string> resources;  // "pods", "pods/status", "pods/*", "*/scale", "*", "*/*"
  Scope scope = Scope::kAny;
  std::vector<std::string> names = {};  // the objects' names; empty: any
};

struct ServiceReference {
  std::string ns;
  std::string name;
  std::string path;  // empty: "/"
  std::int64_t port = 443;
};

struct Webhook {
  Phase phase = Phase::kMutating;
  std::string configuration;  // name of the configuration object
  std::string name;
  std::vector<Rule> rules;
  api::LabelSelector namespaces;
  api::LabelSelector objects;
  bool fails_open = false;   // failurePolicy: Ignore
  bool equivalent = true;    // matchPolicy: a rule for another version of the resource counts as well
  bool dry_run_safe = true;  // sideEffects: None or NoneOnDryRun
  bool asked_again = false;  // reinvocationPolicy: IfNeeded
  Duration timeout = seconds(10);
  std::string url;                          // empty: `service`
  std::optional<ServiceReference> service;  // nullopt: `url`
  std::string authority_pem;                // empty: the authorities of the system
  MatchConditions conditions = nullptr;     // null: none
};

/// Parses a rule of a configuration.
Rule rule_of(const api::Json& rule);
/// The member of that name; one that cannot be read selects everything.
api::LabelSelector selector_at(const api::Json& object, std::string_view key);

/// The webhooks of one configuration, in its order. Absent or wrong members of a stored configuration are read so that
/// the webhook is called rather too often.
std::vector<Webhook> webhooks_of(Phase phase, const api::Json& configuration);

}  // namespace spillway::webhooks
