// Affinity to nodes and to other pods.
#include "api/text/names.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/rules.h"

#include <algorithm>
#include <map>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

void check_weight(const CheckedField& weight) {
  const std::int64_t number = weight.integer().value_or(0);
  if (number < 1 || number > 100) weight.invalid(number, "must be in the range 1-100");
}

void check_label_requirement(const CheckedField& requirement) {
  const CheckedField op = requirement["operator"];
  const CheckedField values = requirement["values"];
  if (op.text() == "In" || op.text() == "NotIn") {
    if (values.empty()) values.required("must be specified when `operator` is 'In' or 'NotIn'");
  } else if (op.text() == "Exists" || op.text() == "DoesNotExist") {
    if (!values.empty()) values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  } else if (op.text() == "Gt" || op.text() == "Lt") {
    if (values.size() != 1) values.required("must be specified single value when `operator` is 'Lt' or 'Gt'");
  } else {
    op.invalid(op.text(), "not a valid selector operator");
  }
  const CheckedField key = requirement["key"];
  key.require_valid(api::qualified_name_errors(key.text()));
}

/// The name of a node is the only field there is.
void check_field_requirement(const CheckedField& requirement) {
  const CheckedField op = requirement["operator"];
  const CheckedField values = requirement["values"];
  if (op.text() != "In" && op.text() != "NotIn") {
    op.invalid(op.text(), "not a valid selector operator");
  } else if (values.size() != 1) {
    values.required("must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
  }
  const CheckedField key = requirement["key"];
  if (key.text() != "metadata.name") return key.invalid(key.text(), "not a valid field selector key");
  values.each([](const CheckedField& value) { value.require_valid(api::dns1123_subdomain_errors(value.text())); });
}

void check_node_term(const CheckedField& term, ImpossibleValues impossible) {
  const CheckedField expressions = term["matchExpressions"];
  expressions.each([impossible](const CheckedField& requirement) {
    check_label_requirement(requirement);
    if (impossible == ImpossibleValues::kAllowed) return;
    const CheckedField values = requirement["values"];
    values.each([](const CheckedField& value) { value.require_valid(api::label_value_errors(value.text())); });
  });
  const CheckedField fields = term["matchFields"];
  fields.each(check_field_requirement);
}

bool has_impossible_values(const api::Json& selector) {
  return std::ranges::any_of(elements(selector, "nodeSelectorTerms"), [](const api::Json& term) {
    return std::ranges::any_of(elements(term, "matchExpressions"), [](const api::Json& requirement) {
      return std::ranges::any_of(elements(requirement, "values"), [](const api::Json& value) {
        return !api::label_value_errors(value.string_at({})).empty();
      });
    });
  });
}

void check_node_affinity(const CheckedField& affinity, const api::Json& before) {
  if (const CheckedField required = affinity[kRequired]) {
    const bool had_some = has_impossible_values(value_of(before, kRequired));
    check_node_selector(required, had_some ? ImpossibleValues::kAllowed : ImpossibleValues::kRefused);
  }
  const CheckedField preferred = affinity[kPreferred];
  preferred.each([](const CheckedField& term) {
    check_weight(term["weight"]);
    check_node_term(term["preference"], ImpossibleValues::kAllowed);
  });
}

void check_label_keys(const CheckedField& keys, const CheckedField& selector) {
  if (keys.empty()) return;
  if (!selector) keys.forbidden("must not be specified when labelSelector is not set");
  keys.each([](const CheckedField& key) { key.require_valid(api::qualified_name_errors(key.text())); });
}

/// The selector has got an expression for each of these keys when the pod was made; a second one is the user's.
void check_twice_selected(const CheckedField& keys, const CheckedField& selector) {
  std::set<std::string_view> selected;
  const CheckedField labels = selector["matchLabels"];
  labels.each_key([&selected](std::string_view key, const CheckedField&) { selected.insert(key); });
  std::map<std::string_view, std::size_t> positions;
  for (std::size_t i = 0; i < keys.size(); ++i) positions[keys.elements()[i].string_at({})] = i;
  for (const api::Json& expression : elements(selector.json(), "matchExpressions")) {
    const std::string_view name = text(expression, "key");
    const auto position = positions.find(name);
    if (!selected.insert(name).second && position != positions.end()) {
      const CheckedField key = keys.at(position->second);
      key.invalid("exists in both matchLabelKeys and labelSelector");
    }
  }
}

void check_term_label_keys(const CheckedField& term, const CheckedField& selector) {
  const CheckedField keys = term["matchLabelKeys"];
  const CheckedField other_keys = term["mismatchLabelKeys"];
  check_label_keys(keys, selector);
  check_label_keys(other_keys, selector);
  if (selector) check_twice_selected(keys, selector);
  keys.each([&other_keys](const CheckedField& key) {
    const bool both = std::ranges::find(other_keys.elements(), key.json()) != other_keys.elements().end();
    if (both) key.invalid("exists in both matchLabelKeys and mismatchLabelKeys");
  });
}

void check_pod_term(const CheckedField& term) {
  const CheckedField selector = term["labelSelector"];
  for (const std::string_view name : {"labelSelector", "namespaceSelector"}) {
    const CheckedField one = term[name];
    if (one) validate_label_selector(one.json(), one.path(), one.errors());
  }
  const CheckedField spaces = term["namespaces"];
  const CheckedField shown = term["namespace"];
  for (const api::Json& space : spaces.elements()) {
    for (const std::string& problem : api::dns1123_label_errors(space.string_at({}))) shown.invalid(space, problem);
  }
  check_term_label_keys(term, selector);
  const CheckedField topology = term["topologyKey"];
  topology.require_text("can not be empty");
  topology.require_valid(api::qualified_name_errors(topology.text()));
}

void check_pod_affinity(const CheckedField& affinity) {
  const CheckedField required = affinity[kRequired];
  required.each(check_pod_term);
  const CheckedField preferred = affinity[kPreferred];
  preferred.each([](const CheckedField& weighted) {
    check_weight(weighted["weight"]);
    check_pod_term(weighted["podAffinityTerm"]);
  });
}

}  // namespace

void check_node_selector(const CheckedField& selector, ImpossibleValues impossible) {
  const CheckedField terms = selector["nodeSelectorTerms"];
  if (terms.empty()) terms.required("must have at least one node selector term");
  terms.each([impossible](const CheckedField& term) { check_node_term(term, impossible); });
}

void check_affinity(const CheckedField& affinity, const api::Json& before) {
  check_node_affinity(affinity["nodeAffinity"], value_of(before, "nodeAffinity"));
  check_pod_affinity(affinity["podAffinity"]);
  check_pod_affinity(affinity["podAntiAffinity"]);
}

}  // namespace spillway::apiserver::kinds
