#include "apiserver/nodes/node_address.h"

namespace spillway::apiserver {

using api::Json;

api::StatusResult<NodeAddress> node_address(const Json& node) {
  const Json* addresses = node.at({"status", "addresses"});
  NodeAddress out;
  for (const std::string_view type : {"InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"}) {
    if (addresses == nullptr || addresses->if_array() == nullptr || !out.host.empty()) break;
    for (const Json& address : *addresses->if_array()) {
      if (address.string_at({"type"}) == type && out.host.empty()) out.host = address.string_at({"address"});
    }
  }
  if (out.host.empty()) {
    return make_error(ErrorCode::kInternalError, "no preferred addresses found for node {}",
                      node.string_at({"metadata", "name"}));
  }
  if (const Json* port = node.at({"status", "daemonEndpoints", "kubeletEndpoint", "Port"})) {
    const std::int64_t number = port->if_int64().value_or(0);
    if (number > 0 && number < 65'536) out.port = static_cast<int>(number);
  }
  return out;
}

}  // namespace spillway::apiserver
