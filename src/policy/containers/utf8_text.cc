#include "policy/containers/utf8_text.h"

#include "base/utf8.h"

#include <cstddef>

namespace spillway::containers {

std::string utf8_text(std::string_view bytes) {
  if (is_utf8(bytes)) return std::string(bytes);
  constexpr std::size_t kLongest = 4;
  std::string text;
  while (!bytes.empty()) {
    std::size_t length = 1;
    while (length <= kLongest && length <= bytes.size() && !is_utf8(bytes.substr(0, length))) ++length;
    if (length > kLongest || length > bytes.size()) {
      text += "\xEF\xBF\xBD";
      length = 1;
    } else {
      text += bytes.substr(0, length);
    }
    bytes.remove_prefix(length);
  }
  return text;
}

}  // namespace spillway::containers
