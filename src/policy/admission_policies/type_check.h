// Expressions of an admission policy, held against the types of the objects that its rules name. What does not fit is a
// warning in status.typeChecking, and changes nothing about the policy. Thread: any (pure).
// Source: Kubernetes docs, "Validating Admission Policy", type checking.
#pragma once

#include "api/json/json.h"
#include "policy/cel/type.h"
#include "policy/webhooks/match.h"
#include "policy/webhooks/webhook.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::admission_policies {

/// Number of kinds for which one policy is checked.
inline constexpr std::size_t kCheckedKindsMax = 10;

/// A kind that rules name.
struct NamedKind {
  std::string group;
  std::string version;
  std::string kind;

  friend auto operator<=>(const NamedKind&, const NamedKind&) = default;
};

/// The kind of the objects of a resource; nullopt: the resource is not served.
using KindOf = std::function<std::optional<NamedKind>(const webhooks::ResourceName& resource)>;

/// The kinds that the rules name, in their order, kCheckedKindsMax at most. A rule that says `*` of groups or versions
/// names none; `*` among its resources is passed over.
std::vector<NamedKind> kinds_to_check(std::span<const webhooks::Rule> rules, const KindOf& kind_of);

struct CheckedKind {
  NamedKind name;
  cel::Type type;
};

struct ExpressionWarning {
  std::string field;  // "spec.validations[0].expression"
  std::string text;   // for each kind that it does not fit a line with the kind and the problems, as the compiler says

  friend bool operator==(const ExpressionWarning&, const ExpressionWarning&) = default;
};

/// Checks validations and their message expressions, in the order of the policy. `params`: the type of params; nullopt:
/// the policy has no paramKind, or one that is not known, and no expression may name params. Counts its work
/// (base/fiber.h) after every expression.
std::vector<ExpressionWarning> type_warnings(const api::Json& policy, std::span<const CheckedKind> kinds,
                                             const std::optional<cel::Type>& params);

/// `{"expressionWarnings": [...]}`, or `{}`: the value of status.typeChecking.
api::Json type_checking_status(std::span<const ExpressionWarning> warnings);

}  // namespace spillway::admission_policies
