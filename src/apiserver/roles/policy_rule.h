// One entry of the rules of a role, read from its document. Thread: any (pure). Source: Kubernetes docs, "Using RBAC
// Authorization".
#pragma once

#include "api/json/json.h"

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::apiserver {

struct PolicyRule {
  std::vector<std::string> verbs;
  std::vector<std::string> api_groups;
  std::vector<std::string> resources;
  std::vector<std::string> resource_names;
  std::vector<std::string> non_resource_urls;

  /// Number of entries in all its lists together.
  std::size_t words() const {
    return verbs.size() + api_groups.size() + resources.size() + resource_names.size() + non_resource_urls.size();
  }
};

PolicyRule rule_from_json(const api::Json& rule);
/// The rules of a role's document, in their order; empty if it has none.
std::vector<PolicyRule> rules_from_json(const api::Json& role);
api::Json to_json(const PolicyRule& rule);

}  // namespace spillway::apiserver
