#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace spillway {
namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

/// Length of the UTF-8 sequence at the start of `text`; 0 if it is none (overlong, surrogate, beyond U+10FFFF).
std::size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
  return length;
}

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
}

constexpr char32_t kNotUtf8 = 0xfffd;

/// True if the character moves, hides or reorders its surroundings.
bool is_unprintable(char32_t c) {
  if (c < 0x20) return c != U'\t' && c != U'\n';
  if (c >= 0x7f && c <= 0x9f) return true;  // C1 controls: one of them begins a sequence as ESC [ does
  return (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

struct Unprintable {
  std::size_t at = 0;
  std::size_t length = 1;
  char32_t code = kNotUtf8;
};

char32_t code_of(std::string_view sequence) {
  if (sequence.size() == 1) return static_cast<unsigned char>(sequence[0]);
  char32_t code = static_cast<unsigned char>(sequence[0]) & (0x7fU >> sequence.size());
  for (const char c : sequence.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3fU);
  return code;
}

/// The first character that must be replaced, from this offset on.
std::optional<Unprintable> find_unprintable(std::string_view text, std::size_t from) {
  for (std::size_t at = from; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return Unprintable{.at = at};
    const char32_t code = code_of(text.substr(at, length));
    if (is_unprintable(code)) return Unprintable{.at = at, .length = length, .code = code};
    at += length;
  }
  return std::nullopt;
}

/// Length of a sequence ESC [ digits m at the start; 0: it is another one.
std::size_t colour_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

/// The text with question marks, except for sequences that are `kept`: the length of one, or 0. Null: none is.
std::string replaced(std::string_view bytes, std::size_t (*kept)(std::string_view)) {
  std::string text(bytes);
  std::size_t at = 0;
  for (auto found = find_unprintable(text, at); found; found = find_unprintable(text, at)) {
    const std::size_t stays = kept == nullptr ? 0 : kept(bytes.substr(found->at));
    if (stays == 0) std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(found->at), found->length, '?');
    at = found->at + std::max(stays, found->length);
  }
  return text;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::optional<std::size_t> find_non_text(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = utf8_length(bytes.substr(at));
    if (length == 0 || is_control(bytes[at])) return at;
    at += length;
  }
  return std::nullopt;
}

std::string printable(std::string_view bytes) {
  return replaced(bytes, nullptr);
}

std::string printable_line(std::string_view bytes) {
  std::string text = printable(bytes);
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text;
}

std::string printable_painted(std::string_view bytes) {
  return replaced(bytes, colour_length);
}

void escape_unprintable(std::string& json, std::size_t from) {
  std::string out;
  std::size_t plain_from = 0;
  for (auto found = find_unprintable(json, from); found; found = find_unprintable(json, plain_from)) {
    out.append(json, plain_from, found->at - plain_from);
    out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(found->code));
    plain_from = found->at + found->length;
  }
  if (plain_from == 0) return;
  out.append(json, plain_from);
  json = std::move(out);
}

std::string shortened(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  std::size_t end = bytes_max;
  while (end > 0 && is_continuation(text[end])) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace spillway
