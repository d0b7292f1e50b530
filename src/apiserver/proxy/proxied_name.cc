#include "apiserver/proxy/proxied_name.h"

#include <array>
#include <cstddef>

namespace spillway::apiserver {

std::optional<ProxiedName> parse_proxied_name(std::string_view text) {
  std::array<std::string_view, 3> parts;
  std::size_t count = 0;
  for (std::string_view rest = text;; ++count) {
    if (count == parts.size()) return std::nullopt;
    const std::size_t colon = rest.find(':');
    parts[count] = rest.substr(0, colon);
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  const bool has_scheme = count == 2;
  const std::string_view scheme = has_scheme ? parts[0] : std::string_view();
  const std::string_view name = has_scheme ? parts[1] : parts[0];
  const std::string_view port = has_scheme ? parts[2] : parts[1];
  if (name.empty() || (!scheme.empty() && scheme != "http" && scheme != "https")) return std::nullopt;
  return ProxiedName{.tls = scheme == "https", .name = std::string(name), .port = std::string(port)};
}

}  // namespace spillway::apiserver
