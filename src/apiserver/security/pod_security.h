// The admission plug-in PodSecurity: pods, what makes pods, and the labels of namespaces, against the Pod Security
// Standards that the namespace asks for. A pod that violates what is enforced is refused; what would violate the other
// modes is told (warn) and logged (audit). Objects that make pods are never refused: their pods are.
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
  /// Acts as core.admission.pod_security says; without it, not at all.
  PodSecurity(Core& core, PodSecurityMetrics& metrics) : core_(core), metrics_(metrics) {}

  api::StatusResult<void> confirm(const ValidWrite& write) const override;

  /// No resource that is renewed is judged here.
  bool passes_renewal(const api::UserInfo& /*user*/, const Resource& /*resource*/, std::string_view /*ns*/,
                      std::string_view /*name*/) const override {
    return true;
  }

 private:
  /// A pod, or what a pod is made from, and the standards it is held against.
  struct Trial;

  const podsecurity::Configuration& configuration() const { return *core_.admission.pod_security; }

  api::StatusResult<void> confirm_namespace(const ValidWrite& write) const;
  void warn_of_pods(const ValidWrite& write, std::string_view ns, const podsecurity::LevelVersion& enforce) const;
  api::StatusResult<void> confirm_pod(const ValidWrite& write) const;
  api::StatusResult<void> confirm_workload(const ValidWrite& write, const api::Json& template_of_pods) const;

  /// The namespace or the user is none whose objects are judged.
  bool is_exempt(const ValidWrite& write) const;
  /// The Pod Security policy of the object's namespace. 500: the namespace does not exist.
  api::StatusResult<podsecurity::NamespacePolicy> policy_for(const ValidWrite& write) const;
  api::StatusResult<void> judge(const Trial& trial) const;
  /// `violate PodSecurity "LEVEL:VERSION": …`, by what `mode` asks for, and counted; empty: nothing violates it.
  std::string violations(const Trial& trial, podsecurity::Mode mode) const;

  Core& core_;
  PodSecurityMetrics& metrics_;
};

}  // namespace spillway::apiserver
