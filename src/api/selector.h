// Label selectors (string and structured form), field selectors, node selectors.
// Thread: any. Source: Kubernetes docs, "Labels and Selectors", "Field Selectors"; vectors admission/label_selectors,
// api/field_selectors, admission/node_affinity.
#pragma once

#include "api/meta.h"
#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

class Json;

struct LabelRequirement {
  enum class Op { kIn, kNotIn, kExists, kDoesNotExist, kEquals, kNotEquals, kGt, kLt };
  std::string key;
  Op op = Op::kExists;
  std::vector<std::string> values;  // sorted

  friend bool operator==(const LabelRequirement&, const LabelRequirement&) = default;
};

/// All requirements must hold. `nothing`: matches no labels at all (a nil selector); an empty list matches everything.
struct LabelSelector {
  std::vector<LabelRequirement> requirements;
  bool nothing = false;

  bool matches(const StringMap& labels) const;

  bool is_everything() const { return !nothing && requirements.empty(); }

  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

/// "a=b,c in (d,e),!f". kBadRequest on a syntax error.
Result<LabelSelector> parse_label_selector(std::string_view text);
/// metav1.LabelSelector {matchLabels, matchExpressions}; null matches nothing, {} everything. kInvalid with the field
/// path.
Result<LabelSelector> label_selector_from_json(const Json* selector);

struct FieldRequirement {
  std::string field;
  bool equal = true;
  std::string value;

  friend bool operator==(const FieldRequirement&, const FieldRequirement&) = default;
};

struct FieldSelector {
  std::vector<FieldRequirement> requirements;

  bool matches(const StringMap& fields) const;  // an absent field equals ""
  std::string to_string() const;
};

Result<FieldSelector> parse_field_selector(std::string_view text);

}  // namespace spillway::api
