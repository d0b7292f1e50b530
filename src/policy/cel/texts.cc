// Functions of texts. Positions are characters, as CEL has them; what a function makes is paid for before it is made.
#include "base/ascii.h"
#include "base/utf8.h"
#include "policy/cel/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace spillway::cel {

namespace {

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
}

std::int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, begins_character);
}

/// The byte where that character begins, or the end; nullopt: there are not so many.
std::optional<std::size_t> byte_of(std::string_view text, std::int64_t character) {
  std::int64_t left = character;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins_character(text[i]) && left-- == 0) return i;
  }
  return left == 0 ? std::optional(text.size()) : std::nullopt;
}

std::size_t next_character(std::string_view text, std::size_t at) {
  do {
    ++at;
  } while (at < text.size() && !begins_character(text[at]));
  return at;
}

Error out_of_range(std::int64_t index) {
  return evaluation_error(fmt::format("index out of range: {}", index));
}

/// Charges a search, which may read every byte of one text for every byte of the other.
bool charge_search(const Call& call) {
  constexpr std::size_t kBytesPerUnit = 10;
  return call.budget.charge((call.string(0).size() / kBytesPerUnit + 1) * (call.string(1).size() / kBytesPerUnit + 1));
}

Result<Value> size_of_text(const Call& call) {
  if (!call.budget.charge_bytes(call.string(0).size())) return over_budget();
  return Value(characters(call.string(0)));
}

Result<Value> size_of_bytes(const Call& call) {
  return Value(static_cast<std::int64_t>(call[0].as<Bytes>().bytes.size()));
}

Result<Value> starts_with(const Call& call) {
  if (!call.budget.charge_bytes(call.string(1).size())) return over_budget();
  return Value(call.string(0).starts_with(call.string(1)));
}

Result<Value> ends_with(const Call& call) {
  if (!call.budget.charge_bytes(call.string(1).size())) return over_budget();
  return Value(call.string(0).ends_with(call.string(1)));
}

Result<Value> contains(const Call& call) {
  if (!charge_search(call)) return over_budget();
  return Value(call.string(0).contains(call.string(1)));
}

Result<Value> character_at(const Call& call) {
  if (!call.budget.charge_bytes(call.string(0).size())) return over_budget();
  const std::int64_t index = call[1].as<std::int64_t>();
  const std::string_view text = call.string(0);
  const std::optional<std::size_t> at = index < 0 ? std::nullopt : byte_of(text, index);
  if (!at) return out_of_range(index);
  if (*at == text.size()) return Value::text("");
  return Value::text(std::string(text.substr(*at, next_character(text, *at) - *at)));
}

Result<Value> index_from(const Call& call, std::int64_t offset) {
  if (!charge_search(call)) return over_budget();
  const std::string_view text = call.string(0);
  if (call.string(1).empty()) return Value(offset);
  if (offset < 0) return out_of_range(offset);
  const std::optional<std::size_t> from = byte_of(text, offset);
  const std::size_t found = from ? text.find(call.string(1), *from) : std::string_view::npos;
  return Value(found == std::string_view::npos ? std::int64_t{-1} : characters(text.substr(0, found)));
}

Result<Value> text_index_of(const Call& call) {
  return index_from(call, 0);
}

Result<Value> index_of_from(const Call& call) {
  return index_from(call, call[2].as<std::int64_t>());
}

Result<Value> last_index_from(const Call& call, std::int64_t offset) {
  if (!charge_search(call)) return over_budget();
  const std::string_view text = call.string(0);
  if (call.string(1).empty()) return Value(offset);
  if (offset < 0) return out_of_range(offset);
  const std::optional<std::size_t> from = byte_of(text, offset);
  if (!from || (*from == text.size() && offset > 0)) return Value(std::int64_t{-1});
  const std::size_t found = text.rfind(call.string(1), *from);
  return Value(found == std::string_view::npos ? std::int64_t{-1} : characters(text.substr(0, found)));
}

Result<Value> text_last_index_of(const Call& call) {
  if (!charge_search(call)) return over_budget();
  const std::string_view text = call.string(0);
  if (call.string(1).empty()) return Value(characters(text));
  if (text.empty()) return out_of_range(-1);
  const std::size_t found = text.rfind(call.string(1));
  return Value(found == std::string_view::npos ? std::int64_t{-1} : characters(text.substr(0, found)));
}

Result<Value> last_index_of_from(const Call& call) {
  return last_index_from(call, call[2].as<std::int64_t>());
}

Result<Value> lower_ascii(const Call& call) {
  if (!call.budget.charge_bytes(call.string(0).size())) return over_budget();
  return Value::text(lower_case(call.string(0)));
}

Result<Value> upper_ascii(const Call& call) {
  if (!call.budget.charge_bytes(call.string(0).size())) return over_budget();
  std::string text(call.string(0));
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return Value::text(std::move(text));
}

