#include "policy/structural/rule_check.h"

#include "base/ascii.h"
#include "policy/structural/list_keys.h"
#include "policy/structural/node.h"
#include "policy/structural/rule_values.h"
#include "policy/structural/value_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace spillway::structural {

namespace {

using api::FieldError;
using api::FieldReason;
using api::Json;

constexpr std::size_t kMadeMessageBytesMax = 5U << 10U;

/// The former value at a place of the document.
struct Before {
  const Json* compared = nullptr;  // value of oldSelf; null: there is none
  const Json* found = nullptr;     // former value, found by any means; null: none
  bool around_same = false;        // the surrounding value is unchanged
};

class RuleCheck {
 public:
  RuleCheck(std::string_view prefix, RuleUnits& units, api::FieldErrors& errors)
      : prefix_(prefix), units_(units), errors_(errors), stopped_(units.spent()) {}

  void check(const Node& node, const Json& value, const Before& before, const ValuePath& path) {
    if (!node.has_rules || value.is_null() || stopped_ || errors_.full()) return;
    const bool same = before.found != nullptr ? *before.found == value : before.around_same;
    if (!node.rules.empty()) ask_all(node, value, before, same, path);
    if (value.is_object()) check_members(node, value, before, same, path);
    if (value.is_array()) check_elements(node, value, before, same, path);
  }

 private:
  void check_members(const Node& node, const Json& value, const Before& before, bool same, const ValuePath& path) {
    for (const auto& [name, member] : *value.if_object()) {
      const Json* found = before.found == nullptr ? nullptr : before.found->find(name);
      const Json* compared = before.compared == nullptr ? nullptr : before.compared->find(name);
      const Before of_member{.compared = compared, .found = found, .around_same = same};
      if (const Node* property = node.property(name)) {
        check(*property, member, of_member, path.member(name));
      } else if (node.entries != nullptr) {
        check(*node.entries, member, of_member, path.entry(name));
      }
    }
  }

  void check_elements(const Node& node, const Json& value, const Before& before, bool same, const ValuePath& path) {
    if (node.items == nullptr) return;
    const Json::Array& list = *value.if_array();
    const OldElements found(node, node.list_type == ListType::kMap ? before.found : nullptr);
    const bool comparable = node.list_type == ListType::kMap && before.compared != nullptr;
    const OldElements compared(node, comparable ? before.compared : nullptr);
    for (std::size_t i = 0; i < list.size(); ++i) {
      check(*node.items, list[i],
            {.compared = compared.of(list[i], i), .found = found.of(list[i], i), .around_same = same}, path.element(i));
    }
  }

  void ask_all(const Node& node, const Json& value, const Before& before, bool same, const ValuePath& path) {
    const cel::Value self = rule_value(node, value);
    std::optional<cel::Value> old_self;
    if (before.compared != nullptr && !before.compared->is_null()) old_self = rule_value(node, *before.compared);
    for (const Rule& rule : node.rules) {
      if (stopped_) return;
      if (!rule.holds) {
        if (!rule.why_not.empty()) report(node, path, "rule compile error: " + rule.why_not);
        continue;
      }
      if (rule.holds->compares() && !rule.holds->optional() && !old_self) continue;
      ask(node, rule, self, old_self ? &*old_self : nullptr, same, path);
    }
  }

  void ask(const Node& node, const Rule& rule, const cel::Value& self, const cel::Value* old_self, bool same,
           const ValuePath& path) {
    const std::string& shown = rule.message.empty() ? rule.text : rule.message;
    cel::Budget budget(kRuleUnitsMax);
    const Result<cel::Value> holds = rule.holds->evaluate(self, old_self, budget);
    if (!charge(budget.used())) {
      return stop(node, path,
                  "validation failed due to running out of cost budget, no further validation rules will be run");
    }
    if (budget.spent()) {
      return stop(
          node, path,
          fmt::format("'{}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                      holds.error().text(), shown));
    }
    if (!holds) {
      const std::string why = holds.error().text();
      return report(node, path,
                    why.starts_with("no such overload")
                        ? fmt::format("'{}': call arguments did not match a supported operator, function or macro "
                                      "signature for rule: {}",
                                      why, shown)
                        : fmt::format("{} evaluating rule: {}", why, shown));
    }
    if (holds->is(cel::Kind::kBool) && holds->as<bool>()) return;
    if (same && !rule.holds->compares()) return;
    std::optional<std::string> made = made_message(rule, self, old_self);
    if (stopped_) return;
    report_broken(node, rule, path,
                  made                   ? *std::move(made)
                  : rule.message.empty() ? "failed rule: " + rule.text
                                         : rule.message);
  }

  bool charge(std::uint64_t units) {
    units_.used += units;
    return !units_.spent();
  }

  /// nullopt: the rule has no message expression, or its value is unusable.
  std::optional<std::string> made_message(const Rule& rule, const cel::Value& self, const cel::Value* old_self) {
    if (!rule.words) return std::nullopt;
    cel::Budget budget(kRuleUnitsMax);
    const Result<cel::Value> words = rule.words->evaluate(self, old_self, budget);
    charge(budget.used());
    if (!words || !words->is(cel::Kind::kString)) return std::nullopt;
    const std::string_view text = trimmed(words->string(), kWhiteSpace);
    if (text.empty() || text.size() > kMadeMessageBytesMax || text.contains('\n')) return std::nullopt;
    return std::string(text);
  }

  std::string field(const ValuePath& path, std::string_view place = {}) const {
    std::string at(prefix_);
    for (const std::string& part : {path.field(), std::string(place)}) {
      if (part.empty()) continue;
      if (!at.empty() && !part.starts_with('[')) at += '.';
      at += part;
    }
    return field_or_nil(std::move(at));
  }

  void report(const Node& node, const ValuePath& path, std::string_view what) {
    errors_.invalid(field(path), Json(to_string(node.type)), what);
  }

  void stop(const Node& node, const ValuePath& path, std::string_view what) {
    stopped_ = true;
    report(node, path, what);
  }

  void report_broken(const Node& node, const Rule& rule, const ValuePath& path, const std::string& what) {
    const std::string at = field(path, rule.place);
    if (rule.reason == "FieldValueForbidden") return errors_.forbidden(at, what);
    if (rule.reason == "FieldValueRequired") return errors_.required(at, what);
    if (rule.reason == "FieldValueDuplicate") return errors_.duplicate(at, Json(to_string(node.type)));
    errors_.invalid(at, Json(to_string(node.type)), what);
  }

  std::string_view prefix_;
  RuleUnits& units_;
  api::FieldErrors& errors_;
  bool stopped_;
};

}  // namespace

void check_rules(const Node& node, const Json& value, const Json* old, std::string_view prefix, RuleUnits& units,
                 api::FieldErrors& errors) {
  RuleCheck(prefix, units, errors).check(node, value, {.compared = old, .found = old}, ValuePath());
}

}  // namespace spillway::structural
