// Evaluates all admission policies for a request: its rejection, warnings and audit annotations. Thread: any (pure;
// input is read through ports). Source: Kubernetes docs, "Validating Admission Policy".
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "policy/admission_policies/admission_policy.h"
#include "policy/admission_policies/params.h"
#include "policy/admission_policies/policy_evaluation.h"
#include "policy/webhooks/match.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::admission_policies {

/// Units that all policies together may cost for one request; the rest of them have no value then.
inline constexpr std::uint64_t kRequestBudget = 20'000'000;

/// The request in the form of one resource under which its objects are served.
struct ShownRequest {
  api::Json object = {};
  api::Json old_object = {};
  api::Json facts = {};  // the AdmissionRequest without its objects
  cel::AccessRequest access = {};
  std::optional<Error> fault = {};  // the error because of which the objects have no such form
};

/// Port: the request, and the namespace that it is in.
class RequestSource {
 public:
  virtual ~RequestSource() = default;
  /// Valid until the evaluation ends.
  virtual const ShownRequest& shown(const webhooks::ResourceName& name) = 0;
  /// Null: the object is in none.
  virtual const api::Json* namespace_object() = 0;
};

struct EvaluatedRequest {
  const webhooks::Subject& subject;
  const webhooks::Selectable& seen;
  const cel::AccessCheck& check;
  RequestSource& source;
  const ParamSource& params;
};

/// The action that a finding has led to.
enum class Outcome : std::uint8_t { kAllow, kDeny, kWarn, kAudit };

/// "allow", …
std::string_view to_string(Outcome outcome);
/// "no_error", …
std::string_view to_string(Fault fault);

/// The result of one policy, for metrics.
struct Check {
  std::string policy;
  std::string binding;
  Outcome outcome = Outcome::kAllow;
  Fault fault = Fault::kNone;

  friend bool operator==(const Check&, const Check&) = default;
};

struct Refusal {
  std::string message;  // "ValidatingAdmissionPolicy 'P' with binding 'B' denied request: WHY"
  std::string reason;   // metav1.Status.reason
};

struct ConditionCount {
  std::string policy;
  std::size_t errors = 0;
  bool excluded = false;
};

struct PolicyResult {
  std::optional<Refusal> refusal;  // by the first policy that refuses
  std::vector<std::string> warnings;
  std::vector<api::Json> audited;                                // failures for the audit log
  std::vector<std::pair<std::string, std::string>> annotations;  // "POLICY/KEY": notes, joined
  std::vector<Check> checks;
  std::vector<ConditionCount> conditions;  // counts of policies whose match conditions failed or excluded the request
};

/// All policies are evaluated, even if the first one rejects.
PolicyResult evaluate_policies(const PolicyList& policies, const EvaluatedRequest& request);

/// 422, 403, 401 or 413.
int http_code(std::string_view reason);

}  // namespace spillway::admission_policies
