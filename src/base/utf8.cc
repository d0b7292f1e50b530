#include "base/utf8.h"

#include <algorithm>

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
  std::string text(bytes);
  for (std::size_t at = 0; at < text.size();) {
    const auto found = find_non_text(std::string_view(text).substr(at));
    if (!found) break;
    at += *found;
    text[at++] = '?';
  }
  // U+0080 to U+009F: one of them begins a sequence as ESC [ does.
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    if (text[at] == '\xc2' && static_cast<unsigned char>(text[at + 1]) < 0xa0) text[at] = text[at + 1] = '?';
  }
  std::ranges::replace(text, '\r', '?');
  return text;
}

std::string shortened(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  std::size_t end = bytes_max;
  while (end > 0 && is_continuation(text[end])) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace spillway
