#include "policy/structural/rule_reader.h"

#include "base/ascii.h"
#include "policy/cel/type.h"
#include "policy/structural/field_place.h"
#include "policy/structural/rule_sizes.h"
#include "policy/structural/rule_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::structural {

namespace {

using api::Json;
using cel::Type;
using cel::TypeKind;

constexpr std::array<std::string_view, 4> kReasons{"FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid",
                                                   "FieldValueDuplicate"};
// Sorted as in messages.
constexpr std::array<std::string_view, 4> kShownReasons{"FieldValueDuplicate", "FieldValueForbidden",
                                                        "FieldValueInvalid", "FieldValueRequired"};

bool has_line_break(std::string_view text) {
  return text.find_first_of("\n\r") != std::string_view::npos;
}

class RuleReader {
 public:
  RuleReader(const Node& root, const RuleTypes& types, cel::Age age, api::FieldErrors& errors)
      : root_(&root), types_(types), age_(age), errors_(errors) {}

  void read(const Json& schema, Node& node, const std::string& path) {
    visit(schema, node, path, {.times = 1});
    if (total_ <= kSchemaCostMax) return;
    for (const auto& [cost, at] : dearest_) {
      errors_.forbidden(at,
                        "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema");
    }
    errors_.forbidden(path, over_limit("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
                                       total_, kSchemaCostMax));
  }

 private:
  /// The context of a schema.
  struct Around {
    std::string apart = {};              // from where on old values cannot be found; empty: they can
    std::optional<std::uint64_t> times;  // maximal number of its values; nullopt: unbounded
  };

  static std::optional<std::uint64_t> product(const std::optional<std::uint64_t>& times,
                                              const std::optional<std::int64_t>& each) {
    if (!times || !each) return std::nullopt;
    return cel::saturating_product(*times, static_cast<std::uint64_t>(std::max<std::int64_t>(*each, 0)));
  }

  void visit(const Json& schema, Node& node, const std::string& path, const Around& around) {
    if (!node.has_rules) return;
    const Checks* checks = node.checks.get();
    if (node.items != nullptr) {
      const bool found = !around.apart.empty() || node.list_type == ListType::kMap;
      visit(*schema.find("items"), *node.items, path + ".items",
            {.apart = found ? around.apart : path,
             .times = product(around.times, checks == nullptr ? std::nullopt : checks->max_items)});
    }
    if (node.entries != nullptr) {
      visit(*schema.find("additionalProperties"), *node.entries, path + ".additionalProperties",
            {.apart = around.apart,
             .times = product(around.times, checks == nullptr ? std::nullopt : checks->max_properties)});
    }
    for (Property& property : node.properties) {
      visit(*schema.find("properties")->find(property.name), property.node,
            api::key_path(path + ".properties", property.name), around);
    }
    const Json* rules = schema.find("x-kubernetes-validations");
    if (rules == nullptr || !rules->is_array()) return;
    if (types_.of(node) == nullptr && !rules->if_array()->empty()) {
      errors_.add({api::FieldReason::kInternal,
                   "Internal error: internal error: failed to construct type information for x-kubernetes-validations "
                   "rules: unable to convert structural schema to CEL declarations",
                   path + ".x-kubernetes-validations"});
    }
    for (std::size_t i = 0; i < rules->if_array()->size(); ++i) {
      read_rule((*rules->if_array())[i], node, api::index_path(path + ".x-kubernetes-validations", i), around);
    }
  }

  static std::string over_limit(std::string_view what, std::uint64_t cost, std::uint64_t limit) {
    const double factor = static_cast<double>(cost) / static_cast<double>(limit);
    const std::string shown = factor > 100.0 ? "more than 100x"
                              : factor < 1.5 ? fmt::format("{:f}x", factor)
                                             : fmt::format("{:.1f}x", factor);
    return fmt::format(
        "{} exceeds budget by factor of {} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength "
        "where arrays, maps, and strings are declared)",
        what, shown);
  }

  /// The most expensive rules are reported if the total is too high.
  void record_cost(std::uint64_t cost, const std::string& at) {
    constexpr std::size_t kReportedMax = 4;
    total_ = total_ > std::numeric_limits<std::uint64_t>::max() - cost ? std::numeric_limits<std::uint64_t>::max()
                                                                       : total_ + cost;
    if (cost <= kRuleCostMax) return;
    const auto place = std::ranges::find_if(dearest_, [&](const auto& one) { return one.first < cost; });
    dearest_.insert(place, {cost, at});
    if (dearest_.size() > kReportedMax) dearest_.pop_back();
  }

  void limit_rule(std::uint64_t cost, const Node& node, const std::string& at, const Around& around) {
    const std::uint64_t times = around.times ? *around.times : times_in_request(*rule_sizes_of(node));
    const std::uint64_t all = cel::saturating_product(cost, times);
    if (all > kRuleCostMax) errors_.forbidden(at, over_limit("estimated rule cost", all, kRuleCostMax));
    record_cost(all, at);
  }

  void limit_message(std::uint64_t cost, const std::string& at) {
    if (cost > kRuleCostMax) errors_.forbidden(at, over_limit("estimated messageExpression cost", cost, kRuleCostMax));
    record_cost(cost, at);
  }

  const std::shared_ptr<const cel::Sizes>& rule_sizes_of(const Node& node) {
    auto [found, added] = sizes_.try_emplace(&node);
    if (added) found->second = rule_sizes(node, &node == root_ || node.embedded);
    return found->second;
  }

