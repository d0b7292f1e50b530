// status.typeChecking of ValidatingAdmissionPolicies: each new spec is checked once against the types of the kinds that
// its rules name, as the controller `validatingadmissionpolicy-status` of kube-controller-manager does. Either finds
// nothing to do after the other. A policy takes effect before it is checked, and whatever the warnings say.
// Thread: loop. Bounds: one policy at a time, read in a turn of its own, because the turn in which a policy takes
// effect compiles it; its expressions are checked in slices between requests. Source: Kubernetes docs, "Validating
// Admission Policy", type checking.
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/resource/custom_kind.h"
#include "apiserver/write/writer.h"
#include "policy/admission_policies/type_check.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class PolicyTypes final : public Collector {
 public:
  PolicyTypes(Core& core, Writer& writer);

 private:
  /// A kind and the schema of its objects, as served when the check began.
  struct Kind {
    admission_policies::NamedKind name;
    const api::Type* built_in = nullptr;  // null: a custom kind
    CustomKindPtr custom = nullptr;       // owns `schema`
    const structural::Schema* schema = nullptr;
  };

  /// The type check of one generation of one policy.
  struct Check {
    std::string name;
    std::string uid;
    std::int64_t generation = 0;
    api::Json policy;
    std::vector<Kind> kinds;
    std::optional<Kind> params;
    std::vector<admission_policies::ExpressionWarning> warnings = {};
  };

  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  /// Queues the policy unless its status describes its current generation.
  void add(const StoredObject& policy);
  /// Begins the check of the next policy that is due.
  void check_next();
  /// Checks the policy in slices, then writes its status.
  void check(const StoredObject& policy);
  /// The kinds of the policy's rules that are served now.
  std::vector<Kind> kinds_of(const api::Json& policy) const;
  std::optional<Kind> kind_named(std::string_view api_version, std::string_view kind) const;
  /// The type of the kind's objects. Counts its work.
  static std::optional<cel::Type> type_of(const Kind& kind);
  static std::vector<admission_policies::ExpressionWarning> warnings_of(const Check& check);
  void write(const std::shared_ptr<const Check>& check);
  /// Continues with the next policy. A write that failed is retried after kCheckRetry.
  void on_written(const std::string& name, const api::StatusResult<Written>& result);

  Core& core_;
  Writer& writer_;
  const ResourceCache& policies_;
  std::set<std::string> due_;
  bool is_checking_ = false;  // a check is under way, or begins in the next turn
};

}  // namespace spillway::apiserver
