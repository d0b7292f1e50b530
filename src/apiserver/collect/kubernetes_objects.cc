#include "apiserver/collect/kubernetes_objects.h"

#include "api/text/ip_address.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kKubernetes = "kubernetes";
constexpr std::string_view kPortName = "https";
constexpr int kServicePort = 443;
constexpr std::string_view kSkipMirror = "endpointslice.kubernetes.io/skip-mirror";
constexpr std::string_view kManagedBy = "endpointslice.kubernetes.io/managed-by";
constexpr std::string_view kKeeper = "spillway-apiserver";

Json metadata(std::string name, std::initializer_list<std::pair<std::string_view, Json>> labels) {
  return Json::object({{"name", std::move(name)}, {"namespace", "default"}, {"labels", Json::object(labels)}});
}

/// 0: no port.
std::uint16_t parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : std::uint16_t{0};
}

Json endpoint_port(std::uint16_t port) {
  return Json::object({{"name", kPortName}, {"port", std::int64_t{port}}, {"protocol", "TCP"}});
}

}  // namespace

bool may_be_endpoint(std::string_view ip) {
  const auto address = api::parse_ip(ip);
  return address && !address->is_unspecified() && !address->is_loopback() && !address->is_link_local() &&
         !address->is_link_local_multicast();
}

std::optional<ServingAddress> parse_serving_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view ip = text.substr(0, colon);
  const bool in_brackets = ip.size() > 2 && ip.front() == '[' && ip.back() == ']';
  if (in_brackets) ip = ip.substr(1, ip.size() - 2);
  const std::uint16_t port = parse_port(text.substr(colon + 1));
  if (port == 0 || !may_be_endpoint(ip)) return std::nullopt;
  const bool is_v4 = api::parse_ip(ip)->v4;
  if (is_v4 == in_brackets) return std::nullopt;
  return ServingAddress{.ip = std::string(ip), .is_v4 = is_v4, .port = port};
}

Json kubernetes_service(std::uint16_t port) {
  Json service_port = Json::object({{"name", kPortName},
                                    {"port", std::int64_t{kServicePort}},
                                    {"protocol", "TCP"},
                                    {"targetPort", std::int64_t{port}}});
  return Json::object(
      {{"apiVersion", "v1"},
       {"kind", "Service"},
       {"metadata", metadata(std::string(kKubernetes), {{"component", "apiserver"}, {"provider", kKubernetes}})},
       {"spec",
        Json::object(
            {{"type", "ClusterIP"}, {"sessionAffinity", "None"}, {"ports", Json::array({std::move(service_port)})}})}});
}

Json kubernetes_endpoints(const std::vector<ServingAddress>& addresses) {
  std::map<std::uint16_t, Json::Array> by_port;
  for (const ServingAddress& each : addresses) by_port[each.port].push_back(Json::object({{"ip", each.ip}}));
  Json::Array subsets;
  for (auto& [port, ips] : by_port) {
    subsets.push_back(Json::object({{"addresses", std::move(ips)}, {"ports", Json::array({endpoint_port(port)})}}));
  }
  // The slices are written here, not copied from the Endpoints by a controller.
  return Json::object({{"apiVersion", "v1"},
                       {"kind", "Endpoints"},
                       {"metadata", metadata(std::string(kKubernetes), {{kSkipMirror, "true"}})},
                       {"subsets", std::move(subsets)}});
}

bool is_kept(const Json& document) {
  return document.string_at({"metadata", "labels", kSkipMirror}) == "true" ||
         document.string_at({"metadata", "labels", kManagedBy}) == kKeeper;
}

std::vector<Json> kubernetes_slices(const std::vector<ServingAddress>& addresses) {
  std::map<std::pair<bool, std::uint16_t>, Json::Array> groups;  // IPv4 first
  for (const ServingAddress& each : addresses) {
    groups[{!each.is_v4, each.port}].push_back(
        Json::object({{"addresses", Json::array({each.ip})}, {"conditions", Json::object({{"ready", true}})}}));
  }
  std::vector<Json> slices;
  for (auto& [group, endpoints] : groups) {
    const auto& [is_v6, port] = group;
    const bool is_first_v4 = slices.empty() && !is_v6;  // the family of a slice never changes
    std::string name =
        is_first_v4 ? std::string(kKubernetes) : fmt::format("{}-{}-{}", kKubernetes, is_v6 ? "v6" : "v4", port);
    slices.push_back(Json::object(
        {{"apiVersion", "discovery.k8s.io/v1"},
         {"kind", "EndpointSlice"},
         {"metadata", metadata(std::move(name), {{"kubernetes.io/service-name", kKubernetes}, {kManagedBy, kKeeper}})},
         {"addressType", is_v6 ? "IPv6" : "IPv4"},
         {"endpoints", std::move(endpoints)},
         {"ports", Json::array({endpoint_port(port)})}}));
  }
  return slices;
}

}  // namespace spillway::apiserver
