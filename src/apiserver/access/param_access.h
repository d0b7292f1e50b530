// No user may make the server read objects that the user may not read: the writer of an admission policy must be
// allowed to get every object of its paramKind, the writer of a binding the objects of its paramRef.
// Thread: loop. Source: Kubernetes docs, "Validating Admission Policy", authorization check.
#pragma once

#include "apiserver/access/authorizer.h"
#include "apiserver/read/core.h"
#include "apiserver/resource/admission_check.h"

namespace spillway::apiserver {

class ParamAccess final : public AdmissionCheck {
 public:
  ParamAccess(Core& core, const Authorizer& authorizer) : core_(core), authorizer_(authorizer) {}

  api::StatusResult<void> confirm(const ValidWrite& write) const override;

  /// Always true: no resource that is renewed is subject to this check.
  bool passes_renewal(const api::UserInfo& /*user*/, const Resource& /*resource*/, std::string_view /*ns*/,
                      std::string_view /*name*/) const override {
    return true;
  }

 private:
  RequestAttributes objects_of(const api::Json& kind) const;
  api::StatusResult<void> confirm_policy(const ValidWrite& write) const;
  api::StatusResult<void> confirm_binding(const ValidWrite& write) const;

  Core& core_;
  const Authorizer& authorizer_;
};

}  // namespace spillway::apiserver
