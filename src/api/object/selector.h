// Label selectors (string and structured form) and field selectors. Node selectors: node_affinity.h.
// Thread: any. Source: Kubernetes docs, "Labels and Selectors", "Field Selectors"; vectors admission/label_selectors,
// api/field_selectors.
#pragma once

#include "api/object/meta.h"
#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

class Json;

struct LabelRequirement {
  /// kDoubleEquals is kEquals in its other spelling.
  enum class Op { kIn, kNotIn, kExists, kDoesNotExist, kEquals, kDoubleEquals, kNotEquals, kGt, kLt };
  std::string key;
  Op op = Op::kExists;
  std::vector<std::string> values;  // sorted

  bool matches(const StringMap& labels) const;

  friend bool operator==(const LabelRequirement&, const LabelRequirement&) = default;
};

/// "in", "notin", "exists", "!", "=", "==", "!=", "gt", "lt".
std::string_view to_string(LabelRequirement::Op op);

/// kYes: the document had a list of values; only the wording of errors depends on it.
enum class ValuesGiven { kNo, kYes };

/// The mistakes in a requirement as it was written, one text per problem, with paths below `at`:
/// "AT.values[0][x]: Invalid value: …". Empty: it is valid.
std::vector<std::string> requirement_errors(const LabelRequirement& requirement, std::string_view at,
                                            ValuesGiven given = ValuesGiven::kYes);

/// All requirements must hold, in the order of their keys. `nothing`: matches no labels at all (a nil selector); an
/// empty list matches everything.
struct LabelSelector {
  std::vector<LabelRequirement> requirements;
  bool nothing = false;

  /// Puts the requirement behind those of smaller or equal key.
  void add(LabelRequirement requirement);

  bool matches(const StringMap& labels) const;

  bool is_everything() const { return !nothing && requirements.empty(); }

  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

/// The string form; empty for "everything" and for "nothing".
std::string to_string(const LabelSelector& selector);

/// "a=b,c in (d,e),!f". kBadRequest on a syntax error.
Result<LabelSelector> parse_label_selector(std::string_view text);
/// metav1.LabelSelector {matchLabels, matchExpressions}; null matches nothing, {} everything. kInvalid: a member of the
/// wrong type, with its path below the selector in `at`; or an impossible requirement, in upstream's words.
Result<LabelSelector> label_selector_from_json(const Json* selector);
/// The structured form; null if it matches nothing. Single values that must be equal become matchLabels.
Json label_selector_to_json(const LabelSelector& selector);

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

/// "a=b,c!=d"; in values `\\`, `\,` and `\=` are escapes. kBadRequest on a syntax error.
Result<FieldSelector> parse_field_selector(std::string_view text);

}  // namespace spillway::api
