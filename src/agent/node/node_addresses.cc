#include "agent/node/node_addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace spillway::agent {
namespace {

constexpr std::string_view kProvidedNodeIp = "alpha.kubernetes.io/provided-node-ip";

enum class Family { kV4, kV6 };

/// An address in its canonical spelling; v4 in v6 counts as v4.
struct Ip {
  Family family = Family::kV4;
  std::array<std::uint8_t, 16> octets{};  // IPv4 uses the first 4

  bool is_unspecified() const { return octets == std::array<std::uint8_t, 16>{}; }

  bool is_loopback() const {
    if (family == Family::kV4) return octets[0] == 127;
    std::array<std::uint8_t, 16> one{};
    one[15] = 1;
    return octets == one;
  }

  bool is_multicast() const { return family == Family::kV4 ? (octets[0] & 0xf0U) == 0xe0U : octets[0] == 0xffU; }

  bool is_link_local() const {
    if (family == Family::kV4) return octets[0] == 169 && octets[1] == 254;
    return octets[0] == 0xfeU && (octets[1] & 0xc0U) == 0x80U;
  }

  std::string text() const {
    std::array<char, INET6_ADDRSTRLEN> buffer{};
    inet_ntop(family == Family::kV4 ? AF_INET : AF_INET6, octets.data(), buffer.data(), buffer.size());
    return buffer.data();
  }
};

/// Dotted decimal, leading zeros tolerated: "010.001.002.003" is 10.1.2.3.
std::optional<Ip> parse_v4(std::string_view text) {
  Ip ip;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < 4; ++i) {
    if (i > 0 && (at == end || *at++ != '.')) return std::nullopt;
    const auto [next, error] = std::from_chars(at, end, ip.octets.at(i));
    if (error != std::errc{}) return std::nullopt;
    at = next;
  }
  return at == end ? std::optional(ip) : std::nullopt;
}

std::optional<Ip> parse_ip(const std::string& text) {
  if (const auto v4 = parse_v4(text)) return v4;
  Ip ip{.family = Family::kV6, .octets = {}};
  if (inet_pton(AF_INET6, text.c_str(), ip.octets.data()) != 1) return std::nullopt;
  static constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (!std::equal(kMapped.begin(), kMapped.end(), ip.octets.begin())) return ip;
  Ip v4;
  std::copy_n(ip.octets.begin() + 12, 4, v4.octets.begin());
  return v4;
}

Outcome check_node_ip(const Ip& ip, const AddressFacts& facts) {
  const auto refuse = [](std::string message) { return Error{ErrorCode::kInvalid, std::move(message), {}}; };
  if (ip.is_loopback() && !facts.loopback_allowed) return refuse("nodeIP can't be loopback address");
  if (ip.is_multicast()) return refuse("nodeIP can't be a multicast address");
  if (ip.is_link_local()) return refuse("nodeIP can't be a link-local unicast address");
  if (ip.is_unspecified()) return refuse("nodeIP can't be an all zeros address");
  if (facts.on_host && !facts.on_host(ip.text())) {
    return refuse(fmt::format("node IP: \"{}\" not found in the host's network interfaces", ip.text()));
  }
  return {};
}

/// The addresses of --node-ip.
struct NodeIps {
  bool given = false;  // true if at least one address or family was given
  Family preferred = Family::kV4;
  std::optional<Ip> first;  // nullopt: none, or a family alone
  std::optional<Ip> second;
};

Result<NodeIps> read_node_ips(const AddressFacts& facts) {
  NodeIps ips;
  for (std::size_t i = 0; i < facts.node_ips.size() && i < 2; ++i) {
    const auto ip = parse_ip(facts.node_ips[i]);
    if (!ip) return invalid({}, "\"{}\" is no IP address", facts.node_ips[i]);
    if (i == 0) {
      ips.given = true;
      ips.preferred = ip->family;
    }
    if (ip->is_unspecified()) continue;
    if (const Outcome checked = check_node_ip(*ip, facts); !checked) {
      return Error{
          ErrorCode::kInvalid,
          fmt::format("failed to validate {}: {}", i == 0 ? "nodeIP" : "secondaryNodeIP", checked.error().message),
          {}};
    }
    (i == 0 ? ips.first : ips.second) = *ip;
  }
  return ips;
}

/// The first usable answer of the preferred family, else of the other.
std::optional<Ip> choose_answer(const AddressFacts& facts, Family preferred) {
  std::optional<Ip> other;
  for (const std::string& answer : facts.dns_answers) {
    const auto ip = parse_ip(answer);
    if (!ip || !check_node_ip(*ip, facts)) continue;
    if (ip->family == preferred) return ip;
    if (!other) other = ip;
  }
  return other;
}

Result<Ip> find_ip(const api::Node& node, const AddressFacts& facts, const NodeIps& ips) {
  if (ips.first) return *ips.first;
  if (const auto named = parse_ip(facts.hostname)) return *named;
  if (const auto answer = choose_answer(facts, ips.preferred)) return *answer;
  const auto fail = [&node](std::string_view why) {
    return Error{
        ErrorCode::kInvalid, fmt::format("can't get ip address of node {}. error: {}", node.metadata.name, why), {}};
  };
  if (!facts.default_route_ip) return fail(facts.default_route_ip.error().message);
  if (const auto routed = parse_ip(*facts.default_route_ip)) return *routed;
  return fail("no default route");
}

void annotate(api::Node& node, const AddressFacts& facts, const NodeIps& ips) {
  if (facts.cloud_provider == CloudProvider::kExternal && ips.first) {
    std::string provided = ips.first->text();
    if (ips.second) provided += "," + ips.second->text();
    node.metadata.annotations.insert_or_assign(std::string(kProvidedNodeIp), std::move(provided));
  } else {
    node.metadata.annotations.erase(std::string(kProvidedNodeIp));
  }
}

}  // namespace

Outcome set_addresses(api::Node& node, const AddressFacts& facts) {
  SPILLWAY_TRY(ips, read_node_ips(facts));
  annotate(node, facts, ips);
  std::vector<api::NodeAddress>& addresses = node.status.addresses;
  const api::NodeAddress hostname{"Hostname", facts.hostname};
  if (facts.cloud_provider == CloudProvider::kExternal) {
    if (!addresses.empty()) return {};
    if (!ips.given) {
      addresses = {hostname};
      return {};
    }
  }
  if (ips.first && ips.second) {
    addresses = {{"InternalIP", ips.first->text()}, {"InternalIP", ips.second->text()}, hostname};
    return {};
  }
  SPILLWAY_TRY(ip, find_ip(node, facts, ips));
  addresses = {{"InternalIP", ip.text()}, hostname};
  return {};
}

}  // namespace spillway::agent
