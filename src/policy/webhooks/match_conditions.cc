#include "policy/webhooks/match_conditions.h"

#include "base/ascii.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::webhooks {

namespace {

using api::Json;

Result<bool> value_of(const MatchCondition& condition, const cel::Activation& activation,
                      std::optional<std::uint64_t>& left, std::uint64_t& used) {
  if (!condition.expression) {
    return make_error(ErrorCode::kInvalid, "compilation error: {}", condition.expression.error().text());
  }
  cel::Budget budget(std::min(cel::kCallBudget, *left + 1));
  Result<bool> value = condition.expression->evaluate(activation, budget);
  used += budget.used();
  left = budget.used() > *left ? std::nullopt : std::optional(*left - budget.used());
  if (value) return value;
  return make_error(ErrorCode::kInvalid, "expression '{}' resulted in error: {}", condition.expression->text(),
                    value.error().text());
}

/// Joins several errors in brackets, each once.
Error joined(const std::vector<Error>& errors) {
  std::vector<std::string> texts;
  for (const Error& error : errors) {
    std::string text = error.text();
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  }
  if (texts.size() == 1) return make_error(ErrorCode::kForbidden, "{}", texts.front());
  return make_error(ErrorCode::kForbidden, "[{}]", fmt::join(texts, ", "));
}

}  // namespace

MatchConditions match_conditions_of(const Json& webhook, const cel::Environment& environment) {
  const Json* said = webhook.find("matchConditions");
  const Json::Array* list = said == nullptr ? nullptr : said->if_array();
  if (list == nullptr || list->empty()) return nullptr;
  std::vector<MatchCondition> made;
  for (const Json& one : *list) {
    made.push_back({.name = std::string(one.string_at({"name"})),
                    .expression = cel::Expression::compile(trimmed(one.string_at({"expression"}), kWhiteSpace),
                                                           environment, {cel::TypeKind::kBool})});
  }
  return std::make_shared<const std::vector<MatchCondition>>(std::move(made));
}

MatchOutcome evaluate(const std::vector<MatchCondition>& conditions, const cel::Activation& seen, std::uint64_t units) {
  cel::Activation activation = seen;
  activation.namespace_object = nullptr;  // upstream evaluates them before it has the namespace
  MatchOutcome outcome;
  std::vector<Error> errors;
  bool excluded = false;
  std::optional<std::uint64_t> left = units;  // nullopt: spent
  for (const MatchCondition& condition : conditions) {
    const Result<bool> value = value_of(condition, activation, left, outcome.used);
    if (!left) {
      outcome.why = make_error(ErrorCode::kForbidden,
                               "validation failed due to running out of cost budget, no further validation rules will "
                               "be run");
      return outcome;
    }
    if (!value) errors.push_back(value.error());
    excluded = excluded || (value && !*value);
  }
  outcome.errors = errors.size();
  if (excluded) return outcome;
  if (!errors.empty()) {
    outcome.why = joined(errors);
  } else {
    outcome.matches = true;
  }
  return outcome;
}

}  // namespace spillway::webhooks
