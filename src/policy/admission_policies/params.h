// Port: finds the parameter objects of a policy. Thread: any (pure; another object owns the objects). Source:
// Kubernetes docs, "Validating Admission Policy", parameter resources.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"
#include "policy/admission_policies/admission_policy.h"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::admission_policies {

/// Number of objects that one binding may select for one request.
inline constexpr std::size_t kParamsMax = 1'000;
/// Bytes of JSON that the selected objects may have together.
inline constexpr std::size_t kParamBytesMax = std::size_t{16} << 20U;

/// Port: the objects of the cluster.
class ParamSource {
 public:
  virtual ~ParamSource() = default;
  /// True if objects of the kind are in namespaces; nullopt: no such kind is served.
  virtual std::optional<bool> is_namespaced(const ParamKind& kind) const = 0;
  /// The object; null: it does not exist. `ns` is empty for cluster-scoped objects.
  virtual api::DocumentPtr find(const ParamKind& kind, std::string_view ns, std::string_view name) const = 0;
  /// The objects ordered by name, at most kParamsMax + 1. kInvalid: they have more text than kParamBytesMax.
  virtual Result<std::vector<api::DocumentPtr>> select(const ParamKind& kind, std::string_view ns,
                                                       const api::LabelSelector& selector) const = 0;
};

/// The values of `params`, one evaluation each; null stands for no parameters. An empty list: nothing is evaluated.
/// `ns`: the request's. kInvalid: the binding cannot be used, in upstream's words.
Result<std::vector<api::DocumentPtr>> collect_params(const AdmissionPolicy& policy, const PolicyBinding& binding,
                                                     std::string_view ns, const ParamSource& source);

/// The error because of which the policy cannot be used at all; nullopt: none.
std::optional<Error> kind_problem(const AdmissionPolicy& policy, const ParamSource& source);

}  // namespace spillway::admission_policies
