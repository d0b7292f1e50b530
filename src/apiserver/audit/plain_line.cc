#include "apiserver/audit/plain_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spillway::apiserver {
namespace {

constexpr char32_t kReplacement = 0xfffd;

struct Character {
  char32_t point = kReplacement;
  std::size_t bytes = 1;
  bool valid = false;
};

/// The character that `text`, which is not empty, begins with.
Character first_character(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  auto point = static_cast<char32_t>(lead & (0xffU >> (bytes + 1)));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xc0U) != 0x80U) return {};
    point = (point << 6U) | (at(i) & 0x3fU);
  }
  const bool overlong = (bytes == 3 && point < 0x800) || (bytes == 4 && point < 0x10000);
  if (overlong || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return {};
  return {point, bytes, true};
}

bool is_deceptive(char32_t point) {
  return (point >= 0x7f && point <= 0x9f) || point == 0x61c || (point >= 0x200e && point <= 0x200f) ||
         (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) || point == 0xfeff;
}

}  // namespace

std::string plain_line(std::string json) {
  const auto beyond_text = [](char c) { return static_cast<unsigned char>(c) >= 0x7f; };
  std::string out;
  std::string_view rest = json;
  while (!rest.empty()) {
    const auto plain = static_cast<std::size_t>(std::ranges::find_if(rest, beyond_text) - rest.begin());
    if (plain == json.size()) return json;
    out += rest.substr(0, plain);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    const Character next = first_character(rest);
    if (!next.valid || is_deceptive(next.point)) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(next.point));
    } else {
      out += rest.substr(0, next.bytes);
    }
    rest.remove_prefix(next.bytes);
  }
  return out;
}

}  // namespace spillway::apiserver
