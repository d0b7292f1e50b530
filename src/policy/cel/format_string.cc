#include "policy/cel/format_string.h"

#include "base/utf8.h"
#include "policy/cel/functions.h"
#include "policy/cel/times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::cel {

namespace {

constexpr int kPrecisionMax = 1'000;

/// Text, or a clause for an argument: 's', 'd', 'f', 'e', 'b', 'x', 'X', 'o'.
struct Clause {
  char letter = 0;  // 0: this part is `text`
  std::string_view text = {};
  std::optional<int> precision = {};
};

Result<Clause> read_clause(std::string_view text, std::size_t& at) {
  Clause clause;
  const auto wrong = [](std::string_view why) {
    return make_error(ErrorCode::kInvalid, "could not parse formatting clause: {}", why);
  };
  if (at < text.size() && text[at] == '.') {
    int precision = 0;
    const auto read = std::from_chars(text.data() + at + 1, text.data() + text.size(), precision);
    if (read.ec != std::errc() || precision < 0) return wrong("error while parsing precision");
    if (precision > kPrecisionMax) return wrong(fmt::format("precision is more than {}", kPrecisionMax));
    clause.precision = precision;
    at = static_cast<std::size_t>(read.ptr - text.data());
  }
  if (at >= text.size()) return wrong("unexpected end of string");
  clause.letter = text[at++];
  if (!std::string_view("sdfebxXo").contains(clause.letter)) {
    return wrong(fmt::format("unrecognized formatting clause \"{}\"", clause.letter));
  }
  return clause;
}

Result<std::vector<Clause>> read_clauses(std::string_view text) {
  std::vector<Clause> clauses;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = std::min(text.find('%', at), text.size());
    if (mark > at) clauses.push_back({.text = text.substr(at, mark - at)});
    if (mark == text.size()) break;
    at = mark + 1;
    if (at < text.size() && text[at] == '%') {
      clauses.push_back({.text = text.substr(at++, 1)});
      continue;
    }
    SPILLWAY_TRY(clause, read_clause(text, at));
    clauses.push_back(clause);
  }
  return clauses;
}

std::string_view clause_name(char letter) {
  switch (letter) {
    case 's':
      return "string";
    case 'd':
      return "decimal";
    case 'f':
      return "fixed-point";
    case 'e':
      return "scientific";
    case 'b':
      return "binary";
    case 'o':
      return "octal";
    default:
      return "hexadecimal";
  }
}

std::string_view clause_types(char letter) {
  switch (letter) {
    case 's':
      return "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps";
    case 'd':
    case 'o':
      return "integers";
    case 'f':
    case 'e':
      return "doubles";
    case 'b':
      return "integers and bools";
    default:
      return "integers, byte buffers, and strings";
  }
}

std::string not_for(char letter, std::string_view type) {
  return fmt::format("error during formatting: {} clause can only be used on {}, was given {}", clause_name(letter),
                     clause_types(letter), type);
}

bool takes(char letter, TypeKind kind) {
  const bool integer = kind == TypeKind::kInt || kind == TypeKind::kUint;
  if (kind == TypeKind::kDyn) return true;
  switch (letter) {
    case 's':
      return kind <= TypeKind::kType || kind == TypeKind::kObject || is_message(kind);
    case 'd':
    case 'o':
      return integer;
    case 'f':
    case 'e':
      return kind == TypeKind::kDouble;
    case 'b':
      return integer || kind == TypeKind::kBool;
    default:
      return integer || kind == TypeKind::kString || kind == TypeKind::kBytes;
  }
}

std::string text_of(const Value& value, bool inside);

std::string list_text(const List& list) {
  std::string text = "[";
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text += ", ";
    text += text_of(list.at(i), true);
  }
  return text + "]";
}

/// Sorted by the texts of the keys.
std::string map_text(const Map& map) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t i = 0; i < map.size(); ++i) {
    entries.emplace_back(text_of(map.key_at(i), true), text_of(map.value_at(i), true));
  }
  std::ranges::sort(entries);
  std::string text = "{";
  for (const auto& [key, value] : entries) text += (text.size() > 1 ? ", " : "") + key + ":" + value;
  return text + "}";
}

