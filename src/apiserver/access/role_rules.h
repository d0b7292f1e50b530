// The present roles and bindings with the rules that they grant: role based access control.
// A role is parsed once, at its first use after a write of it, and shared by everything that is bound to it; a write of
// a binding changes that binding alone. Bindings are found by namespace and subject.
// Thread: loop. Bound: the words of rules that one decision compares. Source: Kubernetes docs, "Using RBAC
// Authorization"; spec "API server contract", 19.4, 19.5.
#pragma once

#include "apiserver/access/authorizer.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/roles/policy_rule.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace spillway::apiserver {

bool allows(const PolicyRule& rule, const RequestAttributes& request);

/// Words of rules that one decision compares: as many as a hundred roles of the largest size have, which takes a few
/// milliseconds. A user who is bound to more has the rights of the first ones.
inline constexpr std::size_t kDecisionWordsMax = 1'000'000;

/// The rules of a role, shared.
class RuleList {
 public:
  explicit RuleList(std::vector<PolicyRule> rules);

  const std::vector<PolicyRule>& rules() const { return rules_; }

  /// Words that allows() compares at most.
  std::size_t words() const { return words_; }

  bool allows(const RequestAttributes& request) const;

 private:
  using Names = std::unordered_set<std::string_view>;

  std::vector<PolicyRule> rules_;
  std::vector<Names> names_;  // by rule; empty for one that has few names
  std::size_t words_ = 0;
};

using RuleListPtr = std::shared_ptr<const RuleList>;

class RoleRules final : public Authorizer, public Collector {
 public:
  explicit RoleRules(Core& core);

  Verdict authorize(const api::UserInfo& user, const RequestAttributes& request) const override;

  /// The rules of each role that holds for the user in that namespace; cluster-wide ones included, each role once.
  std::vector<RuleListPtr> rules_of(const api::UserInfo& user, std::string_view ns) const;
  /// The rules of a role that a roleRef names; null: there is no such role.
  RuleListPtr rules_of_role(const api::Json& role_ref, std::string_view ns) const;

  /// Documents of roles and bindings that have been read so far.
  std::size_t reads() const { return reads_; }

 private:
  /// A role that bindings name.
  struct NamedRole {
    std::string key;
    RuleListPtr rules;
    bool is_read = false;            // since its last write
    std::uint64_t evaluated_by = 0;  // by which decision
  };

  using NamedRolePtr = std::shared_ptr<NamedRole>;

  struct Binding {
    std::string key;
    std::string text;
    std::vector<std::string> places;  // in by_subject_
    NamedRolePtr role;
  };

  struct ByKey {
    bool operator()(const Binding* one, const Binding* other) const { return one->key < other->key; }
  };

  using Bindings = std::map<std::string, Binding, std::less<>>;
  using Found = std::vector<const Binding*>;

  // Collector: to follow what is written.
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;

  void act() override {}

  void add(const ResourceCache& cache, const StoredObject& object);
  void remove(Bindings& bindings, const std::string& key);
  Bindings* bindings_of(const ResourceCache& cache);
  NamedRolePtr named(std::string key);
  /// The present rules of the role; null: there is no such role.
  const RuleList* read(NamedRole& role) const;
  RuleListPtr read_role(std::string_view key) const;
  /// Bindings of that namespace (empty: of the cluster) that name the user or one of its groups, by key.
  Found find(std::string_view ns, const api::UserInfo& user) const;

  const ResourceCache& roles_;
  const ResourceCache& role_bindings_;
  const ResourceCache& cluster_roles_;
  const ResourceCache& cluster_role_bindings_;
  Bindings local_;
  Bindings cluster_;
  std::map<std::string, std::set<const Binding*, ByKey>, std::less<>> by_subject_;
  std::map<std::string, NamedRolePtr, std::less<>> named_;  // "Role ns/name" or "ClusterRole name"
  mutable std::uint64_t decision_ = 0;
  mutable std::size_t reads_ = 0;
};

}  // namespace spillway::apiserver
