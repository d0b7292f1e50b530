#include "api/exchange/strict_target.h"

#include "base/ascii.h"

#include <algorithm>

namespace spillway::api {
namespace {

/// True for a byte whose escape is refused: letters, digits and "-._~/" need none, and no name holds other than
/// printable ASCII.
bool is_misleading(char c) {
  const auto byte = static_cast<unsigned char>(c);
  const bool is_letter = to_lower(c) >= 'a' && to_lower(c) <= 'z';
  return is_letter || is_digit(c) || std::string_view("-._~/").contains(c) || byte < 0x20 || byte >= 0x7f;
}

}  // namespace

bool is_normal(const Target& target) {
  return std::ranges::none_of(
      target.segments, [](const std::string& segment) { return segment.empty() || segment == "." || segment == ".."; });
}

Result<Target> parse_strict_target(std::string_view target) {
  SPILLWAY_TRY(parsed, parse_target(target));
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  for (std::size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
    const std::string_view escape = path.substr(at, 3);
    SPILLWAY_TRY(decoded, percent_decode(escape));
    if (is_misleading(decoded.front()))
      return make_error(ErrorCode::kBadRequest, "the escape \"{}\" at byte {} is not allowed in a path", escape, at);
  }
  if (!is_normal(parsed))
    return make_error(ErrorCode::kNotFound, "expected a path without empty segments, \".\" and \"..\"");
  return parsed;
}

std::string path_of(const Target& target) {
  std::string path;
  for (const std::string& segment : target.segments) path += "/" + segment;
  return path.empty() ? "/" : path;
}

}  // namespace spillway::api
