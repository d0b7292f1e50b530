// Golden vectors of label, field and node selectors.
#include "api/codec/codec.h"
#include "api/object/node_affinity.h"
#include "api/object/selector.h"
#include "api/text/names.h"
#include "support/vectors.h"

#include <set>
#include <utility>

namespace spillway::api {
namespace {

using support::Mismatch;

StringMap string_map(const Json& document) {
  StringMap map;
  for (const auto& [key, value] : *document.if_object()) map.emplace(key, *value.if_string());
  return map;
}

/// The values as a set: rows list every value once, however often it was written.
Json different(const std::vector<std::string>& values) {
  const std::set<std::string> once(values.begin(), values.end());
  return Json::Array(once.begin(), once.end());
}

Json refused(const Error& error) {
  return Json::object({{"ok", false}, {"error", error.text()}});
}

template <typename Selector>
Json matches_of(const Selector& selector, const Json* sets) {
  Json::Array matches;
  if (sets == nullptr || sets->if_array() == nullptr) return matches;  // the row expects a refusal
  for (const Json& set : *sets->if_array()) matches.emplace_back(selector.matches(string_map(set)));
  return matches;
}

Json label_outcome(const Result<LabelSelector>& selector, const Json& in) {
  if (!selector) return refused(selector.error());
  Json got = Json::object({{"ok", true},
                           {"string", to_string(*selector)},
                           {"empty", selector->is_everything()},
                           {"matches", matches_of(*selector, in.find("sets"))}});
  if (selector->nothing) return got;
  Json::Array requirements;
  for (const LabelRequirement& requirement : selector->requirements) {
    requirements.push_back(Json::object(
        {{"key", requirement.key}, {"op", to_string(requirement.op)}, {"values", different(requirement.values)}}));
  }
  got["requirements"] = std::move(requirements);
  return got;
}

std::optional<Mismatch> check_label_selector(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  const std::string_view op = row.string_at({"op"});
  if (op == "parse") return support::compare(want, label_outcome(parse_label_selector(in.string_at({"text"})), in));
  if (op == "structured") {
    const auto selector = label_selector_from_json(in.find("selector"));
    Json got = label_outcome(selector, in);
    if (selector) {
      const std::string text = to_string(*selector);
      got["formatted"] = text.empty() ? "<none>" : text;
      const Json written = label_selector_to_json(*selector);
      const auto again = label_selector_from_json(&written);
      if (!again || *again != *selector) return Mismatch{to_text(*in.find("selector")), to_text(written)};
    }
    return support::compare(want, got);
  }
  const auto selector = parse_field_selector(in.string_at({"text"}));
  if (!selector) return support::compare(want, refused(selector.error()));
  return support::compare(want, Json::object({{"ok", true},
                                              {"string", selector->to_string()},
                                              {"empty", selector->requirements.empty()},
                                              {"matches", matches_of(*selector, in.find("sets"))}}));
}

std::optional<Mismatch> check_field_selector(const Json& row) {
  const auto selector = parse_field_selector(row.string_at({"text"}));
  Json got = Json::object();
  if (!selector) {
    got["refused"] = true;
  } else {
    Json::Array requirements;
    for (const FieldRequirement& requirement : selector->requirements) {
      requirements.push_back(Json::array({requirement.field, requirement.equal ? "=" : "!=", requirement.value}));
    }
    got["requirements"] = requirements.empty() ? Json() : Json(std::move(requirements));
    got["string"] = selector->to_string();
    got["matches"] = matches_of(*selector, row.find("sets"));
  }
  return support::compare(*row.find("expected"), got);
}

ObjectMeta metadata_of(const Json& object) {
  const auto meta = decode<ObjectMeta>(*object.find("metadata"));
  return meta ? *meta : ObjectMeta();
}

std::optional<Mismatch> check_node_affinity(const Json& row) {
  const Json& in = *row.find("in");
  const ObjectMeta node = metadata_of(*in.find("node"));
  const std::string_view op = row.string_at({"op"});
  Json got = Json::object();
  if (op == "match") {
    const auto spec = decode<PodSpec>(*in.at({"pod", "spec"}));
    if (!spec) return Mismatch{"a pod", spec.error().text()};
    const auto match = required_node_affinity(*spec).matches(node);
    got["match"] = match.value_or(false);
    if (!match) got["error"] = match.error().text();
  } else if (op == "strict") {
    const NodeSelector selector = parse_node_selector(*in.find("node_selector"));
    const auto match = selector.matches(node);
    const auto errors = selector.errors();
    got["ok"] = errors.empty();
    if (!errors.empty()) {
      got["error"] = join_errors(errors);
    } else {
      got["match"] = match.value_or(false);
    }
  } else {
    const auto terms = parse_preferred_node_terms(*in.find("terms"));
    if (!terms) return support::compare(*row.find("want"), refused(terms.error()));
    got["ok"] = true;
    got["score"] = preferred_node_score(*terms, node);
  }
  return support::compare(*row.find("want"), got);
}

const bool kLabelSelectors = support::add_vector_check("admission/label_selectors", check_label_selector);
const bool kFieldSelectors = support::add_vector_check("api/field_selectors", check_field_selector);
const bool kNodeAffinity = support::add_vector_check("admission/node_affinity", check_node_affinity);

}  // namespace
}  // namespace spillway::api
