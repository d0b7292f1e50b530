#include "policy/structural/object_rules.h"

#include "policy/structural/embedded_rules.h"
#include "policy/structural/list_rules.h"
#include "policy/structural/node.h"
#include "policy/structural/object_shape.h"
#include "policy/structural/rule_check.h"
#include "policy/structural/value_path.h"
#include "policy/structural/value_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::structural {

namespace {

/// True for errors after which rules are not evaluated: they assume that the object has the form of its schema.
bool keeps_from_rules(const api::FieldError& error) {
  using enum api::FieldReason;
  constexpr std::array kBasic{kRequired, kNotSupported, kTooLong, kTooMany, kTypeInvalid};
  return std::ranges::find(kBasic, error.reason) != kBasic.end();
}

void check_lists_of_update(const Node& root, const api::Json& object, const api::Json* old, api::FieldErrors& errors) {
  api::FieldErrors found;
  check_lists(root, object, found);
  if (found.empty()) return;
  api::FieldErrors before;
  if (old != nullptr) check_lists(root, *old, before);
  if (before.empty()) errors.add(std::move(found));
}

/// Rules assume defaults. An object whose defaults did not fit before, because it is older than the schema, may still
/// be changed.
bool lacks_room(const Schema& schema, const api::Json& object, const api::Json* old) {
  return !defaults_fit(schema, object) && (old == nullptr || defaults_fit(schema, *old));
}

}  // namespace

void validate_object(const Schema& schema, const api::Json& object, const api::Json* old, api::FieldErrors& errors) {
  const Node& root = schema.root();
  if (lacks_room(schema, object, old)) {
    return errors.add({api::FieldReason::kTooLong,
                       fmt::format("Too long: defaults may not add more than {} bytes to the object", kDefaultBytesMax),
                       "<nil>"});
  }
  api::FieldErrors found;
  check_values(root, object, old, "", found);
  if (root.has_embedded) check_embedded(root, object, "", found);
  if (root.has_lists) check_lists_of_update(root, object, old, found);
  if (root.has_rules) {
    if (std::ranges::any_of(found.errors(), keeps_from_rules)) {
      found.invalid("<nil>", api::Json("null"),
                    "some validation rules were not checked because the object was invalid; correct the existing "
                    "errors to complete validation");
    } else {
      RuleUnits units;
      check_rules(root, object, old, "", units, found);
    }
  }
  errors.add(std::move(found));
}

}  // namespace spillway::structural
