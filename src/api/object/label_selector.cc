#include "api/json/json.h"
#include "api/object/selector.h"
#include "api/text/names.h"
#include "base/json_string.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace spillway::api {
namespace {

using Op = LabelRequirement::Op;

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string quoted_values_text(std::string_view text) {
  std::string out;
  append_json_string(text, out);
  return out;
}

std::string value_list_text(const std::vector<std::string>& values, ValuesGiven given) {
  if (values.empty() && given == ValuesGiven::kNo) return "[]string(nil)";
  std::string out = "[]string{";
  for (const std::string& value : values) {
    if (out.back() != '{') out += ", ";
    append_json_string(value, out);
  }
  return out += '}';
}

/// Checks the number of values against the operator; nullopt: it fits.
std::optional<std::string> count_error(const LabelRequirement& requirement, ValuesGiven given) {
  const auto wrong = [&](std::string_view rule) {
    return fmt::format("values: Invalid value: {}: {}", value_list_text(requirement.values, given), rule);
  };
  switch (requirement.op) {
    case Op::kIn:
    case Op::kNotIn:
      if (!requirement.values.empty()) return std::nullopt;
      return wrong("for 'in', 'notin' operators, values set can't be empty");
    case Op::kExists:
    case Op::kDoesNotExist:
      if (requirement.values.empty()) return std::nullopt;
      return wrong("values set must be empty for exists and does not exist");
    case Op::kEquals:
    case Op::kDoubleEquals:
    case Op::kNotEquals:
      if (requirement.values.size() == 1) return std::nullopt;
      return wrong("exact-match compatibility requires one single value");
    case Op::kGt:
    case Op::kLt:
      if (requirement.values.size() == 1) return std::nullopt;
      return wrong("for 'Gt', 'Lt' operators, exactly one value is required");
  }
  return std::nullopt;
}

std::optional<Op> parse_operator(std::string_view text) {
  if (text == "In") return Op::kIn;
  if (text == "NotIn") return Op::kNotIn;
  if (text == "Exists") return Op::kExists;
  if (text == "DoesNotExist") return Op::kDoesNotExist;
  return std::nullopt;
}

Error wrong_type(std::string_view at, std::string_view expected) {
  return invalid(at, "expected {}", expected);
}

/// A requirement as written in a document. `at` is its path.
Result<LabelRequirement> expression_from_json(const Json& document, const std::string& at) {
  if (!document.is_object()) return wrong_type(at, "an object");
  const auto text_of = [&](std::string_view member) -> Result<std::string> {
    const Json* found = document.find(member);
    if (found == nullptr || found->is_null()) return std::string();
    if (!found->is_string()) return wrong_type(fmt::format("{}.{}", at, member), "a string");
    return *found->if_string();
  };
  LabelRequirement requirement;
  SPILLWAY_TRY(key, text_of("key"));
  SPILLWAY_TRY(op_text, text_of("operator"));
  requirement.key = std::move(key);
  const Json* values = document.find("values");
  if (values != nullptr && !values->is_null()) {
    if (!values->is_array()) return wrong_type(at + ".values", "a list");
    for (const Json& value : *values->if_array()) {
      if (!value.is_string())
        return wrong_type(fmt::format("{}.values[{}]", at, requirement.values.size()), "a string");
      requirement.values.push_back(*value.if_string());
    }
  }
  const std::optional<Op> op = parse_operator(op_text);
  if (!op) return invalid("", "{} is not a valid label selector operator", quoted_values_text(op_text));
  requirement.op = *op;
  return requirement;
}

Result<LabelRequirement> checked(LabelRequirement requirement) {
  const std::vector<std::string> errors = requirement_errors(requirement, "");
  if (!errors.empty()) return invalid("", "{}", join_errors(errors));
  std::sort(requirement.values.begin(), requirement.values.end());
  return requirement;
}

}  // namespace

std::vector<std::string> requirement_errors(const LabelRequirement& requirement, std::string_view at,
                                            ValuesGiven given) {
  std::vector<std::string> errors;
  const std::string prefix = at.empty() ? std::string() : fmt::format("{}.", at);
  if (const auto problems = qualified_name_errors(requirement.key); !problems.empty()) {
    errors.push_back(fmt::format("{}key: Invalid value: {}: {}", prefix, quoted_values_text(requirement.key),
                                 join_problems(problems)));
  }
  if (const auto error = count_error(requirement, given)) errors.push_back(prefix + *error);
  if (requirement.op == Op::kGt || requirement.op == Op::kLt) {
    for (std::size_t i = 0; i < requirement.values.size(); ++i) {
      if (parse_integer(requirement.values[i])) continue;
      errors.push_back(
          fmt::format("{}values[{}]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be an integer", prefix,
                      i, quoted_values_text(requirement.values[i])));
    }
  }
  for (std::size_t i = 0; i < requirement.values.size(); ++i) {
    const auto problems = label_value_errors(requirement.values[i]);
    if (problems.empty()) continue;
    errors.push_back(fmt::format("{}values[{}][{}]: Invalid value: {}: {}", prefix, i, requirement.key,
                                 quoted_values_text(requirement.values[i]), join_problems(problems)));
  }
  return errors;
}

std::string_view to_string(LabelRequirement::Op op) {
  switch (op) {
    case Op::kIn:
      return "in";
    case Op::kNotIn:
      return "notin";
    case Op::kExists:
      return "exists";
    case Op::kDoesNotExist:
      return "!";
    case Op::kEquals:
      return "=";
    case Op::kDoubleEquals:
      return "==";
    case Op::kNotEquals:
      return "!=";
    case Op::kGt:
      return "gt";
    case Op::kLt:
      return "lt";
  }
  return "";
}

