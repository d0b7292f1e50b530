#include "policy/structural/value_rules.h"

#include "policy/structural/go_number.h"
#include "policy/structural/list_keys.h"
#include "policy/structural/node.h"
#include "policy/structural/value_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::structural {

namespace {

using api::FieldError;
using api::FieldReason;
using api::Json;

/// The result of one value's checks. Among alternatives, the errors of the one with the most matches are reported.
struct Outcome {
  std::vector<FieldError> errors;
  int matches = 0;

  bool valid() const { return errors.empty(); }

  void add(FieldError error) {
    if (errors.size() < api::kCausesMax && std::ranges::find(errors, error) == errors.end())
      errors.push_back(std::move(error));
  }

  void merge(Outcome other) {
    for (FieldError& error : other.errors) add(std::move(error));
    matches += other.matches;
  }
};

/// The type of a value, as named in messages.
std::string_view type_name(const Json& value) {
  switch (value.type()) {
    case Json::Type::kNull:
      return "null";
    case Json::Type::kBool:
      return "boolean";
    case Json::Type::kInt:
      return "integer";
    case Json::Type::kUint:
    case Json::Type::kDouble:
      return "number";
    case Json::Type::kString:
      return "string";
    case Json::Type::kArray:
      return "array";
    case Json::Type::kObject:
      return "object";
  }
  return "";
}

/// True for numbers that Go's decoder reads as integers: no fraction, and in range.
bool is_whole(const Json& value) {
  const std::optional<double> number = value.if_double();
  constexpr double kExact = 9007199254740991;  // above it, doubles do not represent every whole number
  return number && std::trunc(*number) == *number && std::abs(*number) <= kExact;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

/// Numbers are equal by value.
bool is_same(const Json& value, const Json& listed) {
  if (value.is_number() && listed.is_number()) return value.if_double() == listed.if_double();
  return value == listed;
}

class ValueRules {
 public:
  explicit ValueRules(std::string_view prefix) : prefix_(prefix) {}

  Outcome check(const Node& node, const Json& value, const Json* old, const ValuePath& path) {
    Outcome outcome = check_anew(node, value, old, path);
    if (!outcome.valid() && old != nullptr && *old == value) outcome.errors.clear();
    return outcome;
  }

  bool stopped() const { return steps_ > kValueStepsMax; }

 private:
  FieldError invalid(const ValuePath& path, const Json& value, std::string_view what) const {
    return error_at(path, FieldReason::kInvalid, value, what);
  }

  FieldError error_at(const ValuePath& path, FieldReason reason, const Json& value, std::string_view what) const {
    api::FieldErrors one;
    const std::string detail = fmt::format("{} in body {}", path.dotted(), what);
    if (reason == FieldReason::kTypeInvalid) {
      one.type_invalid(field(path), value, detail);
    } else {
      one.invalid(field(path), value, detail);
    }
    return one.errors().front();
  }

  std::string field(const ValuePath& path) const {
    std::string dotted = path.dotted();
    if (prefix_.empty()) return field_or_nil(std::move(dotted));
    return dotted.empty() ? std::string(prefix_) : fmt::format("{}.{}", prefix_, dotted);
  }

  void add(Outcome& outcome, FieldError error) {
    spend(kProblemSteps);
    outcome.add(std::move(error));
  }

  bool spend(std::uint64_t steps) {
    steps_ += steps;
    return !stopped();
  }

  Outcome check_anew(const Node& node, const Json& value, const Json* old, const ValuePath& path) {
    Outcome outcome;
    if (!spend(1)) return outcome;
    check_type(node, value, path, outcome);
    if (value.is_null()) {
      if (node.checks != nullptr) check_listed(*node.checks, value, path, outcome);
      return outcome;
    }
    if (node.checks != nullptr) {
      check_combinations(*node.checks, value, old, path, outcome);
      check_text(*node.checks, value, path, outcome);
    }
    ++outcome.matches;
    check_format(node, value, path, outcome);
    if (node.checks != nullptr) check_number(*node.checks, value, path, outcome);
    if (value.is_array()) check_list(node, value, old, path, outcome);
    if (node.checks != nullptr) check_listed(*node.checks, value, path, outcome);
    if (value.is_object()) check_object(node, value, old, path, outcome);
    outcome.matches += 2;
    return outcome;
  }

  static bool is_of_type(const Node& node, const Json& value) {
    if (node.int_or_string) return value.is_string() || value.type() == Json::Type::kInt || is_whole(value);
    switch (node.type) {
      case ValueType::kAny:
        return true;
      case ValueType::kArray:
        return value.is_array();
      case ValueType::kBoolean:
        return value.is_bool();
      case ValueType::kInteger:
        return value.type() == Json::Type::kInt || is_whole(value);
      case ValueType::kNumber:
        return value.is_number();
      case ValueType::kObject:
        return value.is_object();
      case ValueType::kString:
        return value.is_string();
    }
    return true;
  }

  void check_type(const Node& node, const Json& value, const ValuePath& path, Outcome& outcome) {
    const bool typed = node.type != ValueType::kAny || node.int_or_string;
    if (!typed && node.format == Format::kNone) return;
    ++outcome.matches;
    if (value.is_null()) {
      if (!typed || node.nullable) return;
    } else if (typed && is_of_type(node, value)) {
      ++outcome.matches;
      return;
    } else if (!typed && (value.is_string() || value.is_array())) {
      ++outcome.matches;
      return;
    }
    const bool by_format = node.format != Format::kNone && !value.is_null() && !value.is_string() && !value.is_array();
    if (node.format != Format::kNone && value.is_array()) return;
    std::string_view wanted = node.int_or_string ? "integer,string" : to_string(node.type);
    std::string_view given = type_name(value);
    if (by_format) {
      wanted = to_string(node.format);
      given = value.type() == Json::Type::kInt ? "int64" : value.is_number() ? "float64" : "";
    }
    add(outcome, error_at(path, FieldReason::kTypeInvalid, Json(given),
                          fmt::format("must be of type {}: \"{}\"", wanted, given)));
  }

  void check_combinations(const Checks& checks, const Json& value, const Json* old, const ValuePath& path,
                          Outcome& outcome) {
    if (!checks.any_of.empty()) check_any(checks.any_of, value, old, path, outcome);
    if (!checks.one_of.empty()) check_one(checks.one_of, value, old, path, outcome);
    if (!checks.all_of.empty()) check_all(checks.all_of, value, old, path, outcome);
    if (checks.negated != nullptr && check_anew(*checks.negated, value, old, path).valid() && !stopped()) {
      add(outcome, about_combination(path, "must not validate the schema (not)"));
    }
  }

  /// An error without a field.
  FieldError about_combination(const ValuePath& path, std::string_view what) const {
    api::FieldErrors one;
    one.invalid(prefix_.empty() ? "<nil>" : prefix_, Json(""), fmt::format("\"{}\" {}", path.dotted(), what));
    return one.errors().front();
  }

  void check_any(const std::vector<Node>& nodes, const Json& value, const Json* old, const ValuePath& path,
                 Outcome& outcome) {
    std::optional<Outcome> best;
    for (const Node& node : nodes) {
      Outcome one = check_anew(node, value, old, path);
      if (one.valid()) return outcome.merge(std::move(one));
      if (!best || one.matches > best->matches) best = std::move(one);
    }
    add(outcome, about_combination(path, "must validate at least one schema (anyOf)"));
    outcome.merge(*std::move(best));
  }

  void check_one(const std::vector<Node>& nodes, const Json& value, const Json* old, const ValuePath& path,
                 Outcome& outcome) {
    std::optional<Outcome> best;
    std::optional<Outcome> first;
    std::size_t valid = 0;
    for (const Node& node : nodes) {
      Outcome one = check_anew(node, value, old, path);
      if (one.valid()) {
        ++valid;
        if (!first) first = std::move(one);
      } else if (valid == 0 && (!best || one.matches > best->matches)) {
        best = std::move(one);
      }
    }
    if (valid == 1) return outcome.merge(*std::move(first));
    const std::string found =
        valid == 0 ? std::string("Found none valid") : fmt::format("Found {} valid alternatives", valid);
    add(outcome, about_combination(path, "must validate one and only one schema (oneOf). " + found));
    if (valid == 0 && best) outcome.merge(*std::move(best));
  }

  void check_all(const std::vector<Node>& nodes, const Json& value, const Json* old, const ValuePath& path,
                 Outcome& outcome) {
    std::size_t valid = 0;
    for (const Node& node : nodes) {
      Outcome one = check_anew(node, value, old, path);
      if (one.valid()) ++valid;
      outcome.merge(std::move(one));
    }
    if (valid == nodes.size()) return;
    add(outcome, about_combination(path, valid == 0 ? "must validate all the schemas (allOf). None validated"
                                                    : "must validate all the schemas (allOf)"));
  }

  /// The first thing that is wrong.
  void check_text(const Checks& checks, const Json& value, const ValuePath& path, Outcome& outcome) {
    const std::string* text = value.if_string();
    if (text == nullptr) return;
    ++outcome.matches;
    const auto length = static_cast<std::int64_t>(checks.max_length || checks.min_length ? characters(*text) : 0);
    if (checks.max_length && length > *checks.max_length) {
      api::FieldErrors one;
      one.too_long(field(path), static_cast<std::size_t>(std::max<std::int64_t>(*checks.max_length, 0)));
      return add(outcome, one.errors().front());
    }
    if (checks.min_length && length < *checks.min_length) {
      return add(outcome, invalid(path, value, fmt::format("should be at least {} chars long", *checks.min_length)));
    }
    if (checks.pattern_text.empty()) return;
    if (!checks.pattern) {
      return add(outcome,
                 invalid(path, value, fmt::format("should match '{}, but pattern is invalid'", checks.pattern_text)));
    }
    if (!spend(checks.pattern->search_cost(text->size()))) return;
    if (!checks.pattern->matches(*text)) {
      add(outcome, invalid(path, value, fmt::format("should match '{}'", checks.pattern_text)));
    }
  }

  void check_format(const Node& node, const Json& value, const ValuePath& path, Outcome& outcome) {
    const std::string* text = value.if_string();
    if (text == nullptr || node.format == Format::kNone) return;
    ++outcome.matches;
    if (!spend(1 + text->size() / kBytesPerStep) || has_format(node.format, *text)) return;
    api::FieldErrors one;
    std::string shown = fmt::format("{} in body must be of type {}: ", path.dotted(), to_string(node.format));
    one.type_invalid(field(path), value, shown + api::to_text(value));
    add(outcome, one.errors().front());
  }

  void check_number(const Checks& checks, const Json& value, const ValuePath& path, Outcome& outcome) {
    if (!value.is_number()) return;
    ++outcome.matches;
    const std::optional<std::int64_t> whole = value.if_int64();
    if (checks.multiple_of) check_multiple(*checks.multiple_of, value, whole, path, outcome);
    const auto against = [&](double bound, bool strict, bool upper) {
      const bool beyond = whole && is_int64(bound) ? is_beyond(*whole, static_cast<std::int64_t>(bound), strict, upper)
                                                   : is_beyond(value.if_double().value_or(0), bound, strict, upper);
      if (!beyond) return;
      const std::string_view order = upper ? (strict ? "less than" : "less than or equal to")
                                           : (strict ? "greater than" : "greater than or equal to");
      add(outcome, invalid(path, value, fmt::format("should be {} {}", order, shown_bound(bound, whole.has_value()))));
    };
    if (checks.maximum) against(*checks.maximum, checks.below_maximum, true);
    if (checks.minimum) against(*checks.minimum, checks.above_minimum, false);
  }

  template <typename Number>
  static bool is_beyond(Number value, Number bound, bool strict, bool upper) {
    if (strict && value == bound) return true;
    return upper ? value > bound : value < bound;
  }

  static bool is_int64(double bound) {
    constexpr double kMost = 9223372036854774784.0;  // the greatest double below 2^63
    return std::abs(bound) <= kMost && std::trunc(bound) == bound;
  }

  static std::string shown_bound(double bound, bool of_integer) {
    if (of_integer && is_int64(bound)) return fmt::format("{}", static_cast<std::int64_t>(bound));
    return go_number(bound);
  }

  void check_multiple(double factor, const Json& value, std::optional<std::int64_t> whole, const ValuePath& path,
                      Outcome& outcome) {
    const std::string shown = shown_bound(factor, whole.has_value());
    if (factor <= 0) {
      return add(outcome, invalid_text(path, Json(factor),
                                       fmt::format("factor MultipleOf declared for {} must be positive: {}",
                                                   path.dotted(), shown)));
    }
    if (whole && is_int64(factor)) {
      if (*whole % static_cast<std::int64_t>(factor) == 0) return;
    } else {
      const double number = value.if_double().value_or(0);
      const double times = factor < 1 ? 1 / factor * number : number / factor;
      constexpr double kNear = 1e-9;
      const double nearest = std::round(times);
      if (std::abs(times - nearest) <= kNear * std::max(1.0, std::abs(nearest))) return;
    }
    add(outcome, invalid(path, value, "should be a multiple of " + shown));
  }

  FieldError invalid_text(const ValuePath& path, const Json& value, std::string_view detail) const {
    api::FieldErrors one;
    one.invalid(field(path), value, detail);
    return one.errors().front();
  }

  void check_listed(const Checks& checks, const Json& value, const ValuePath& path, Outcome& outcome) {
    if (checks.values.empty() || !spend(checks.values.size())) return;
    if (std::ranges::any_of(checks.values, [&](const Json& listed) { return is_same(value, listed); })) return;
    std::vector<std::string> shown;
    for (const Json& listed : checks.values) {
      shown.push_back(listed.is_string() ? *listed.if_string() : api::to_text(listed));
    }
    const std::vector<std::string_view> supported(shown.begin(), shown.end());
    api::FieldErrors one;
    one.not_supported(field(path), value.is_null() ? Json("null") : value, supported);
    add(outcome, one.errors().front());
  }

  void check_list(const Node& node, const Json& value, const Json* old, const ValuePath& path, Outcome& outcome) {
    const Json::Array& list = *value.if_array();
    if (node.items != nullptr) {
      const OldElements before(node, old);
      for (std::size_t i = 0; i < list.size() && !stopped(); ++i) {
        outcome.merge(check(*node.items, list[i], before.of(list[i], i), path.element(i)));
      }
    }
    const auto size = static_cast<std::int64_t>(list.size());
    if (node.checks != nullptr && node.checks->min_items && size < *node.checks->min_items) {
      add(outcome, invalid(path, Json(size), fmt::format("should have at least {} items", *node.checks->min_items)));
    }
    if (node.checks != nullptr && node.checks->max_items && size > *node.checks->max_items) {
      add(outcome, too_many(path, list.size(), *node.checks->max_items));
    }
    ++outcome.matches;
  }

  FieldError too_many(const ValuePath& path, std::size_t size, std::int64_t most) const {
    api::FieldErrors one;
    one.too_many(field(path), size, static_cast<std::size_t>(std::max<std::int64_t>(most, 0)));
    return one.errors().front();
  }

  void check_object(const Node& node, const Json& value, const Json* old, const ValuePath& path, Outcome& outcome) {
    const Json::Object& object = *value.if_object();
    const Checks* checks = node.checks.get();
    const auto size = static_cast<std::int64_t>(object.size());
    if (checks != nullptr && checks->min_properties && size < *checks->min_properties) {
      return add(outcome,
                 invalid(path, Json(size), fmt::format("should have at least {} properties", *checks->min_properties)));
    }
    if (checks != nullptr && checks->max_properties && size > *checks->max_properties) {
      return add(outcome, too_many(path, object.size(), *checks->max_properties));
    }
    for (const auto& [name, member] : object) {
      if (stopped()) return;
      const Json* before = old == nullptr ? nullptr : old->find(name);
      if (const Node* property = node.property(name)) {
        outcome.merge(check(*property, member, before, path.member(name)));
      } else if (node.entries != nullptr) {
        outcome.merge(check(*node.entries, member, before, path.member(name)));
      } else if (node.additional == Additional::kRefused) {
        add(outcome,
            invalid_text(path, Json(name), fmt::format("{}.{} in body is a forbidden property", path.dotted(), name)));
      }
    }
    if (checks == nullptr) return;
    for (const std::string& name : checks->required) {
      if (object.contains(name)) continue;
      api::FieldErrors one;
      one.required(field(path.member(name)));
      add(outcome, one.errors().front());
    }
  }

  static constexpr std::uint64_t kBytesPerStep = 100;

  std::string_view prefix_;
  std::uint64_t steps_ = 0;
};

}  // namespace

void check_values(const Node& node, const Json& value, const Json* old, std::string_view prefix,
                  api::FieldErrors& errors) {
  ValueRules rules(prefix);
  Outcome outcome = rules.check(node, value, old, ValuePath());
  if (rules.stopped()) {
    errors.invalid(prefix.empty() ? "<nil>" : prefix, Json(""),
                   "the object is too large to be held against its schema: the checks stopped");
  }
  for (FieldError& error : outcome.errors) errors.add(std::move(error));
}

}  // namespace spillway::structural
