// Admission policies and their bindings as they are stored, read and compiled once and kept.
// Thread: any (plain values). Source: Kubernetes docs, "Validating Admission Policy"; API reference,
// admissionregistration.k8s.io/v1.
#pragma once

#include "api/json/json.h"
#include "api/object/selector.h"
#include "base/error.h"
#include "policy/cel/expression.h"
#include "policy/webhooks/match.h"
#include "policy/webhooks/match_conditions.h"
#include "policy/webhooks/webhook.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::admission_policies {

/// Requests that a policy or binding applies to.
struct MatchResources {
  std::vector<webhooks::Rule> rules;
  std::vector<webhooks::Rule> excluded;
  api::LabelSelector namespaces;
  api::LabelSelector objects;
  bool equivalent = true;  // matchPolicy
};

struct ParamKind {
  std::string api_version;
  std::string kind;

  friend bool operator==(const ParamKind&, const ParamKind&) = default;
};

struct Variable {
  std::string name;
  Result<cel::Expression> expression;  // an error: the stored text does not compile
};

struct Validation {
  std::string text;  // source of the expression
  Result<cel::Expression> holds;
  std::optional<Result<cel::Expression>> message_expression = {};
  std::string message = {};
  std::string reason = {};  // metav1.Status.reason; empty: Invalid
};

struct AuditAnnotation {
  std::string key;
  Result<cel::Expression> value;
};

struct AdmissionPolicy {
  std::string name;
  MatchResources match;
  std::optional<ParamKind> param_kind = {};
  bool fails_open = false;  // failurePolicy: Ignore
  webhooks::MatchConditions conditions = nullptr;
  std::vector<Variable> variables = {};
  std::vector<Validation> validations = {};
  std::vector<AuditAnnotation> annotations = {};
};

struct ParamRef {
  std::string name;
  std::string ns;
  std::optional<api::LabelSelector> selector = {};
  bool needed = true;  // parameterNotFoundAction: Deny
};

enum class Action : std::uint8_t { kDeny, kWarn, kAudit };

/// "Deny", …
std::string_view to_string(Action action);

struct PolicyBinding {
  std::string name;
  std::string policy;
  std::optional<ParamRef> params = {};
  std::optional<MatchResources> match = {};
  std::vector<Action> actions = {};
};

/// Parses a stored object, which is valid. Malformed members are read so that a request is checked rather than let
/// through.
AdmissionPolicy policy_of(const api::Json& object);
PolicyBinding binding_of(const api::Json& object);

using PolicyPtr = std::shared_ptr<const AdmissionPolicy>;

/// A policy with a binding that applies, by the binding's name.
struct BoundPolicy {
  PolicyPtr policy;
  std::vector<std::shared_ptr<const PolicyBinding>> bindings;
};

/// Policies ordered by name.
using PolicyList = std::vector<BoundPolicy>;

/// The resource name under which expressions see the request, by its rules; null: the policy does not match the
/// request.
const webhooks::ResourceName* matched_name(const MatchResources& match, const webhooks::Subject& subject);
/// A binding narrows: without rules it is about all.
bool matches_binding(const MatchResources& match, const webhooks::Subject& subject, const webhooks::Selectable& seen);

}  // namespace spillway::admission_policies
