// The authorizers in their order: administrators, nodes, roles. Thread: loop. Source: spec "API server contract", 19.1,
// 19.4.
#pragma once

#include "apiserver/access/authorizer.h"
#include "apiserver/access/node_authorizer.h"
#include "apiserver/access/role_rules.h"

namespace spillway::apiserver {

class Gatekeeper final : public Authorizer {
 public:
  Gatekeeper(const NodeAuthorizer& nodes, const RoleRules& roles) : nodes_(nodes), roles_(roles) {}

  Verdict authorize(const api::UserInfo& user, const RequestAttributes& request) const override;

 private:
  const NodeAuthorizer& nodes_;
  const RoleRules& roles_;
};

}  // namespace spillway::apiserver
