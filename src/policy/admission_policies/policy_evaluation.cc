#include "policy/admission_policies/policy_evaluation.h"

#include "base/ascii.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::admission_policies {

namespace {

constexpr std::string_view kOutOfBudget =
    "validation failed due to running out of cost budget, no further validation rules will be run";
constexpr std::size_t kExpressionShownMax = 1U << 10U;  // bytes of an expression in a message

std::string cut(std::string_view text, std::size_t bytes_max = kMessageMax) {
  return std::string(shortened(text, bytes_max));
}

/// Each variable is evaluated at its first use, and once.
class ComposedValues final : public cel::VariableValues {
 public:
  ComposedValues(const std::vector<Variable>& variables, const cel::Activation& seen)
      : variables_(variables), values_(variables.size()), seen_(seen) {
    seen_.variables = this;
  }

  Result<cel::Value> value_of(std::size_t place, cel::Budget& budget) override {
    std::optional<Result<cel::Value>>& known = values_[place];
    if (known) return *known;
    Result<cel::Value> value = evaluated(variables_[place], budget);
    // A value too expensive for one expression may fit another one's budget.
    if (!budget.spent()) known = value;
    return value;
  }

  const cel::Activation& seen() const { return seen_; }

 private:
  Result<cel::Value> evaluated(const Variable& variable, cel::Budget& budget) const {
    const auto failed = [&](const Error& why) {
      return make_error(ErrorCode::kInvalid, "composited variable \"{}\" fails to evaluate: {}", variable.name,
                        why.text());
    };
    if (!variable.expression) return failed(variable.expression.error());
    Result<cel::Value> value = variable.expression->value(seen_, budget);
    if (!value) return failed(value.error());
    return value;
  }

  const std::vector<Variable>& variables_;
  std::vector<std::optional<Result<cel::Value>>> values_;
  cel::Activation seen_;
};

/// The cost budget that several expressions share.
class Purse {
 public:
  Purse(std::uint64_t units, std::uint64_t& request) : left_(std::min(units, request)), request_(request) {}

  bool empty() const { return left_ == 0; }

  Result<cel::Value> value(const cel::Expression& expression, const cel::Activation& seen) {
    cel::Budget budget(std::min(cel::kCallBudget, left_));
    Result<cel::Value> value = expression.value(seen, budget);
    const std::uint64_t used = std::min(budget.used(), left_);
    left_ -= used;
    request_ -= used;
    return value;
  }

