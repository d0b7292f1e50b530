#include "apiserver/ports/aggregated_gateway.h"

#include <fmt/format.h>

namespace spillway::apiserver {

std::string AggregatedServer::url() const {
  const bool v6 = host.contains(':');
  return fmt::format("https://{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

}  // namespace spillway::apiserver
