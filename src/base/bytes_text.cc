#include "base/bytes_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace spillway {

std::string short_number(double number) {
  std::string text = fmt::format("{:.1f}", number);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string bytes_text(double bytes) {
  static constexpr std::array<std::string_view, 6> kSuffixes{"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  std::size_t power = 0;
  while (std::abs(bytes) >= 1024 && power + 1 < kSuffixes.size()) {
    bytes /= 1024;
    ++power;
  }
  return short_number(bytes) + std::string(kSuffixes[power]);
}

}  // namespace spillway