std::string double_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  std::array<char, 400> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  return {text.data(), end.ptr};
}

/// The value of a text: as it is, or quoted if it is `inside` a list or a map.
std::string quoted(std::string_view text, bool inside) {
  return inside ? fmt::format("\"{}\"", text) : std::string(text);
}

std::string text_of(const Value& value, bool inside) {
  if (value.is(Kind::kNull)) return "null";
  if (value.is(Kind::kBool)) return value.as<bool>() ? "true" : "false";
  if (value.is(Kind::kInt)) return fmt::format("{}", value.as<std::int64_t>());
  if (value.is(Kind::kUint)) return fmt::format("{}", value.as<std::uint64_t>());
  if (value.is(Kind::kDouble)) return double_text(value.as<double>());
  if (value.is(Kind::kString)) return quoted(value.string(), inside);
  if (value.is(Kind::kBytes)) return quoted(value.as<Bytes>().bytes, inside);
  if (value.is(Kind::kList)) return list_text(value.as<List>());
  if (value.is(Kind::kMap)) return map_text(value.as<Map>());
  if (value.is(Kind::kTimestamp)) {
    const std::string text = time_text(value.as<Moment>());
    return inside ? fmt::format("timestamp(\"{}\")", text) : text;
  }
  if (value.is(Kind::kDuration)) {
    const std::string text = seconds_text(value.as<Duration>());
    return inside ? fmt::format("duration(\"{}\")", text) : text;
  }
  return std::string(value.is(Kind::kType) ? value.as<TypeName>().name : type_name(value));
}

/// "1.234568 × 10⁰³".
std::string scientific(double value, int precision) {
  if (!std::isfinite(value)) return std::isnan(value) ? "NaN" : value < 0 ? "-∞" : "∞";
  static constexpr std::array<std::string_view, 10> kRaised{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  const std::string text = fmt::format("{:.{}e}", value, precision);
  const std::size_t mark = text.find('e');
  std::string made = text.substr(0, mark) + "\u202f×\u202f10";
  for (const char c : text.substr(mark + 1)) {
    if (c == '-') made += "⁻";
    if (c >= '0' && c <= '9') made += kRaised[static_cast<std::size_t>(c - '0')];
  }
  return made;
}

std::string hex_bytes(std::string_view bytes, bool upper) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned>(static_cast<unsigned char>(c));
    text += upper ? fmt::format("{:02X}", byte) : fmt::format("{:02x}", byte);
  }
  return text;
}

std::string in_base(const Value& value, char letter) {
  const bool negative = value.is(Kind::kInt) && value.as<std::int64_t>() < 0;
  const auto bits =
      value.is(Kind::kInt) ? static_cast<std::uint64_t>(value.as<std::int64_t>()) : value.as<std::uint64_t>();
  const std::uint64_t size = negative ? std::uint64_t{0} - bits : bits;
  const std::string sign = negative ? "-" : "";
  switch (letter) {
    case 'b':
      return sign + fmt::format("{:b}", size);
    case 'o':
      return sign + fmt::format("{:o}", size);
    case 'x':
      return sign + fmt::format("{:x}", size);
    case 'X':
      return sign + fmt::format("{:X}", size);
    default:
      return sign + fmt::format("{}", size);
  }
}

