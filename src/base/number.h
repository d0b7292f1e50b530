// Whole numbers from decimal text. Thread: any (pure).
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace spillway {

/// The number that the text is, from its first to its last character: digits, and for signed types a '-' before them.
/// nullopt: the text is empty, has any other character (spaces and '+' included), or does not fit into T.
template <std::integral T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

}  // namespace spillway