bool LabelRequirement::matches(const StringMap& labels) const {
  const auto label = labels.find(key);
  const bool present = label != labels.end();
  const auto listed = [&] { return std::find(values.begin(), values.end(), label->second) != values.end(); };
  switch (op) {
    case Op::kIn:
    case Op::kEquals:
    case Op::kDoubleEquals:
      return present && listed();
    case Op::kNotIn:
    case Op::kNotEquals:
      return !present || !listed();
    case Op::kExists:
      return present;
    case Op::kDoesNotExist:
      return !present;
    case Op::kGt:
    case Op::kLt: {
      if (!present || values.size() != 1) return false;
      const auto here = parse_integer(label->second);
      const auto bound = parse_integer(values.front());
      if (!here || !bound) return false;
      return op == Op::kGt ? *here > *bound : *here < *bound;
    }
  }
  return false;
}

void LabelSelector::add(LabelRequirement requirement) {
  const auto behind = std::upper_bound(requirements.begin(), requirements.end(), requirement.key,
                                       [](const std::string& key, const LabelRequirement& r) { return key < r.key; });
  requirements.insert(behind, std::move(requirement));
}

bool LabelSelector::matches(const StringMap& labels) const {
  return !nothing && std::all_of(requirements.begin(), requirements.end(),
                                 [&labels](const LabelRequirement& r) { return r.matches(labels); });
}

std::string to_string(const LabelSelector& selector) {
  std::string out;
  for (const LabelRequirement& requirement : selector.requirements) {
    if (!out.empty()) out += ',';
    switch (requirement.op) {
      case Op::kExists:
        out += requirement.key;
        break;
      case Op::kDoesNotExist:
        out += '!' + requirement.key;
        break;
      case Op::kIn:
      case Op::kNotIn:
        out +=
            fmt::format("{} {} ({})", requirement.key, to_string(requirement.op), fmt::join(requirement.values, ","));
        break;
      case Op::kEquals:
      case Op::kDoubleEquals:
      case Op::kNotEquals:
        out += fmt::format("{}{}{}", requirement.key, to_string(requirement.op), fmt::join(requirement.values, ","));
        break;
      case Op::kGt:
      case Op::kLt:
        out += fmt::format("{}{}{}", requirement.key, requirement.op == Op::kGt ? '>' : '<',
                           fmt::join(requirement.values, ","));
        break;
    }
  }
  return out;
}

Result<LabelSelector> label_selector_from_json(const Json* selector) {
  LabelSelector result;
  if (selector == nullptr || selector->is_null()) {
    result.nothing = true;
    return result;
  }
  if (!selector->is_object()) return wrong_type("", "an object");
  if (const Json* labels = selector->find("matchLabels"); labels != nullptr && !labels->is_null()) {
    if (!labels->is_object()) return wrong_type("matchLabels", "an object");
    for (const auto& [key, value] : *labels->if_object()) {
      if (!value.is_string()) return wrong_type(fmt::format("matchLabels[{}]", key), "a string");
      SPILLWAY_TRY(requirement, checked({.key = key, .op = Op::kEquals, .values = {*value.if_string()}}));
      result.requirements.push_back(std::move(requirement));
    }
  }
  if (const Json* expressions = selector->find("matchExpressions"); expressions != nullptr && !expressions->is_null()) {
    if (!expressions->is_array()) return wrong_type("matchExpressions", "a list");
    std::size_t index = 0;
    for (const Json& document : *expressions->if_array()) {
      SPILLWAY_TRY(written, expression_from_json(document, fmt::format("matchExpressions[{}]", index++)));
      SPILLWAY_TRY(requirement, checked(std::move(written)));
      result.requirements.push_back(std::move(requirement));
    }
  }
  std::ranges::stable_sort(result.requirements, {}, &LabelRequirement::key);
  return result;
}

Json label_selector_to_json(const LabelSelector& selector) {
  if (selector.nothing) return {};
  Json document = Json::object();
  for (const LabelRequirement& requirement : selector.requirements) {
    const bool equal = requirement.op == Op::kEquals || requirement.op == Op::kDoubleEquals;
    if (equal && requirement.values.size() == 1 && document.at({"matchLabels", requirement.key}) == nullptr) {
      document.make({"matchLabels", requirement.key}) = requirement.values.front();
      continue;
    }
    std::string_view op;
    switch (requirement.op) {
      case Op::kIn:
      case Op::kEquals:
      case Op::kDoubleEquals:
        op = "In";
        break;
      case Op::kNotIn:
      case Op::kNotEquals:
        op = "NotIn";
        break;
      case Op::kExists:
        op = "Exists";
        break;
      case Op::kDoesNotExist:
        op = "DoesNotExist";
        break;
      case Op::kGt:
        op = "Gt";
        break;
      case Op::kLt:
        op = "Lt";
        break;
    }
    Json expression = Json::object({{"key", requirement.key}, {"operator", op}});
    if (!requirement.values.empty()) {
      expression["values"] = Json::Array(requirement.values.begin(), requirement.values.end());
    }
    Json& expressions = document.make({"matchExpressions"});
    if (!expressions.is_array()) expressions = Json::array();
    expressions.if_array()->push_back(std::move(expression));
  }
  return document;
}

}  // namespace spillway::api
