#include "policy/structural/rule_values.h"

#include "api/text/base64.h"
#include "api/text/duration.h"
#include "api/text/time_text.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace spillway::structural {

namespace {

using api::Json;

constexpr std::array<std::string_view, 18> kReservedWords{"as",   "break",     "const", "continue", "else",   "false",
                                                          "for",  "function",  "if",    "import",   "in",     "let",
                                                          "loop", "namespace", "null",  "package",  "return", "true"};

bool can_be_said(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-' || c == '/';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

cel::Value made_text(const Node& node, const std::string& text, const Json& value) {
  if (node.format == Format::kByte) {
    if (const auto bytes = api::decode_base64(text)) return cel::Value::bytes(*bytes);
  } else if (node.format == Format::kDuration) {
    if (const auto duration = api::parse_duration(text)) return cel::Value(*duration);
  } else if (node.format == Format::kDate) {
    if (const auto time = api::parse_time(text + "T00:00:00Z")) return cel::Value(*time);
  } else if (node.format == Format::kDateTime) {
    if (const auto time = api::parse_time(text)) return cel::Value(*time);
  }
  return cel::Value::of(value);
}

cel::Value made_list(const Node& node, const Json::Array& list) {
  std::vector<cel::Value> made;
  made.reserve(list.size());
  for (const Json& each : list) {
    made.push_back(node.items == nullptr ? cel::Value::of(each) : rule_value(*node.items, each));
  }
  return cel::Value(cel::List(std::move(made)));
}

cel::Value made_map(const Node& node, const Json::Object& object) {
  cel::Map::Entries entries;
  entries.reserve(object.size());
  for (const auto& [name, member] : object) {
    if (const Node* property = node.property(name)) {
      if (member.is_null()) continue;
      entries.emplace_back(cel::Value::text(escaped_name(name)), rule_value(*property, member));
    } else {
      entries.emplace_back(cel::Value::text(name),
                           node.entries == nullptr ? cel::Value::of(member) : rule_value(*node.entries, member));
    }
  }
  return cel::Value(cel::Map(std::move(entries)));
}

}  // namespace

std::string escaped_name(std::string_view name) {
  if (!can_be_said(name)) return {};
  if (std::ranges::find(kReservedWords, name) != kReservedWords.end()) return "__" + std::string(name) + "__";
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with("__")) {
      out += "__underscores__";
      ++i;
    } else if (name[i] == '.') {
      out += "__dot__";
    } else if (name[i] == '-') {
      out += "__dash__";
    } else if (name[i] == '/') {
      out += "__slash__";
    } else {
      out += name[i];
    }
  }
  return out;
}

bool is_converted(const Node& node) {
  return node.type == ValueType::kNumber || node.format == Format::kByte || node.format == Format::kDuration ||
         node.format == Format::kDate || node.format == Format::kDateTime;
}

cel::Value rule_value(const Node& node, const Json& value) {
  if (!node.has_converted || value.is_null()) return cel::Value::of(value);
  if (const Json::Object* object = value.if_object()) return made_map(node, *object);
  if (const Json::Array* list = value.if_array()) return made_list(node, *list);
  if (const std::string* text = value.if_string()) return made_text(node, *text, value);
  if (node.type == ValueType::kNumber && value.is_number()) return cel::Value(value.if_double().value_or(0));
  return cel::Value::of(value);
}

}  // namespace spillway::structural
