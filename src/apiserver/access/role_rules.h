// Roles and bindings as they stand, and what they allow: role based access control.
// Thread: loop. Source: Kubernetes docs, "Using RBAC Authorization"; spec "API server contract", 19.4, 19.5.
#pragma once

#include "apiserver/access/authorizer.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/roles/policy_rule.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::apiserver {

bool allows(const PolicyRule& rule, const RequestAttributes& request);

class RoleRules final : public Authorizer, public Collector {
 public:
  explicit RoleRules(Core& core);

  Verdict authorize(const api::UserInfo& user, const RequestAttributes& request) const override;

  /// Every rule that holds for the user in that namespace; cluster-wide ones included.
  std::vector<PolicyRule> rules_of(const api::UserInfo& user, std::string_view ns) const;
  /// The rules of a role that a roleRef names; nullopt: there is no such role.
  std::optional<std::vector<PolicyRule>> rules_of_role(const api::Json& role_ref, std::string_view ns) const;

 private:
  // Collector: only to know when the table is out of date.
  void load() override { stale_ = true; }

  void on_event(const ResourceCache& cache, const EventPtr& event) override;

  void act() override {}

  struct Subject {
    std::string kind;
    std::string name;
    std::string ns;
  };

  struct Binding {
    std::string ns;  // empty: the whole cluster
    std::string text;
    std::vector<Subject> subjects;
    std::vector<PolicyRule> rules;
  };

  const std::vector<Binding>& bindings() const;
  void add_bindings(const ResourceCache& cache) const;
  static bool is_bound(const Binding& binding, const api::UserInfo& user);

  const ResourceCache& roles_;
  const ResourceCache& role_bindings_;
  const ResourceCache& cluster_roles_;
  const ResourceCache& cluster_role_bindings_;
  mutable bool stale_ = true;
  mutable std::vector<Binding> bindings_;  // made anew when asked for after a change
};

}  // namespace spillway::apiserver
