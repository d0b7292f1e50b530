// An authorization check of an expression, and its result. Thread: any (plain values).
// Source: Kubernetes docs, "Common Expression Language in Kubernetes", Kubernetes authorizer library.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace spillway::cel {

struct ServiceAccount {
  std::string ns;
  std::string name;
};

struct AccessRequest {
  std::optional<ServiceAccount> account = {};  // nullopt: the user of the request
  std::string path = {};                       // not empty: a path that is no resource
  std::string group = {};
  std::string resource = {};
  std::string subresource = {};
  std::string ns = {};
  std::string name = {};
  std::string verb = {};
  std::string field_selector = {};  // for lists and watches; RBAC ignores them
  std::string label_selector = {};
};

struct AccessDecision {
  bool allowed = false;
  std::string reason = {};
};

/// Called while an expression is evaluated.
using AccessCheck = std::function<AccessDecision(const AccessRequest&)>;

}  // namespace spillway::cel
