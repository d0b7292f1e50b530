#include "policy/network/ruleset.h"

#include <fmt/format.h>

namespace spillway::network {
namespace {

std::string_view nft_protocol(std::string_view protocol) {
  if (protocol == "UDP") return "udp";
  if (protocol == "SCTP") return "sctp";
  return "tcp";
}

}  // namespace

std::string spread_chain(Target target, List list, std::size_t size) {
  return fmt::format("{}{}-{}", target == Target::kAddress ? "" : "node-port-",
                     list == List::kCluster ? "cluster" : "local", size);
}

std::string address_key(const api::IpAddress& ip, std::string_view protocol, std::int32_t port) {
  return fmt::format("{} . {} . {}", text_of(ip), nft_protocol(protocol), port);
}

std::string node_port_key(std::string_view protocol, std::int32_t port) {
  return fmt::format("{} . {}", nft_protocol(protocol), port);
}

std::string slot_key(std::string_view target_key, std::size_t slot) {
  return fmt::format("{} . {}", target_key, slot);
}

std::string pair_key(const api::IpAddress& ip) {
  const std::string text = text_of(ip);
  return fmt::format("{} . {}", text, text);
}

std::string shared_target(std::string_view container, std::string_view key) {
  return fmt::format("{} {}", container, key);
}

}  // namespace spillway::network
