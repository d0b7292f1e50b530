// The admission plug-in PodSecurity: checks pods, objects that make pods, and the labels of namespaces against the Pod
// Security Standards that the namespace requests. A pod that violates the enforced level is rejected; violations of the
// other modes become warnings (warn) and annotations of the audit log (audit). Objects that make pods are never
// refused: their pods are.
// Thread: loop. Source: Kubernetes docs, "Pod Security Admission"; KEP-2579.
#pragma once

#include "api/exchange/status.h"
#include "apiserver/read/core.h"
#include "apiserver/resource/admission_check.h"
#include "apiserver/security/pod_security_metrics.h"
#include "policy/podsecurity/evaluate.h"
#include "policy/podsecurity/policy.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class PodSecurity final : public AdmissionCheck {
 public:
  /// Acts as core.admission.pod_security configures; without a configuration it is off.
  PodSecurity(Core& core, PodSecurityMetrics& metrics) : core_(core), metrics_(metrics) {}

  api::StatusResult<void> confirm(const ValidWrite& write) const override;

  /// Always true: no resource that is renewed is subject to this check.
  bool passes_renewal(const api::UserInfo& /*user*/, const Resource& /*resource*/, std::string_view /*ns*/,
                      std::string_view /*name*/) const override {
    return true;
  }

 private:
  /// A pod or pod template, and the standards that it must meet.
  struct Trial;

  const podsecurity::Configuration& configuration() const { return *core_.admission.pod_security; }

  api::StatusResult<void> confirm_namespace(const ValidWrite& write) const;
  void warn_of_pods(const ValidWrite& write, std::string_view ns, const podsecurity::LevelVersion& enforce) const;
  api::StatusResult<void> confirm_pod(const ValidWrite& write) const;
  api::StatusResult<void> confirm_workload(const ValidWrite& write, const api::Json& template_of_pods) const;

  /// True if the configuration exempts the namespace or the user.
  bool is_exempt(const ValidWrite& write) const;
  /// The Pod Security policy of the object's namespace. 500: the namespace does not exist.
  api::StatusResult<podsecurity::NamespacePolicy> policy_for(const ValidWrite& write) const;
  api::StatusResult<void> decide(const Trial& trial) const;
  /// `violate PodSecurity "LEVEL:VERSION": …` by the level of `mode`, and counted; empty: no violations.
  std::string violations(const Trial& trial, podsecurity::Mode mode) const;

  Core& core_;
  PodSecurityMetrics& metrics_;
};

}  // namespace spillway::apiserver
