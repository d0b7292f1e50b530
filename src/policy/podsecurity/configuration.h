// What an operator says about pod security: which standard holds where a namespace asks for none, and who is not judged
// at all. Thread: any (a plain value). Source: Kubernetes docs, "Enforce Pod Security Standards by Configuring the
// Built-in Admission Controller".
#pragma once

#include "policy/podsecurity/policy.h"

#include <string>
#include <vector>

namespace spillway::podsecurity {

struct Configuration {
  Policy defaults;  // privileged, unless said otherwise
  // Whose pods and workloads are not judged; nobody, unless said otherwise.
  std::vector<std::string> exempt_users;
  std::vector<std::string> exempt_runtime_classes;
  std::vector<std::string> exempt_namespaces;
};

}  // namespace spillway::podsecurity
