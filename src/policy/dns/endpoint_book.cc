#include "policy/dns/endpoint_book.h"

#include "base/ascii.h"
#include "policy/dns/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace spillway::dns {
namespace {

constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";

std::shared_ptr<const std::vector<NamedPort>> named_ports(const std::vector<api::SlicePort>& ports) {
  auto named = std::make_shared<std::vector<NamedPort>>();
  for (const api::SlicePort& port : ports) {
    const auto number = port_number(port.port.value_or(0));
    if (!number) continue;
    named->push_back({.name = lower_case(port.name.value_or("")),
                      .protocol = lower_case(port.protocol.value_or("TCP")),
                      .number = *number});
  }
  return named;
}

std::string host_of(const api::SliceEndpoint& endpoint, const api::IpAddress& address) {
  if (endpoint.hostname && !endpoint.hostname->empty()) return lower_case(*endpoint.hostname);
  return address_label(address);
}

void keep_each_once(std::vector<api::IpAddress>& addresses) {
  std::ranges::sort(addresses);
  const auto repeated = std::ranges::unique(addresses);
  addresses.erase(repeated.begin(), repeated.end());
}

auto order_of(const ReadyEndpoint& endpoint) {
  return std::tie(endpoint.host, endpoint.address);
}

}  // namespace

std::optional<std::uint16_t> port_number(std::int32_t number) {
  if (number < 1 || number > std::numeric_limits<std::uint16_t>::max()) return std::nullopt;
  return static_cast<std::uint16_t>(number);
}

void EndpointBook::put(const api::EndpointSlice& slice) {
  const std::string key = fmt::format("{}/{}", slice.metadata.ns, slice.metadata.name);
  remove(key);
  const auto service_name = slice.metadata.labels.find(kServiceNameLabel);
  if (service_name == slice.metadata.labels.end() || slice.address_type == "FQDN") return;
  Slice made{.service = fmt::format("{}/{}", slice.metadata.ns, service_name->second), .endpoints = {}};
  const auto ports = named_ports(slice.ports);
  for (const api::SliceEndpoint& endpoint : slice.endpoints) {
    if (!endpoint.ready.value_or(true)) continue;
    for (const std::string& text : endpoint.addresses) {
      const auto address = api::parse_ip(text);
      if (!address) continue;
      made.endpoints.push_back({.host = host_of(endpoint, *address), .address = *address, .ports = ports});
    }
  }
  if (made.endpoints.empty()) return;
  for (const ReadyEndpoint& endpoint : made.endpoints)
    hosts_[endpoint.address].try_emplace({made.service, key}, endpoint.host);
  ServiceSlices& service = services_[made.service];
  service.slices.insert(key);
  service.merged = false;
  slices_[key] = std::move(made);
}

void EndpointBook::erase(std::string_view ns, std::string_view slice_name) {
  remove(fmt::format("{}/{}", ns, slice_name));
}

void EndpointBook::remove(const std::string& key) {
  const auto found = slices_.find(key);
  if (found == slices_.end()) return;
  const Slice& slice = found->second;
  for (const ReadyEndpoint& endpoint : slice.endpoints) {
    const auto hosts = hosts_.find(endpoint.address);
    if (hosts == hosts_.end()) continue;
    hosts->second.erase({slice.service, key});
    if (hosts->second.empty()) hosts_.erase(hosts);
  }
  if (const auto service = services_.find(slice.service); service != services_.end()) {
    service->second.slices.erase(key);
    service->second.merged = false;
    if (service->second.slices.empty()) services_.erase(service);
  }
  slices_.erase(found);
}

void EndpointBook::merge(const ServiceSlices& service) const {
  ReadyEndpoints& made = service.endpoints;
  made = {};
  service.merged = true;
  for (const std::string& key : service.slices) {
    const auto slice = slices_.find(key);
    if (slice == slices_.end()) continue;
    for (const ReadyEndpoint& endpoint : slice->second.endpoints) {
      if (made.by_host.size() >= kEndpointsMax) break;
      made.by_host.push_back(endpoint);
      (endpoint.address.v4 ? made.v4_addresses : made.v6_addresses).push_back(endpoint.address);
    }
  }
  std::ranges::stable_sort(made.by_host, {}, order_of);
  keep_each_once(made.v4_addresses);
  keep_each_once(made.v6_addresses);
}

const ReadyEndpoints* EndpointBook::find(std::string_view service) const {
  const auto found = services_.find(service);
  if (found == services_.end()) return nullptr;
  if (!found->second.merged) merge(found->second);
  return &found->second.endpoints;
}

std::vector<std::pair<std::string, std::string>> EndpointBook::hosts_of(const api::IpAddress& address,
                                                                        std::size_t most) const {
  std::vector<std::pair<std::string, std::string>> found;
  const auto hosts = hosts_.find(address);
  if (hosts == hosts_.end()) return found;
  std::size_t seen = 0;
  for (const auto& [place, host] : hosts->second) {
    if (++seen > most) break;
    std::pair<std::string, std::string> named{place.first, host};
    if (std::ranges::find(found, named) == found.end()) found.push_back(std::move(named));
  }
  return found;
}

}  // namespace spillway::dns
