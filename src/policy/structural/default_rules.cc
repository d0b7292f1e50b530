#include "policy/structural/default_rules.h"

#include "policy/structural/embedded_rules.h"
#include "policy/structural/node.h"
#include "policy/structural/object_shape.h"
#include "policy/structural/rule_check.h"
#include "policy/structural/value_rules.h"

#include <string>

namespace spillway::structural {

namespace {

/// `within_meta`: of kind, apiVersion or metadata of a resource.
void check_default(const Node& node, const std::string& path, bool within_meta, RuleUnits& units,
                   api::FieldErrors& errors) {
  const std::string at = path + ".default";
  if (!within_meta) {
    api::Json pruned = node.default_value;
    prune_value(node, pruned);
    if (!(pruned == node.default_value)) errors.invalid(at, node.default_value, "must not have unknown fields");
  }
  api::FieldErrors found;
  if (!within_meta) check_embedded(node, node.default_value, at, found);
  if (found.empty()) check_values(node, node.default_value, nullptr, at, found);
  if (found.empty()) check_rules(node, node.default_value, nullptr, at, units, found);
  errors.add(std::move(found));
}

/// Also checks defaults within additionalProperties, which replace null there.
void check_below(const Node& node, const std::string& path, bool resource, bool within_meta, RuleUnits& units,
                 api::FieldErrors& errors) {
  if (errors.full()) return;
  const bool within = within_meta && !node.embedded;
  if (!node.default_value.is_null()) check_default(node, path, within, units, errors);
  if (node.items != nullptr) check_below(*node.items, path + ".items", false, within, units, errors);
  if (node.entries != nullptr) check_below(*node.entries, path + ".additionalProperties", false, within, units, errors);
  for (const Property& property : node.properties) {
    const bool meta = (resource || node.embedded) &&
                      (property.name == "metadata" || property.name == "kind" || property.name == "apiVersion");
    check_below(property.node, api::key_path(path + ".properties", property.name), false, within || meta, units,
                errors);
  }
}

}  // namespace

void check_defaults(const Node& root, std::string_view path, api::FieldErrors& errors) {
  RuleUnits units;  // cost units for all rules of one object
  check_below(root, std::string(path), /*resource=*/true, /*within_meta=*/false, units, errors);
}

}  // namespace spillway::structural
