#include "policy/endpoints/endpoints_plan.h"

#include "api/text/ip_address.h"
#include "api/text/time_text.h"
#include "policy/endpoints/digest_order.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace spillway::endpoints {
namespace {

using Addresses = std::vector<api::EndpointAddress>;

/// The order of addresses: by address, then by pod.
std::tuple<std::string, std::string> place_of(const api::EndpointAddress& address) {
  const auto ip = api::parse_ip(address.ip);
  std::string octets = ip ? std::string(ip->octets.begin(), ip->octets.end()) : address.ip;
  return {std::move(octets), address.target ? address.target->uid : std::string{}};
}

/// The addresses of one port, each with its target and its readiness.
using Members = std::map<std::tuple<std::string, std::string>, std::pair<api::EndpointAddress, bool>>;

Family family_of_endpoints(const api::Service& service, const api::Pod& pod) {
  if (!service.ip_families.empty()) return service.ip_families.front() == "IPv6" ? Family::kIpv6 : Family::kIpv4;
  return family_of(is_headless(service) ? pod.status.pod_ip : service.cluster_ip);
}

std::optional<api::EndpointAddress> address_of(const api::Service& service, const api::Pod& pod) {
  const std::vector<std::string> addresses = addresses_of(pod, family_of_endpoints(service, pod));
  if (addresses.empty()) return std::nullopt;
  api::EndpointAddress address;
  address.ip = addresses.front();
  address.hostname = hostname_of(pod, service).value_or(std::string{});
  address.node_name = pod.spec.node_name;
  address.target = {.kind = "Pod", .ns = pod.metadata.ns, .name = pod.metadata.name, .uid = pod.metadata.uid};
  return address;
}

/// The ports of a pod that the Service names; nullopt: the single entry of a headless Service without ports.
std::vector<std::optional<api::EndpointPort>> ports_of_pod(const api::Service& service, const api::Pod& pod) {
  std::vector<std::optional<api::EndpointPort>> ports;
  if (service.ports.empty() && service.cluster_ip == "None") ports.emplace_back();
  for (const api::ServicePort& port : service.ports) {
    if (const auto number = target_port(port, pod)) {
      ports.push_back(api::EndpointPort{port.name, *number, port.protocol, port.app_protocol});
    }
  }
  return ports;
}

std::size_t count(const std::vector<api::EndpointSubset>& subsets, Addresses api::EndpointSubset::* list) {
  std::size_t sum = 0;
  for (const api::EndpointSubset& subset : subsets) sum += (subset.*list).size();
  return sum;
}

/// Cuts each list of addresses to its share of the limit, rounded up.
void share(std::vector<api::EndpointSubset>& subsets, Addresses api::EndpointSubset::* list, std::size_t room) {
  const std::size_t all = count(subsets, list);
  std::size_t left = room;
  for (api::EndpointSubset& subset : subsets) {
    Addresses& addresses = subset.*list;
    const std::size_t part = all == 0 ? 0 : (addresses.size() * room + all - 1) / all;
    addresses.resize(std::min({part, left, addresses.size()}));
    left -= addresses.size();
  }
}

bool same_address(api::EndpointAddress a, api::EndpointAddress b) {
  for (auto* address : {&a, &b}) {
    if (address->target) address->target->resource_version.clear();
  }
  return a == b;
}

bool same_subsets(const std::vector<api::EndpointSubset>& a, const std::vector<api::EndpointSubset>& b) {
  return std::ranges::equal(a, b, [](const api::EndpointSubset& x, const api::EndpointSubset& y) {
    return x.ports == y.ports && std::ranges::equal(x.addresses, y.addresses, same_address) &&
           std::ranges::equal(x.not_ready, y.not_ready, same_address);
  });
}

api::StringMap endpoints_labels(const api::Service& service) {
  api::StringMap labels = service.metadata.labels;
  if (const auto found = labels.find(kHeadlessLabel); found != labels.end()) labels.erase(found);
  if (is_headless(service)) labels.emplace(kHeadlessLabel, "");
  labels.insert_or_assign(std::string(kEndpointsManagedByLabel), std::string(kEndpointController));
  return labels;
}

void annotate(api::StringMap& annotations, std::string_view key, const std::optional<std::string>& value) {
  if (const auto found = annotations.find(key); found != annotations.end()) annotations.erase(found);
  if (value) annotations.emplace(key, *value);
}

bool is_marked(const api::StringMap& annotations) {
  const auto found = annotations.find(kOverCapacity);
  return found != annotations.end() && found->second == kTruncated;
}

}  // namespace

