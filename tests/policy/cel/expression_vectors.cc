// Expressions as upstream compiles and evaluates them: cel/evaluate; against the schema of self: cel/check; their
// costs: cel/cost.
#include "policy/cel/compile_text.h"
#include "policy/cel/estimate.h"
#include "policy/cel/evaluator.h"
#include "policy/cel/planner.h"
#include "policy/cel/vector_values.h"
#include "policy/structural/rule_sizes.h"
#include "policy/structural/rule_types.h"
#include "policy/structural/rule_values.h"
#include "policy/structural/structural_schema.h"
#include "support/vectors.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::cel {
namespace {

using api::Json;

/// The variables that expressions of the rows use, with their values.
struct World {
  std::vector<structural::Schema> schemas;
  std::vector<NamedVariable> names;
  std::vector<Value> values;
};

World world_of(const Json& in) {
  World world;
  const Json* variables = in.find("variables");
  if (variables == nullptr) return world;
  for (const Json& variable : *variables->if_array()) {
    const std::string name(variable.string_at({"name"}));
    const Json& value = *variable.find("value");
    if (const Json* schema = variable.find("schema")) {
      world.schemas.push_back(structural::Schema::reread(*schema).value());
      const structural::Node& root = world.schemas.back().root();
      const structural::RuleTypes types(root, /*resource=*/false);
      const Type* type = types.of(root);
      world.names.push_back({.name = name, .type = type == nullptr ? Type{} : *type});
      world.values.push_back(structural::rule_value(root, value));
    } else {
      Type type = vector_type(variable.string_at({"type"}));
      world.values.push_back(vector_value(type, value));
      world.names.push_back({.name = name, .type = std::move(type)});
    }
  }
  return world;
}

Age age_of(const Json& in) {
  return in.string_at({"environment"}) == "stored" ? Age::kStored : Age::kNew;
}

Json failure(std::string_view phase, std::string text) {
  Json error = Json::object();
  error["phase"] = Json(std::string(phase));
  error["text"] = Json(std::move(text));
  Json made = Json::object();
  made["error"] = std::move(error);
  return made;
}

std::string with_self_names(std::string text) {
  for (std::size_t at = text.find(structural::kTypeRoot); at != std::string::npos;
       at = text.find(structural::kTypeRoot)) {
    text.replace(at, 1, "selfType0");
  }
  return text;
}

std::optional<support::Mismatch> check_evaluate(const Json& row) {
  const Json& in = *row.find("in");
  const World world = world_of(in);
  const std::string text(in.string_at({"expression"}));
  const std::string root_name(1, structural::kTypeRoot);
  const Environment environment{.age = age_of(in), .self_name = root_name, .given = &world.names};
  Result<CheckedText> checked = check_text(text, environment);
  const Json& want = *row.find("want");
  if (!checked) return support::compare(want, failure("compile", checked.error().message));
  if (const Result<void> planned = plan(checked->root); !planned) {
    return support::compare(want, failure("program", planned.error().message));
  }
  static const Json kNull;
  Budget budget(kCallBudget);
  const Activation activation{.object = kNull, .old_object = kNull, .request = kNull, .given = world.values};
  Result<Value> value = Evaluator(activation, budget).evaluate(checked->root);
  Json got = Json::object();
  if (budget.spent()) value = over_budget();
  if (value) {
    got["result"] = described(*value);
  } else {
    got = failure("evaluate", value.error().message);
  }
  got["output_type"] = Json(with_self_names(declared_text(checked->type)));
  if (want.find("cost") != nullptr) got["cost"] = Json(fmt::format("{}", budget.used()));
  return support::compare(want, got);
}

std::optional<support::Mismatch> check_check(const Json& row) {
  const Json& in = *row.find("in");
  const structural::Schema schema = structural::Schema::reread(*in.find("schema")).value();
  const Json* resource = in.find("resource_root");
  const Json* optional = in.find("optional_old_self");
  const structural::RuleTypes types(schema.root(), resource != nullptr && resource->if_bool().value_or(false));
  const std::string root_name(1, structural::kTypeRoot);
  Json got = Json::object();
  const Result<CheckedText> checked =
      check_text(in.string_at({"expression"}), {.age = age_of(in),
                                                .self = types.of(schema.root()),
                                                .self_name = root_name,
                                                .optional_old_self = optional != nullptr && *optional->if_bool()});
  got["accepted"] = Json(checked.has_value());
  if (checked) {
    got["type"] = Json(with_self_names(declared_text(checked->type)));
  } else {
    got["error"] = Json(checked.error().message);
  }
  return support::compare(*row.find("want"), got);
}

Json text_of(std::uint64_t number) {
  return Json(fmt::format("{}", number));
}

/// This is what a rule over self may cost, and what it does for some values: oldSelf has the same one.
std::optional<support::Mismatch> check_cost(const Json& row) {
  const Json& in = *row.find("in");
  const structural::Schema schema = structural::Schema::reread(*in.find("schema")).value();
  const structural::Node& node = schema.root();
  const structural::RuleTypes types(node, /*resource=*/false);
  const auto sizes = structural::rule_sizes(node, /*resource=*/false);
  const Type* type = types.of(node);
  if (sizes == nullptr || type == nullptr) return support::Mismatch{"a schema that rules see", "none"};
  Result<CheckedText> checked = check_text(in.string_at({"expression"}), {.self = type});
  Json got = Json::object();
  if (!checked) {
    got["error"] = Json(checked.error().message);
    return support::compare(*row.find("want"), got);
  }
  const Estimate estimate = estimate_cost(checked->root, *sizes);
  got["estimate"] = Json::object();
  got["estimate"]["min"] = text_of(estimate.min);
  got["estimate"]["max"] = text_of(estimate.max);
  got["max_cardinality"] = text_of(structural::times_in_request(*sizes));
  if (const Result<void> planned = plan(checked->root); !planned) {
    return support::Mismatch{"an expression with a plan", planned.error().message};
  }
  Json runs = Json::array();
  for (const Json& value : *in.find("values")->if_array()) {
    static const Json kNull;
    const Value self = structural::rule_value(node, value);
    Budget budget(kCallBudget);
    const Activation activation{
        .object = kNull, .old_object = kNull, .request = kNull, .self = &self, .old_self = &self};
    const Result<Value> made = Evaluator(activation, budget).evaluate(checked->root);
    Json run = Json::object();
    run["cost"] = text_of(budget.used());
    run[made ? "result" : "error"] = made ? described(*made) : Json(made.error().message);
    runs.if_array()->push_back(std::move(run));
  }
  got["runs"] = std::move(runs);
  return support::compare(*row.find("want"), got);
}

const bool kCost = support::add_vector_check("cel/cost", check_cost);
const bool kEvaluate = support::add_vector_check("cel/evaluate", check_evaluate);
const bool kCheck = support::add_vector_check("cel/check", check_check);

}  // namespace
}  // namespace spillway::cel