/// nullopt: the clause does not apply to values of this type.
std::optional<std::string> formatted(const Clause& clause, const Value& value) {
  constexpr int kPrecision = 6;
  const bool integer = value.is(Kind::kInt) || value.is(Kind::kUint);
  switch (clause.letter) {
    case 's':
      if (value.kind() > Kind::kType) return std::nullopt;
      return text_of(value, false);
    case 'f':
      if (!value.is(Kind::kDouble)) return std::nullopt;
      if (!std::isfinite(value.as<double>())) return double_text(value.as<double>());
      return fmt::format("{:.{}f}", value.as<double>(), clause.precision.value_or(kPrecision));
    case 'e':
      if (!value.is(Kind::kDouble)) return std::nullopt;
      return scientific(value.as<double>(), clause.precision.value_or(kPrecision));
    case 'b':
      if (value.is(Kind::kBool)) return value.as<bool>() ? "1" : "0";
      break;
    case 'x':
    case 'X':
      if (value.is(Kind::kString)) return hex_bytes(value.string(), clause.letter == 'X');
      if (value.is(Kind::kBytes)) return hex_bytes(value.as<Bytes>().bytes, clause.letter == 'X');
      break;
    default:
      break;
  }
  return integer ? std::optional(in_base(value, clause.letter)) : std::nullopt;
}

/// The size of the value's text, counted before it is made.
std::uint64_t work_of(const Value& value, Budget& budget) {
  if (!budget.charge(1)) return 0;
  if (value.is(Kind::kString)) return value.string().size();
  if (value.is(Kind::kBytes)) return value.as<Bytes>().bytes.size();
  std::uint64_t bytes = 1;
  if (value.is(Kind::kList)) {
    const List& list = value.as<List>();
    for (std::size_t i = 0; i < list.size() && !budget.spent(); ++i) bytes += work_of(list.at(i), budget);
  }
  if (value.is(Kind::kMap)) {
    const Map& map = value.as<Map>();
    for (std::size_t i = 0; i < map.size() && !budget.spent(); ++i) {
      bytes += work_of(map.key_at(i), budget) + work_of(map.value_at(i), budget);
    }
  }
  return bytes;
}

Result<Value> format(const Call& call) {
  if (!call.budget.charge_bytes(call.string(0).size())) return over_budget();
  const auto clauses = read_clauses(call.string(0));
  if (!clauses) return evaluation_error(clauses.error().message);
  const List& list = call[1].as<List>();
  std::string made;
  std::size_t next = 0;
  for (const Clause& clause : *clauses) {
    if (clause.letter == 0) {
      made += clause.text;
      continue;
    }
    if (next >= list.size()) return evaluation_error(fmt::format("index {} out of range", next));
    const Value value = list.at(next++);
    constexpr std::uint64_t kPasses = 4;
    if (!call.budget.charge_bytes(kPasses * work_of(value, call.budget))) return over_budget();
    const std::optional<std::string> text = formatted(clause, value);
    if (!text) return evaluation_error(not_for(clause.letter, type_name(value)));
    made += *text;
  }
  if (next < list.size()) {
    return evaluation_error(
        fmt::format("too many arguments supplied to string.format (expected {}, got {})", next, list.size()));
  }
  return Value::text(std::move(made));
}

}  // namespace

std::vector<SyntaxError> check_format(const Node& call) {
  const Node& text = call.children[0];
  const Node& list = call.children[1];
  if (text.kind != NodeKind::kConstant || !text.constant.is(Kind::kString) || list.kind != NodeKind::kList) return {};
  const auto wrong = [](const Node& at, std::string message) {
    return std::vector<SyntaxError>{{.position = at.position, .message = std::move(message)}};
  };
  const auto clauses = read_clauses(text.constant.string());
  if (!clauses) return wrong(call, clauses.error().message);
  std::size_t next = 0;
  for (const Clause& clause : *clauses) {
    if (clause.letter == 0) continue;
    if (next >= list.children.size()) return wrong(call, fmt::format("index {} out of range", next));
    const Node& argument = list.children[next++];
    if (takes(clause.letter, argument.type.kind)) continue;
    return wrong(argument, not_for(clause.letter, declared_text({.kind = argument.type.kind})));
  }
  if (next == list.children.size()) return {};
  return wrong(call, fmt::format("too many arguments supplied to string.format (expected {}, got {})", next,
                                 list.children.size()));
}

std::span<const Definition> text_formats() {
  static constexpr std::array kRows = std::to_array<Definition>({
      {"format", "string, list(dyn) -> string", format, kMember},
  });
  return kRows;
}

}  // namespace spillway::cel
