// No user may grant permissions beyond his own: writes of roles and bindings are compared with the rules of the writer.
// Thread: loop. Bound: the steps of a comparison (rule_cover.h); a write that takes more is refused. Source: Kubernetes
// docs, "Using RBAC Authorization", privilege escalation prevention.
#pragma once

#include "apiserver/access/role_rules.h"
#include "apiserver/resource/admission_check.h"

#include <string_view>

namespace spillway::apiserver {

class EscalationCheck final : public AdmissionCheck {
 public:
  explicit EscalationCheck(const RoleRules& rules) : rules_(rules) {}

  api::StatusResult<void> check_create(const api::UserInfo& user, const Resource& resource,
                                       const api::Json& object) const override;
  api::StatusResult<void> check_update(const api::UserInfo& user, const Resource& resource, SubresourceId part,
                                       const api::Json& object, const api::Json& old) const override;

  /// Always true: no resource that is renewed is subject to this check.
  bool passes_renewal(const api::UserInfo& /*user*/, const Resource& /*resource*/, std::string_view /*ns*/,
                      std::string_view /*name*/) const override {
    return true;
  }

 private:
  bool may_aggregate(const api::UserInfo& user, const Resource& resource, const api::Json& object) const;
  api::StatusResult<void> check(const api::UserInfo& user, const Resource& resource, const api::Json& object) const;

  const RoleRules& rules_;
};

}  // namespace spillway::apiserver
