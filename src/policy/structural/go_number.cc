#include "policy/structural/go_number.h"

#include <array>
#include <charconv>
#include <cmath>

namespace spillway::structural {

std::string go_number(double value) {
  constexpr double kLeastPlain = 1e-4;
  constexpr double kLeastWithExponent = 1e21;
  const double size = std::abs(value);
  const bool plain = value == 0 || (size >= kLeastPlain && size < kLeastWithExponent);
  std::array<char, 400> text;  // a double has at most 309 digits before its point
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  return {text.data(), end.ptr};
}

}  // namespace spillway::structural
