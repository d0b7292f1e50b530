// Evaluates one policy for one request with one object of parameters: the result of each validation, and the
// annotations for the audit log. Thread: any (pure). Source: Kubernetes docs, "Validating Admission Policy"; KEP-3488.
#pragma once

#include "policy/admission_policies/admission_policy.h"
#include "policy/cel/expression.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::admission_policies {

/// Units that the validations of a policy may cost for one request and one object of parameters.
inline constexpr std::uint64_t kPolicyBudget = 10'000'000;
/// Bytes of a message, and of a note for the audit log.
inline constexpr std::size_t kMessageMax = 5U << 10U;
inline constexpr std::size_t kAnnotationMax = 10U << 10U;

/// The cause of a missing value.
enum class Fault : std::uint8_t { kNone, kCompile, kBudget, kOther };

/// A validation that does not hold, or that has no value.
struct Finding {
  std::size_t index = 0;  // index of the validation
  std::string message;
  std::string reason = {};  // metav1.Status.reason; empty: Invalid
  Fault fault = Fault::kNone;
};

struct AnnotationValue {
  std::string key;
  std::string value;
};

struct Evaluation {
  std::vector<Finding> findings;
  std::vector<AnnotationValue> annotations;
  std::vector<Finding> annotation_faults;
  std::size_t condition_errors = 0;
  bool excluded = false;  // by a match condition
};

/// `left`: cost units that the request may still spend; reduced by the cost of this policy.
Evaluation evaluate(const AdmissionPolicy& policy, const cel::Activation& seen, std::uint64_t& left);

}  // namespace spillway::admission_policies