  /// Checks the texts of a rule.
  bool check_texts(const Json& rule, const std::string& at) {
    const std::size_t before = errors_.errors().size();
    const std::string_view message = rule.string_at({"message"});
    const std::string_view trimmed_message = trimmed(message, kWhiteSpace);
    const std::string_view text = trimmed(rule.string_at({"rule"}), kWhiteSpace);
    if (text.empty()) {
      errors_.required(at + ".rule", "rule is not specified");
    } else if (!message.empty() && trimmed_message.empty()) {
      errors_.invalid(at + ".message", Json(message), "message must be non-empty if specified");
    } else if (has_line_break(trimmed_message)) {
      errors_.invalid(at + ".message", Json(message), "message must not contain line breaks");
    } else if (has_line_break(text) && trimmed_message.empty()) {
      errors_.required(at + ".message", "message must be specified if rule contains line breaks");
    }
    const std::string_view words = rule.string_at({"messageExpression"});
    if (!words.empty() && trimmed(words, kWhiteSpace).empty()) {
      errors_.required(at + ".messageExpression", "messageExpression must be non-empty if specified");
    }
    const std::string_view reason = rule.string_at({"reason"});
    if (!reason.empty() && std::ranges::find(kReasons, reason) == kReasons.end()) {
      errors_.not_supported(at + ".reason", Json(reason), kShownReasons);
    }
    return errors_.errors().size() == before;
  }

  void read_place(const Json& rule, const Node& node, const std::string& at, Rule& made) {
    const std::string_view place = rule.string_at({"fieldPath"});
    if (place.empty()) return;
    if (trimmed(place, kWhiteSpace).empty()) {
      return errors_.invalid(at + ".fieldPath", Json(place), "fieldPath must be non-empty if specified");
    }
    if (has_line_break(place)) {
      return errors_.invalid(at + ".fieldPath", Json(place), "fieldPath must not contain line breaks");
    }
    if (std::optional<std::string> field = field_place(node, place)) {
      made.place = *std::move(field);
    } else {
      errors_.invalid(at + ".fieldPath", Json(place), "fieldPath must be a valid path");
    }
  }

  void read_rule(const Json& rule, Node& node, const std::string& at, const Around& around) {
    Rule& made = node.rules.emplace_back();
    made.text = trimmed(rule.string_at({"rule"}), kWhiteSpace);
    made.message = trimmed(rule.string_at({"message"}), kWhiteSpace);
    made.reason = rule.string_at({"reason"});
    bytes_ += made.text.size() + rule.string_at({"messageExpression"}).size();
    if (++rules_ > kRulesMax || bytes_ > kRuleTextBytesMax) {
      made.why_not = fmt::format("more than {} rules, or {} bytes of them", kRulesMax, kRuleTextBytesMax);
      return errors_.forbidden(at + ".rule", made.why_not);
    }
    if (!check_texts(rule, at)) return;
    read_place(rule, node, at, made);
    const Type* type = types_.of(node);
    if (type == nullptr) {
      made.why_not = "the type of the value is not known, so that there can be no rules for it";
      return;
    }
    compile(rule, node, {.type = *type, .name = types_.name_of(node)}, at, around, made);
  }

  void compile(const Json& rule, const Node& node, const cel::SelfType& type, const std::string& at,
               const Around& around, Rule& made) {
    const Json* given = rule.find("optionalOldSelf");
    const std::optional<bool> optional = given == nullptr ? std::nullopt : given->if_bool();
    const cel::SelfRule asked{.optional_old_self = optional.value_or(false), .age = age_, .sizes = sizes_for(node)};
    auto holds = cel::SelfExpression::compile(made.text, type, TypeKind::kBool, asked);
    const bool compares = holds && holds->compares();
    if (!holds) {
      made.why_not = holds.error().message;
      errors_.invalid(at + ".rule", rule, made.why_not);
    } else {
      if (asked.sizes != nullptr) limit_rule(holds->cost_max(), node, at + ".rule", around);
      if (compares && !around.apart.empty()) {
        errors_.invalid(
            at + ".rule", Json(made.text),
            fmt::format("oldSelf cannot be used on the uncorrelatable portion of the schema within {}", around.apart));
      }
    }
    if (!compares && optional) {
      errors_.invalid(at + ".optionalOldSelf", Json(*optional), "may not be set if oldSelf is not used in rule");
    }
    if (holds) made.holds = *std::move(holds);
    const std::string_view words = trimmed(rule.string_at({"messageExpression"}), kWhiteSpace);
    if (words.empty()) return;
    auto expression = cel::SelfExpression::compile(words, type, TypeKind::kString, asked);
    if (!expression) return errors_.invalid(at + ".messageExpression", rule, expression.error().message);
    if (asked.sizes != nullptr) limit_message(expression->cost_max(), at + ".messageExpression");
    made.words = *std::move(expression);
  }

  /// Costs count when a schema is created: of one that is stored already nothing is refused.
  const cel::Sizes* sizes_for(const Node& node) { return age_ == cel::Age::kNew ? rule_sizes_of(node).get() : nullptr; }

  static constexpr std::uint64_t kRuleCostMax = 10'000'000;     // cost of one rule, for all values of an object
  static constexpr std::uint64_t kSchemaCostMax = 100'000'000;  // cost of all rules of a schema

  const Node* root_;
  const RuleTypes& types_;
  cel::Age age_;
  api::FieldErrors& errors_;
  std::map<const Node*, std::shared_ptr<const cel::Sizes>> sizes_;
  std::uint64_t total_ = 0;
  std::vector<std::pair<std::uint64_t, std::string>> dearest_;
  std::size_t rules_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

void read_rules(const Json& document, std::string_view path, cel::Age age, Node& root, api::FieldErrors& errors) {
  if (!root.has_rules) return;
  const RuleTypes types(root, /*resource=*/true);
  RuleReader(root, types, age, errors).read(document, root, std::string(path));
}

}  // namespace spillway::structural
