// Letters, digits and blanks of ASCII, whatever the locale. Bytes beyond ASCII are none of them. Thread: any.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace spillway {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), to_lower);
  return out;
}

inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, to_lower, to_lower);
}

inline constexpr std::string_view kBlanks = " \t";              // within a line
inline constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";  // all of it

/// The text without blanks at both ends.
constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = kBlanks) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace spillway
