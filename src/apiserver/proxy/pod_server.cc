#include "apiserver/proxy/pod_server.h"

#include "api/object/kind_id.h"
#include "api/text/ip_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace spillway::apiserver {
namespace {

using api::IpAddress;
using api::Json;
using api::StatusResult;

constexpr std::size_t kTriesMax = 16;  // addresses of a service that are tried
constexpr std::int64_t kPortMax = 65'535;
constexpr std::int64_t kHttpPort = 80;
constexpr std::int64_t kHttpsPort = 443;
constexpr std::size_t kV4Begin = 12;

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_for_many(const IpAddress& address) {
  if (!address.v4) return address.octets[0] == 0xff;
  const auto v4 = std::ranges::subrange(address.octets.begin() + kV4Begin, address.octets.end());
  return (v4.front() & 0xf0U) == 0xe0 || std::ranges::all_of(v4, [](std::uint8_t octet) { return octet == 0xff; });
}

/// 0.0.0.0/8; and ::/96, the deprecated range of IPv4 addresses in IPv6.
bool is_of_no_host(const IpAddress& address) {
  const auto end = address.octets.begin() + kV4Begin;
  if (address.v4) return *end == 0;
  return std::all_of(address.octets.begin(), end, [](std::uint8_t octet) { return octet == 0; });
}

/// IPv4 addresses by way of a translator or a tunnel (NAT64, 6to4, SIIT), and the metadata addresses of clouds: no pod
/// has them.
bool is_elsewhere_by_another_name(const IpAddress& address) {
  static const std::array<std::optional<api::IpRange>, 5> kRanges = {
      api::parse_ip_range("64:ff9b::/96"), api::parse_ip_range("64:ff9b:1::/48"), api::parse_ip_range("2002::/16"),
      api::parse_ip_range("::ffff:0:0:0/96"), api::parse_ip_range("fd00:ec2::254/128")};
  return std::ranges::any_of(kRanges, [&](const auto& range) { return range && range->contains(address); });
}

std::string text_of(const IpAddress& address) {
  const auto& octets = address.octets;
  if (address.v4) return fmt::format("{}.{}.{}.{}", octets[12], octets[13], octets[14], octets[15]);
  std::string text;
  for (std::size_t i = 0; i < octets.size(); i += 2) {
    text += fmt::format("{}{:x}", i == 0 ? "" : ":", (octets[i] << 8U) | octets[i + 1]);
  }
  return text;
}

/// The array at that path of `object`; empty if there is no array.
const Json::Array& array_at(const Json& object, std::initializer_list<std::string_view> path) {
  static const Json::Array kNone;
  const Json* member = object.at(path);
  const Json::Array* array = member == nullptr ? nullptr : member->if_array();
  return array == nullptr ? kNone : *array;
}

/// The addresses that the pod has, the first of them first.
std::vector<std::string_view> addresses_of(const Json& pod) {
  std::vector<std::string_view> all;
  for (const Json& each : array_at(pod, {"status", "podIPs"})) all.push_back(each.string_at({"ip"}));
  if (all.empty()) all.push_back(pod.string_at({"status", "podIP"}));
  return all;
}

bool has_ended(const Json& pod) {
  const std::string_view phase = pod.string_at({"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

std::optional<std::int64_t> first_port(const Json& pod) {
  for (const Json& container : array_at(pod, {"spec", "containers"})) {
    const Json::Array& ports = array_at(container, {"ports"});
    if (ports.empty()) continue;
    const Json* port = ports.front().at({"containerPort"});
    return port == nullptr ? std::nullopt : port->if_int64();
  }
  return std::nullopt;
}

bool is_port(std::optional<std::int64_t> number) {
  return number && *number > 0 && *number <= kPortMax;
}

/// The named pod of the namespace must have this address in its own status, so that a user who writes endpoints cannot
/// name any other place.
bool is_address_of(const Json& endpoint, std::string_view ns, const IpAddress& address, const FindPod& find_pod) {
  const api::KindId kind =
      api::kind_id(endpoint.string_at({"targetRef", "apiVersion"}), endpoint.string_at({"targetRef", "kind"}));
  if (kind != api::KindId{"", "Pod"} || endpoint.string_at({"targetRef", "namespace"}) != ns) return false;
  const auto pod = find_pod(endpoint.string_at({"targetRef", "name"}));
  if (!pod || has_ended(*pod)) return false;
  return std::ranges::any_of(addresses_of(*pod), [&](std::string_view text) { return api::parse_ip(text) == address; });
}

/// The name of the requested port.
StatusResult<std::string> port_name(const ProxiedName& asked, const Json* service) {
  if (!asks_for_number(asked)) return asked.port;
  const std::optional<std::int64_t> number = number_in(asked.port);
  static const Json kNone;
  for (const Json& port : array_at(service == nullptr ? kNone : *service, {"spec", "ports"})) {
    const Json* its = port.at({"port"});
    if (its != nullptr && its->if_int64() == number) return std::string(port.string_at({"name"}));
  }
  return make_error(ErrorCode::kServiceUnavailable, "no service port {} found for service \"{}\"", asked.port,
                    asked.name);
}

/// The number that the subset serves the port of that name at.
std::optional<std::int64_t> port_in(const Json& subset, std::string_view name) {
  for (const Json& port : array_at(subset, {"ports"})) {
    if (port.string_at({"name"}) != name) continue;
    const Json* number = port.at({"port"});
    const auto value = number == nullptr ? std::nullopt : number->if_int64();
    if (is_port(value)) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> proxyable_address(std::string_view text) {
  const auto address = api::parse_ip(text);
  if (!address || is_of_no_host(*address) || address->is_loopback() || address->is_link_local() ||
      is_for_many(*address) || is_elsewhere_by_another_name(*address)) {
    return std::nullopt;
  }
  return text_of(*address);
}

bool asks_for_number(const ProxiedName& asked) {
  return number_in(asked.port).has_value();
}

StatusResult<PodServer> server_of_pod(const ProxiedName& asked, const Json& pod) {
  const auto address = proxyable_address(addresses_of(pod).front());
  if (!address) return make_error(ErrorCode::kBadRequest, "address not allowed");
  if (has_ended(pod)) {
    return make_error(ErrorCode::kServiceUnavailable, "pod \"{}\" has ended: its address may be another's", asked.name);
  }
  std::optional<std::int64_t> port = asked.port.empty() ? first_port(pod) : number_in(asked.port);
  if (asked.port.empty() && !port) port = asked.tls ? kHttpsPort : kHttpPort;
  if (!is_port(port)) {
    return make_error(ErrorCode::kServiceUnavailable, "error trying to reach service: \"{}\" is no port of pod \"{}\"",
                      asked.port, asked.name);
  }
  return PodServer{.address = *address, .port = static_cast<std::uint16_t>(*port), .tls = asked.tls};
}

StatusResult<PodServer> server_of_service(const ProxiedName& asked, const Json* service, const Json& endpoints,
                                          std::string_view ns, const FindPod& find_pod, Rng& rng) {
  const auto name = port_name(asked, service);
  if (!name) return name.error();
  const Json::Array& subsets = array_at(endpoints, {"subsets"});
  const std::size_t first_subset = subsets.empty() ? 0 : rng.below(subsets.size());
  std::size_t tries = 0;
  for (std::size_t i = 0; i < subsets.size(); ++i) {
    const Json& subset = subsets[(first_subset + i) % subsets.size()];
    const auto port = port_in(subset, *name);
    const Json::Array& addresses = array_at(subset, {"addresses"});
    if (!port || addresses.empty()) continue;
    const std::size_t first = rng.below(addresses.size());
    for (std::size_t k = 0; k < addresses.size() && tries < kTriesMax; ++k, ++tries) {
      const Json& endpoint = addresses[(first + k) % addresses.size()];
      const std::string_view text = endpoint.string_at({"ip"});
      const auto address = proxyable_address(text);
      if (address && is_address_of(endpoint, ns, *api::parse_ip(text), find_pod)) {
        return PodServer{.address = *address, .port = static_cast<std::uint16_t>(*port), .tls = asked.tls};
      }
    }
  }
  return make_error(ErrorCode::kServiceUnavailable, "no endpoints available for service \"{}\"", asked.name);
}

}  // namespace spillway::apiserver
