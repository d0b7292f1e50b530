// The operator's configuration of pod security: the standard for namespaces without labels, and the exemptions. Thread:
// any (a plain value). Source: Kubernetes docs, "Enforce Pod Security Standards by Configuring the Built-in Admission
// Controller".
#pragma once

#include "policy/podsecurity/policy.h"

#include <string>
#include <vector>

namespace spillway::podsecurity {

struct Configuration {
  Policy defaults;  // privileged, unless configured
  // Exemptions from evaluation; none by default. Users: those who create the pod or workload.
  std::vector<std::string> exempt_users;
  std::vector<std::string> exempt_runtime_classes;
  std::vector<std::string> exempt_namespaces;
};

}  // namespace spillway::podsecurity