std::vector<api::EndpointSubset> repack(std::span<const api::EndpointSubset> given) {
  std::map<std::optional<api::EndpointPort>, Members> by_port;
  const auto add = [&by_port](const std::optional<api::EndpointPort>& port, const Addresses& addresses, bool ready) {
    for (const api::EndpointAddress& address : addresses) {
      const auto [member, is_new] = by_port[port].try_emplace(place_of(address), address, ready);
      if (!is_new && !ready) member->second.second = false;
    }
  };
  for (const api::EndpointSubset& subset : given) {
    std::vector<std::optional<api::EndpointPort>> ports(subset.ports.begin(), subset.ports.end());
    if (ports.empty()) ports.emplace_back();
    for (const auto& port : ports) {
      add(port, subset.addresses, true);
      add(port, subset.not_ready, false);
    }
  }
  // Ports with the same addresses become one subset.
  std::vector<std::pair<const Members*, api::EndpointSubset>> groups;
  for (const auto& [port, members] : by_port) {
    auto group =
        std::ranges::find_if(groups, [&members = members](const auto& each) { return *each.first == members; });
    if (group == groups.end()) group = groups.insert(groups.end(), {&members, {}});
    if (port) group->second.ports.push_back(*port);
  }
  std::vector<api::EndpointSubset> subsets;
  for (auto& [members, subset] : groups) {
    for (const auto& [place, member] : *members) {
      (member.second ? subset.addresses : subset.not_ready).push_back(member.first);
    }
    sort_by_digest(subset.ports);
    subsets.push_back(std::move(subset));
  }
  sort_by_digest(subsets);
  return subsets;
}

std::vector<api::EndpointSubset> subsets_of(const api::Service& service, std::span<const PodPtr> pods) {
  std::vector<api::EndpointSubset> subsets;
  for (const PodPtr& pod : pods) {
    if (!belongs_to_endpoints(*pod, service.publish_not_ready)) continue;
    const auto address = address_of(service, *pod);
    if (!address) continue;
    const bool ready = service.publish_not_ready || workloads::is_ready(*pod);
    const auto ports = ports_of_pod(service, *pod);
    if (ports.empty()) continue;
    api::EndpointSubset& subset = subsets.emplace_back();
    (ready ? subset.addresses : subset.not_ready).push_back(*address);
    for (const auto& port : ports) {
      if (port) subset.ports.push_back(*port);
    }
  }
  return repack(subsets);
}

bool truncate(std::vector<api::EndpointSubset>& subsets) {
  const std::size_t ready = count(subsets, &api::EndpointSubset::addresses);
  const std::size_t not_ready = count(subsets, &api::EndpointSubset::not_ready);
  if (ready + not_ready <= kAddressesMax) return false;
  if (ready > kAddressesMax) share(subsets, &api::EndpointSubset::addresses, kAddressesMax);
  share(subsets, &api::EndpointSubset::not_ready, kAddressesMax - std::min(ready, kAddressesMax));
  return true;
}

std::optional<api::Endpoints> plan_endpoints(const api::Service& service, std::span<const PodPtr> pods,
                                             const api::Endpoints* current, std::optional<WallTime> trigger_time) {
  std::vector<api::EndpointSubset> subsets = subsets_of(service, pods);
  const bool truncated = truncate(subsets);
  const api::StringMap labels = endpoints_labels(service);
  const bool is_said = current != nullptr && current->metadata.labels == labels &&
                       is_marked(current->metadata.annotations) == truncated && same_subsets(current->subsets, subsets);
  if (is_said) return std::nullopt;
  api::Endpoints next = current != nullptr ? *current : api::Endpoints{};
  next.metadata.name = service.metadata.name;
  next.metadata.ns = service.metadata.ns;
  next.metadata.labels = labels;
  const auto triggered = trigger_time ? std::optional(api::format_time(*trigger_time)) : std::nullopt;
  annotate(next.metadata.annotations, kTriggerTime, triggered);
  annotate(next.metadata.annotations, kOverCapacity, truncated ? std::optional(std::string(kTruncated)) : std::nullopt);
  next.subsets = std::move(subsets);
  return next;
}

}  // namespace spillway::endpoints
