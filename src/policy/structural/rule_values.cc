#include "policy/structural/rule_values.h"

#include "api/text/base64.h"
#include "api/text/duration.h"
#include "base/ascii.h"
#include "policy/cel/times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::structural {

namespace {

using api::Json;

constexpr std::array<std::string_view, 21> kReservedWords{
    "as",  "break", "const",     "continue", "else",    "false",  "for",  "function", "if",   "import", "in",
    "let", "loop",  "namespace", "null",     "package", "return", "true", "var",      "void", "while"};

bool can_be_said(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-' || c == '/';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

struct Unit {
  std::string_view names;  // between blanks
  Duration length;
};

/// Parses "1 hour", "2 days 3 secs". nullopt: it contains no such pair, or is too long.
std::optional<Duration> duration_in_words(std::string_view text) {
  static constexpr std::array<Unit, 8> kUnits{{{" ns nano nanos nanosecond nanoseconds ", nanoseconds(1)},
                                               {" us µs micro micros microsecond microseconds ", microseconds(1)},
                                               {" ms milli millis millisecond milliseconds ", milliseconds(1)},
                                               {" s sec secs second seconds ", seconds(1)},
                                               {" m min mins minute minutes ", minutes(1)},
                                               {" h hr hrs hour hours ", hours(1)},
                                               {" d day days ", hours(24)},
                                               {" w week weeks ", hours(168)}}};
  std::optional<std::int64_t> total;
  for (std::size_t at = 0; at < text.size();) {
    std::int64_t count = 0;
    const auto read = std::from_chars(text.data() + at, text.data() + text.size(), count);
    if (read.ec != std::errc()) {
      ++at;
      continue;
    }
    at = std::min(text.find_first_not_of(' ', static_cast<std::size_t>(read.ptr - text.data())), text.size());
    const std::size_t end = std::min(text.find_first_of(" 0123456789", at), text.size());
    const std::string word = fmt::format(" {} ", lower_case(text.substr(at, end - at)));
    const auto* unit = std::ranges::find_if(kUnits, [&](const Unit& one) { return one.names.contains(word); });
    at = end;
    if (unit == kUnits.end()) continue;
    std::int64_t length = 0;
    std::int64_t sum = 0;
    if (__builtin_mul_overflow(count, unit->length.count(), &length) ||
        __builtin_add_overflow(total.value_or(0), length, &sum)) {
      return std::nullopt;
    }
    total = sum;
  }
  return total ? std::optional(Duration(*total)) : std::nullopt;
}

/// Parses Go's durations, and words such as "1 hour".
std::optional<Duration> read_duration(const std::string& text) {
  if (const auto duration = api::parse_duration(text)) return *duration;
  return duration_in_words(text);
}

cel::Value made_text(const Node& node, const std::string& text, const Json& value) {
  if (node.format == Format::kByte) {
    if (const auto bytes = api::decode_base64(text)) return cel::Value::bytes(*bytes);
  } else if (node.format == Format::kDuration) {
    if (const auto duration = read_duration(text)) return cel::Value(*duration);
  } else if (node.format == Format::kDate) {
    if (const auto time = cel::parse_moment(text + "T00:00:00Z")) return cel::Value(*time);
  } else if (node.format == Format::kDateTime) {
    if (const auto time = cel::parse_moment(text)) return cel::Value(*time);
  }
  return cel::Value::of(value);
}

cel::Value made_list(const Node& node, const Json::Array& list) {
  std::vector<cel::Value> made;
  made.reserve(list.size());
  for (const Json& each : list) {
    made.push_back(node.items == nullptr ? cel::Value::of(each) : rule_value(*node.items, each));
  }
  if (node.list_type == ListType::kSet) return cel::Value(cel::List(std::move(made), cel::ListKind::kSet, nullptr));
  if (node.list_type != ListType::kMap) return cel::Value(cel::List(std::move(made)));
  auto keys = std::make_shared<std::vector<std::string>>();
  for (const std::string& key : node.list_keys) keys->push_back(escaped_name(key));
  return cel::Value(cel::List(std::move(made), cel::ListKind::kMap, std::move(keys)));
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
  const bool merged = node.list_type == ListType::kSet || node.list_type == ListType::kMap;
  return merged || node.type == ValueType::kNumber || node.format == Format::kByte ||
         node.format == Format::kDuration || node.format == Format::kDate || node.format == Format::kDateTime;
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