/// The places of the second text in the first one, from left to right, at most `found_max`; an empty one is found
/// before each character and behind the last. Ends where the budget does.
std::vector<std::size_t> places_in(const Call& call, std::size_t found_max) {
  const std::string_view text = call.string(0);
  const std::string_view part = call.string(1);
  std::vector<std::size_t> places;
  std::size_t at = 0;
  while (places.size() < found_max && at <= text.size() && call.budget.charge(1)) {
    const std::size_t found = text.find(part, at);
    if (found == std::string_view::npos) break;
    places.push_back(found);
    at = part.empty() ? next_character(text, found) : found + part.size();
  }
  return places;
}

/// Negative: no limit.
std::size_t limit_of(std::int64_t count) {
  return count < 0 ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(count);
}

Result<Value> replace_some(const Call& call, std::int64_t count) {
  if (!charge_search(call)) return over_budget();
  const std::string_view text = call.string(0);
  const std::string_view part = call.string(1);
  const std::string_view by = call.string(2);
  const std::vector<std::size_t> places = places_in(call, limit_of(count));
  if (!call.budget.charge_bytes(text.size() + places.size() * by.size())) return over_budget();
  std::string made;
  std::size_t at = 0;
  for (const std::size_t place : places) {
    made.append(text.substr(at, place - at)).append(by);
    at = place + part.size();
  }
  return Value::text(made.append(text.substr(at)));
}

Result<Value> replace(const Call& call) {
  return replace_some(call, -1);
}

Result<Value> replace_count(const Call& call) {
  return replace_some(call, call[3].as<std::int64_t>());
}

Result<Value> split_some(const Call& call, std::int64_t count) {
  if (!charge_search(call)) return over_budget();
  const std::string_view text = call.string(0);
  const std::string_view separator = call.string(1);
  std::vector<Value> parts;
  if (count == 0 || (text.empty() && separator.empty())) return Value(List(std::move(parts)));
  std::vector<std::size_t> places = places_in(call, limit_of(count));
  if (separator.empty()) std::erase_if(places, [&](std::size_t at) { return at == 0 || at == text.size(); });
  if (count > 0 && places.size() >= limit_of(count)) places.resize(limit_of(count) - 1);
  if (!call.budget.charge(places.size() + 1) || !call.budget.charge_bytes(text.size())) return over_budget();
  std::size_t at = 0;
  for (const std::size_t place : places) {
    parts.push_back(Value::text(std::string(text.substr(at, place - at))));
    at = place + separator.size();
  }
  parts.push_back(Value::text(std::string(text.substr(at))));
  return Value(List(std::move(parts)));
}

Result<Value> split(const Call& call) {
  return split_some(call, -1);
}

Result<Value> split_count(const Call& call) {
  return split_some(call, call[2].as<std::int64_t>());
}

Result<Value> part_between(const Call& call, std::int64_t begin, std::optional<std::int64_t> end) {
  const std::string_view text = call.string(0);
  if (!call.budget.charge_bytes(text.size())) return over_budget();
  if (end && begin > *end) {
    return evaluation_error(fmt::format("invalid substring range. start: {}, end: {}", begin, *end));
  }
  const std::optional<std::size_t> first = begin < 0 ? std::nullopt : byte_of(text, begin);
  if (!first) return out_of_range(begin);
  const std::optional<std::size_t> last = end ? byte_of(text, *end) : std::optional(text.size());
  if (!last) return out_of_range(*end);
  return Value::text(std::string(text.substr(*first, *last - *first)));
}

Result<Value> substring(const Call& call) {
  return part_between(call, call[1].as<std::int64_t>(), std::nullopt);
}

Result<Value> substring_between(const Call& call) {
  return part_between(call, call[1].as<std::int64_t>(), call[2].as<std::int64_t>());
}

/// Bytes of the white space that the text begins with; 0: it does not.
std::size_t leading_blank(std::string_view text) {
  static constexpr std::array<std::string_view, 19> kWide{
      "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
      "\u2007", "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
  if (text.empty()) return 0;
  if (kWhiteSpace.contains(text.front())) return 1;
  const auto* found = std::ranges::find_if(kWide, [&](std::string_view blank) { return text.starts_with(blank); });
  return found == kWide.end() ? 0 : found->size();
}

Result<Value> trim(const Call& call) {
  std::string_view text = call.string(0);
  if (!call.budget.charge_bytes(text.size())) return over_budget();
  while (const std::size_t blank = leading_blank(text)) text.remove_prefix(blank);
  while (!text.empty()) {
    std::size_t last = text.size() - 1;
    while (last > 0 && !begins_character(text[last])) --last;
    if (leading_blank(text.substr(last)) == 0) break;
    text = text.substr(0, last);
  }
  return Value::text(std::string(text));
}

/// The text between double quotes, with the escapes of Go; bytes that are no UTF-8 become U+FFFD.
Result<Value> quote(const Call& call) {
  const std::string_view text = call.string(0);
  if (!call.budget.charge_bytes(2 * text.size())) return over_budget();
  constexpr std::string_view kEscaped = "\a\b\f\n\r\t\v\\\"";
  constexpr std::string_view kLetters = "abfnrtv\\\"";
  std::string made = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = next_character(text, at);
    const std::string_view character = text.substr(at, next - at);
    const std::size_t escape = kEscaped.find(character);
    if (escape != std::string_view::npos && character.size() == 1) {
      made.append("\\").append(kLetters.substr(escape, 1));
    } else {
      made.append(is_utf8(character) ? character : "\xef\xbf\xbd");
    }
    at = next;
  }
  return Value::text(made + "\"");
}