 private:
  std::uint64_t left_;
  std::uint64_t& request_;
};

Fault fault_of(const Result<cel::Expression>& expression) {
  return expression ? Fault::kOther : Fault::kCompile;
}

std::string why_no_value(std::string_view text, const Result<cel::Expression>& expression, const Error& why) {
  if (!expression) return cut(fmt::format("compilation error: {}", why.text()));
  return cut(fmt::format("expression '{}' resulted in error: {}", cut(text, kExpressionShownMax), why.text()));
}

Result<cel::Value> value_of(const Result<cel::Expression>& expression, const cel::Activation& seen, Purse& purse) {
  if (!expression) return expression.error();
  return purse.value(*expression, seen);
}

/// The result of messageExpression; empty: it is unusable.
std::string composed_message(const Validation& validation, const cel::Activation& seen, Purse& purse) {
  if (!validation.message_expression) return {};
  const Result<cel::Value> value = value_of(*validation.message_expression, seen, purse);
  if (!value || !value->is(cel::Kind::kString)) return {};
  const std::string_view text = trimmed(value->string(), kWhiteSpace);
  return text.size() > kMessageMax || text.contains('\n') ? std::string() : std::string(text);
}

std::string message_of(const Validation& validation, const cel::Activation& seen, Purse& purse) {
  if (std::string text = composed_message(validation, seen, purse); !text.empty()) return text;
  if (const std::string_view text = trimmed(validation.message, kWhiteSpace); !text.empty()) return cut(text);
  return cut(fmt::format("failed expression: {}", trimmed(validation.text, kWhiteSpace)));
}

/// Evaluates one validation. The message of a finding may be added later.
std::optional<Finding> evaluate_validation(std::size_t index, const Validation& validation, const cel::Activation& seen,
                                           Purse& purse) {
  const Result<cel::Value> value = value_of(validation.holds, seen, purse);
  if (purse.empty()) return Finding{.index = index, .message = std::string(kOutOfBudget), .fault = Fault::kBudget};
  if (!value) {
    return Finding{.index = index,
                   .message = why_no_value(validation.text, validation.holds, value.error()),
                   .fault = fault_of(validation.holds)};
  }
  if (value->is(cel::Kind::kBool) && value->as<bool>()) return std::nullopt;
  return Finding{.index = index, .message = {}, .reason = validation.reason};
}

void annotate(std::size_t index, const AuditAnnotation& annotation, const cel::Activation& seen, Purse& purse,
              Evaluation& made) {
  const Result<cel::Value> value = value_of(annotation.value, seen, purse);
  const std::string_view text = annotation.value ? std::string_view(annotation.value->text()) : std::string_view();
  if (!value) {
    made.annotation_faults.push_back({.index = index,
                                      .message = why_no_value(text, annotation.value, value.error()),
                                      .fault = fault_of(annotation.value)});
  } else if (value->is(cel::Kind::kString)) {
    const std::string_view said = trimmed(value->string(), kWhiteSpace);
    if (!said.empty()) made.annotations.push_back({annotation.key, cut(said, kAnnotationMax)});
  } else if (!value->is(cel::Kind::kNull)) {
    made.annotation_faults.push_back(
        {.index = index,
         .message = cut(fmt::format("valueExpression '{}' resulted in unsupported return type: {}. Return type must be "
                                    "either string or null.",
                                    text, type_name(*value))),
         .fault = Fault::kOther});
  }
}

/// False: nothing more is evaluated.
bool passes_conditions(const AdmissionPolicy& policy, const cel::Activation& seen, std::uint64_t& left,
                       Evaluation& made) {
  if (policy.conditions == nullptr) return true;
  const webhooks::MatchOutcome outcome =
      webhooks::evaluate(*policy.conditions, seen, std::min(webhooks::kMatchBudget, left));
  left -= std::min(outcome.used, left);
  made.condition_errors = outcome.errors;
  if (outcome.matches) return true;
  if (outcome.why && !policy.fails_open) {
    made.findings.push_back({.index = 0, .message = cut(outcome.why->text()), .fault = Fault::kOther});
  } else {
    made.excluded = true;
  }
  return false;
}

}  // namespace

Evaluation evaluate(const AdmissionPolicy& policy, const cel::Activation& seen, std::uint64_t& left) {
  constexpr std::uint64_t kBegun = 100;  // fixed cost of an evaluation, in units
  Evaluation made;
  left -= std::min(kBegun, left);
  if (left == 0) {
    made.findings.push_back({.index = 0, .message = std::string(kOutOfBudget), .fault = Fault::kBudget});
    return made;
  }
  if (!passes_conditions(policy, seen, left, made)) return made;
  ComposedValues values(policy.variables, seen);
  Purse purse(kPolicyBudget, left);
  for (std::size_t i = 0; i < policy.validations.size(); ++i) {
    std::optional<Finding> found = evaluate_validation(i, policy.validations[i], values.seen(), purse);
    if (!found) continue;
    const bool spent = found->fault == Fault::kBudget;
    if (spent) made.findings.clear();
    made.findings.push_back(*std::move(found));
    if (spent) return made;
  }
  // Messages are paid from a budget of their own, not from that of validations.
  for (Finding& finding : made.findings) {
    if (finding.fault == Fault::kNone) {
      finding.message = message_of(policy.validations[finding.index], values.seen(), purse);
    }
  }
  Purse annotation_purse(kPolicyBudget, left);
  for (std::size_t i = 0; i < policy.annotations.size(); ++i) {
    annotate(i, policy.annotations[i], values.seen(), annotation_purse, made);
  }
  return made;
}

}  // namespace spillway::admission_policies
