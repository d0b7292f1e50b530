#include "api/object/node_affinity.h"

#include "api/text/names.h"
#include "base/json_string.h"

#include <algorithm>
#include <array>

namespace spillway::api {
namespace {

using Op = LabelRequirement::Op;

constexpr std::string_view kNameField = "metadata.name";

constexpr std::array<std::pair<std::string_view, Op>, 6> kOperators = {{{"In", Op::kIn},
                                                                        {"NotIn", Op::kNotIn},
                                                                        {"Exists", Op::kExists},
                                                                        {"DoesNotExist", Op::kDoesNotExist},
                                                                        {"Gt", Op::kGt},
                                                                        {"Lt", Op::kLt}}};

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(text, out);
  return out;
}

/// A v1.NodeSelectorRequirement as written.
struct Written {
  std::string key;
  std::string op;
  std::vector<std::string> values;
  ValuesGiven given = ValuesGiven::kNo;
};

Written read(const Json& document) {
  Written written{.key = std::string(document.string_at({"key"})),
                  .op = std::string(document.string_at({"operator"})),
                  .values = {},
                  .given = ValuesGiven::kNo};
  const Json* values = document.find("values");
  if (values == nullptr || !values->is_array()) return written;
  written.given = ValuesGiven::kYes;
  for (const Json& value : *values->if_array()) written.values.emplace_back(value.string_at({}));
  return written;
}

void add_expression(const Written& written, const std::string& at, NodeSelectorTerm& term) {
  const auto op =
      std::find_if(kOperators.begin(), kOperators.end(), [&](const auto& o) { return o.first == written.op; });
  if (op == kOperators.end()) {
    term.errors.push_back(
        fmt::format("{}.operator: Unsupported value: {}: supported values: \"In\", \"NotIn\", "
                    "\"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\"",
                    at, quoted(written.op)));
    return;
  }
  LabelRequirement requirement{.key = written.key, .op = op->second, .values = written.values};
  for (std::string& error : requirement_errors(requirement, at, written.given)) term.errors.push_back(std::move(error));
  std::sort(requirement.values.begin(), requirement.values.end());
  term.expressions.push_back(std::move(requirement));
}

void add_field(const Written& written, const std::string& at, NodeSelectorTerm& term) {
  if (written.op != "In" && written.op != "NotIn") {
    term.errors.push_back(
        fmt::format("{}.operator: Unsupported value: {}: supported values: \"In\", \"NotIn\"", at, quoted(written.op)));
    return;
  }
  if (written.values.size() != 1) {
    std::string list = written.given == ValuesGiven::kNo ? "[]string(nil)" : "[]string{";
    for (const std::string& value : written.values) {
      if (list.back() != '{') list += ", ";
      append_json_string(value, list);
    }
    if (written.given == ValuesGiven::kYes) list += '}';
    term.errors.push_back(fmt::format("{}.values: Invalid value: {}: must have one element", at, list));
    return;
  }
  term.fields.push_back(
      {.key = written.key, .op = written.op == "In" ? Op::kEquals : Op::kNotEquals, .values = written.values});
}

NodeSelectorTerm parse_term(const Json& document, const std::string& at) {
  NodeSelectorTerm term;
  const auto each = [&](std::string_view member, auto&& add) {
    const Json* list = document.find(member);
    if (list == nullptr || !list->is_array()) return;
    std::size_t index = 0;
    for (const Json& element : *list->if_array()) {
      add(read(element), fmt::format("{}.{}[{}]", at, member, index++), term);
    }
  };
  each("matchExpressions", add_expression);
  each("matchFields", add_field);
  return term;
}

bool field_matches(const LabelRequirement& requirement, const ObjectMeta& node) {
  const std::string_view actual = requirement.key == kNameField ? std::string_view(node.name) : std::string_view();
  return (actual == requirement.values.front()) == (requirement.op == Op::kEquals);
}

}  // namespace

bool NodeSelectorTerm::matches(const ObjectMeta& node) const {
  if (is_empty() || !errors.empty()) return false;
  const bool labels_match = std::all_of(expressions.begin(), expressions.end(),
                                        [&node](const LabelRequirement& r) { return r.matches(node.labels); });
  if (!labels_match) return false;
  if (node.name.empty()) return true;  // a node without a name has no fields to match
  return std::all_of(fields.begin(), fields.end(),
                     [&node](const LabelRequirement& r) { return field_matches(r, node); });
}

Result<bool> NodeSelector::matches(const ObjectMeta& node) const {
  for (const NodeSelectorTerm& term : terms) {
    if (term.matches(node)) return true;
  }
  if (const auto all = errors(); !all.empty()) return invalid("", "{}", join_errors(all));
  return false;
}

std::vector<std::string> NodeSelector::errors() const {
  std::vector<std::string> all;
  for (const NodeSelectorTerm& term : terms) all.insert(all.end(), term.errors.begin(), term.errors.end());
  return all;
}

NodeSelector parse_node_selector(const Json& selector) {
  NodeSelector result;
  const Json* terms = selector.find("nodeSelectorTerms");
  if (terms == nullptr || !terms->is_array()) return result;
  std::size_t index = 0;
  for (const Json& term : *terms->if_array()) {
    result.terms.push_back(parse_term(term, fmt::format("nodeSelectorTerms[{}]", index++)));
  }
  return result;
}

Result<bool> RequiredNodeAffinity::matches(const ObjectMeta& node) const {
  for (const auto& [key, value] : labels) {
    const auto label = node.labels.find(key);
    if (label == node.labels.end() || label->second != value) return false;
  }
  return selector ? selector->matches(node) : Result<bool>(true);
}

RequiredNodeAffinity required_node_affinity(const PodSpec& spec) {
  RequiredNodeAffinity result{.labels = spec.node_selector, .selector = std::nullopt};
  const Json* required = spec.affinity.at({"nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (required != nullptr && !required->is_null()) result.selector = parse_node_selector(*required);
  return result;
}

Result<std::vector<PreferredNodeTerm>> parse_preferred_node_terms(const Json& terms) {
  std::vector<PreferredNodeTerm> result;
  std::vector<std::string> errors;
  const Json::Array* list = terms.if_array();
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const Json& element = (*list)[i];
    const Json* weight = element.find("weight");
    const Json* preference = element.find("preference");
    const std::int64_t amount = weight != nullptr ? weight->if_int64().value_or(0) : 0;
    if (amount == 0 || preference == nullptr) continue;
    NodeSelectorTerm term = parse_term(*preference, fmt::format("[{}]", i));
    if (term.is_empty()) continue;
    errors.insert(errors.end(), term.errors.begin(), term.errors.end());
    result.push_back({.term = std::move(term), .weight = static_cast<std::int32_t>(amount)});
  }
  if (!errors.empty()) return invalid("", "{}", join_errors(errors));
  return result;
}

std::int64_t preferred_node_score(const std::vector<PreferredNodeTerm>& terms, const ObjectMeta& node) {
  std::int64_t score = 0;
  for (const PreferredNodeTerm& preferred : terms) {
    if (preferred.term.matches(node)) score += preferred.weight;
  }
  return score;
}

}  // namespace spillway::api