Result<Value> join_with(const Call& call, std::string_view separator) {
  const List& list = call[0].as<List>();
  std::string made;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Value element = list.at(i);
    if (!element.is(Kind::kString)) return no_such_overload();
    if (!call.budget.charge_bytes(element.string().size() + separator.size())) return over_budget();
    if (i > 0) made.append(separator);
    made.append(element.string());
  }
  return Value::text(std::move(made));
}

Result<Value> join(const Call& call) {
  return join_with(call, {});
}

Result<Value> join_separated(const Call& call) {
  return join_with(call, call.string(1));
}

/// The pattern of a call: compiled beforehand, or for this one evaluation.
Result<Pattern> pattern_of(const Call& call) {
  constexpr std::uint64_t kUnitsPerStep = 16;
  constexpr std::uint64_t kRefusedUnits = 100'000;  // as much as the largest takes
  if (call.pattern != nullptr) return *call.pattern;
  if (!call.budget.charge_bytes(call.string(1).size())) return over_budget();
  Result<Pattern> made = Pattern::compile(call.string(1));
  if (!call.budget.charge(made ? kUnitsPerStep * made->size() : kRefusedUnits)) return over_budget();
  return made;
}

Result<Value> matches(const Call& call) {
  SPILLWAY_TRY(pattern, pattern_of(call));
  if (!call.budget.charge(pattern.search_cost(call.string(0).size()))) return over_budget();
  return Value(pattern.matches(call.string(0)));
}

Result<Value> find_first(const Call& call) {
  SPILLWAY_TRY(pattern, pattern_of(call));
  if (!call.budget.charge(pattern.search_cost(call.string(0).size()))) return over_budget();
  const std::vector<std::string_view> found = pattern.find(call.string(0), 1);
  return Value::text(found.empty() ? std::string() : std::string(found.front()));
}

Result<Value> find_some(const Call& call, std::int64_t count) {
  SPILLWAY_TRY(pattern, pattern_of(call));
  const std::size_t bytes = call.string(0).size();
  std::vector<Value> parts;
  if (count == 0) return Value(List(std::move(parts)));
  if (!call.budget.charge(pattern.search_cost(bytes)) || !call.budget.charge(bytes)) return over_budget();
  for (const std::string_view found : pattern.find(call.string(0), limit_of(count))) {
    if (!call.budget.charge_bytes(found.size())) return over_budget();
    parts.push_back(Value::text(std::string(found)));
  }
  return Value(List(std::move(parts)));
}

Result<Value> find_all(const Call& call) {
  return find_some(call, -1);
}

Result<Value> find_all_count(const Call& call) {
  return find_some(call, call[2].as<std::int64_t>());
}

constexpr std::array kTextRows = std::to_array<Definition>({
    {"size", "string -> int", size_of_text},
    {"size", "string -> int", size_of_text, kMember},
    {"size", "bytes -> int", size_of_bytes},
    {"size", "bytes -> int", size_of_bytes, kMember},
    {"startsWith", "string, string -> bool", starts_with, kMember},
    {"endsWith", "string, string -> bool", ends_with, kMember},
    {"contains", "string, string -> bool", contains, kMember},
    {"matches", "string, string -> bool", matches},
    {"matches", "string, string -> bool", matches, kMember},
    {"find", "string, string -> string", find_first, kMember},
    {"findAll", "string, string -> list(string)", find_all, kMember},
    {"findAll", "string, string, int -> list(string)", find_all_count, kMember},
    {"charAt", "string, int -> string", character_at, kMember},
    {"indexOf", "string, string -> int", text_index_of, kMember},
    {"indexOf", "string, string, int -> int", index_of_from, kMember},
    {"lastIndexOf", "string, string -> int", text_last_index_of, kMember},
    {"lastIndexOf", "string, string, int -> int", last_index_of_from, kMember},
    {"lowerAscii", "string -> string", lower_ascii, kMember},
    {"upperAscii", "string -> string", upper_ascii, kMember},
    {"replace", "string, string, string -> string", replace, kMember},
    {"replace", "string, string, string, int -> string", replace_count, kMember},
    {"split", "string, string -> list(string)", split, kMember},
    {"split", "string, string, int -> list(string)", split_count, kMember},
    {"substring", "string, int -> string", substring, kMember},
    {"substring", "string, int, int -> string", substring_between, kMember},
    {"trim", "string -> string", trim, kMember},
    {"strings.quote", "string -> string", quote},
    {"join", "list(string) -> string", join, kMember},
    {"join", "list(string), string -> string", join_separated, kMember},
});

}  // namespace

std::span<const Definition> texts() {
  return kTextRows;
}

}  // namespace spillway::cel
