#include "policy/structural/rule_reader.h"

#include "base/ascii.h"
#include "policy/cel/type.h"
#include "policy/structural/field_place.h"
#include "policy/structural/rule_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
// Sorted, as messages name them.
constexpr std::array<std::string_view, 4> kShownReasons{"FieldValueDuplicate", "FieldValueForbidden",
                                                        "FieldValueInvalid", "FieldValueRequired"};

bool has_line_break(std::string_view text) {
  return text.find_first_of("\n\r") != std::string_view::npos;
}

class RuleReader {
 public:
  explicit RuleReader(api::FieldErrors& errors) : errors_(errors) {}

  /// `apart`: from where on old values cannot be found; empty: they can.
  std::optional<Type> visit(const Json& schema, Node& node, const std::string& path, bool resource,
                            const std::string& apart) {
    std::optional<Type> type = type_of(schema, node, path, resource, apart);
    const Json* rules = schema.find("x-kubernetes-validations");
    if (rules == nullptr || !rules->is_array()) return type;
    for (std::size_t i = 0; i < rules->if_array()->size(); ++i) {
      const std::string at = api::index_path(path + ".x-kubernetes-validations", i);
      read_rule((*rules->if_array())[i], node, type, at, apart);
    }
    return type;
  }

 private:
  std::optional<Type> type_of(const Json& schema, Node& node, const std::string& path, bool resource,
                              const std::string& apart) {
    std::optional<Type> items;
    std::optional<Type> entries;
    if (node.items != nullptr) {
      const std::string& apart_within = !apart.empty() || node.list_type == ListType::kMap ? apart : path;
      items = visit(*schema.find("items"), *node.items, path + ".items", node.items->embedded, apart_within);
    }
    if (node.entries != nullptr) {
      entries = visit(*schema.find("additionalProperties"), *node.entries, path + ".additionalProperties",
                      node.entries->embedded, apart);
    }
    std::vector<std::pair<std::string, Type>> members;
    for (Property& property : node.properties) {
      const std::string& apart_within = apart.empty() && node.atomic_map ? path : apart;
      std::optional<Type> type =
          visit(*schema.find("properties")->find(property.name), property.node,
                api::key_path(path + ".properties", property.name), property.node.embedded, apart_within);
      const std::string name = escaped_name(property.name);
      if (type && !name.empty()) members.emplace_back(name, *std::move(type));
    }
    if (node.int_or_string) return Type{};
    return own_type(node, std::move(items), std::move(entries), std::move(members), resource);
  }

  static std::optional<Type> own_type(const Node& node, std::optional<Type> items, std::optional<Type> entries,
                                      std::vector<std::pair<std::string, Type>> members, bool resource) {
    switch (node.type) {
      case ValueType::kAny:
        return std::nullopt;
      case ValueType::kArray:
        return items ? std::optional(cel::list_of(*std::move(items))) : std::nullopt;
      case ValueType::kBoolean:
        return Type{.kind = TypeKind::kBool};
      case ValueType::kInteger:
        return Type{.kind = TypeKind::kInt};
      case ValueType::kNumber:
        return Type{.kind = TypeKind::kDouble};
      case ValueType::kString:
        return text_type(node.format);
      case ValueType::kObject:
        break;
    }
    if (node.entries != nullptr) {
      if (!entries) return std::nullopt;
      return cel::map_of(Type{.kind = TypeKind::kString}, *std::move(entries));
    }
    if (resource) add_type_and_metadata(members);
    return cel::object_of(std::move(members));
  }

  static Type text_type(Format format) {
    if (format == Format::kByte) return {.kind = TypeKind::kBytes};
    if (format == Format::kDuration) return {.kind = TypeKind::kDuration};
    const bool time = format == Format::kDate || format == Format::kDateTime;
    return {.kind = time ? TypeKind::kTimestamp : TypeKind::kString};
  }

  static void add_type_and_metadata(std::vector<std::pair<std::string, Type>>& members) {
    std::erase_if(members, [](const auto& member) {
      return member.first == "kind" || member.first == "apiVersion" || member.first == "metadata";
    });
    const Type text{.kind = TypeKind::kString};
    members.emplace_back("kind", text);
    members.emplace_back("apiVersion", text);
    members.emplace_back("metadata", cel::object_of({{"name", text}, {"generateName", text}}));
  }

  /// What is wrong with the texts of a rule.
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

  void read_rule(const Json& rule, Node& node, const std::optional<Type>& type, const std::string& at,
                 const std::string& apart) {
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
    if (!type) {
      made.why_not = "the type of the value is not known, so that there can be no rules for it";
      return errors_.invalid(at + ".rule", rule, made.why_not);
    }
    compile(rule, *type, at, apart, made);
  }

  void compile(const Json& rule, const Type& type, const std::string& at, const std::string& apart, Rule& made) {
    const Json* given = rule.find("optionalOldSelf");
    const std::optional<bool> optional = given == nullptr ? std::nullopt : given->if_bool();
    auto holds = cel::SelfExpression::compile(made.text, type, TypeKind::kBool, optional.value_or(false));
    if (!holds) {
      made.why_not = holds.error().text();
      errors_.invalid(at + ".rule", rule, made.why_not);
    } else {
      if (holds->compares() && !apart.empty()) {
        errors_.invalid(
            at + ".rule", Json(made.text),
            fmt::format("oldSelf cannot be used on the uncorrelatable portion of the schema within {}", apart));
      }
      if (!holds->compares() && optional) {
        errors_.invalid(at + ".optionalOldSelf", Json(*optional), "may not be set if oldSelf is not used in rule");
      }
      made.holds = *std::move(holds);
    }
    const std::string_view words = trimmed(rule.string_at({"messageExpression"}), kWhiteSpace);
    if (words.empty()) return;
    auto expression = cel::SelfExpression::compile(words, type, TypeKind::kString, optional.value_or(false));
    if (!expression) {
      return errors_.invalid(at + ".messageExpression", rule, expression.error().text());
    }
    made.words = *std::move(expression);
  }

  api::FieldErrors& errors_;
  std::size_t rules_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

void read_rules(const Json& document, std::string_view path, Node& root, api::FieldErrors& errors) {
  if (root.has_rules) RuleReader(errors).visit(document, root, std::string(path), /*resource=*/true, "");
}

}  // namespace spillway::structural
