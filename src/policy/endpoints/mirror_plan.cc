#include "policy/endpoints/mirror_plan.h"

#include "api/text/ip_address.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace spillway::endpoints {
namespace {

constexpr std::string_view kSkipMirrorLabel = "endpointslice.kubernetes.io/skip-mirror";
constexpr std::string_view kLockAnnotation = "control-plane.alpha.kubernetes.io/leader";
/// Annotations of the Endpoints that are not copied to the slices.
constexpr std::array<std::string_view, 2> kOwnAnnotations{"endpoints.kubernetes.io/last-change-trigger-time",
                                                          "kubectl.kubernetes.io/last-applied-configuration"};

/// The address type and the ports, in one order.
using MirrorGroup = std::pair<std::string, std::vector<api::SlicePort>>;
/// Sort key: the address, so that equal ones are merged, then the target.
using MirrorKey = std::tuple<std::string, std::string, std::string>;
using MirrorGroups = std::map<MirrorGroup, std::map<MirrorKey, api::SliceEndpoint>>;

/// True for the texts that Go's ParseBool takes for true.
bool is_true(std::string_view text) {
  constexpr std::array<std::string_view, 6> kTrue{"1", "t", "T", "TRUE", "true", "True"};
  return std::ranges::find(kTrue, text) != kTrue.end();
}

std::vector<api::SlicePort> mirrored_ports(const api::EndpointSubset& subset) {
  std::vector<api::SlicePort> ports;
  for (const api::EndpointPort& port : subset.ports) {
    ports.push_back(
        {.name = port.name, .protocol = port.protocol, .port = port.port, .app_protocol = port.app_protocol});
  }
  std::ranges::sort(ports);
  return ports;
}

api::SliceEndpoint mirrored_endpoint(const api::EndpointAddress& address, bool ready) {
  api::SliceEndpoint endpoint;
  endpoint.addresses = {address.ip};
  endpoint.ready = ready;
  endpoint.target = address.target;
  endpoint.node_name = address.node_name;
  if (!address.hostname.empty()) endpoint.hostname = address.hostname;
  return endpoint;
}

void want(const api::EndpointSubset& subset, MirrorGroups& groups) {
  const std::vector<api::SlicePort> ports = mirrored_ports(subset);
  std::size_t left = kMirroredPerSubset;
  const auto take = [&](const std::vector<api::EndpointAddress>& addresses, bool ready) {
    for (const api::EndpointAddress& address : addresses) {
      const auto ip = api::parse_ip(address.ip);
      if (!ip) continue;
      if (left == 0) return;
      --left;
      const api::ObjectReference target = address.target.value_or(api::ObjectReference{});
      groups[{ip->v4 ? "IPv4" : "IPv6", ports}].try_emplace(
          MirrorKey{address.ip, address.hostname, target.ns + "/" + target.name}, mirrored_endpoint(address, ready));
    }
  };
  take(subset.addresses, true);
  take(subset.not_ready, false);
}

/// The members that all slices of these Endpoints share.
api::EndpointSlice mirror_frame(const api::Endpoints& endpoints, const MirrorGroup& group) {
  api::EndpointSlice slice;
  slice.metadata.generate_name = endpoints.metadata.name + "-";
  slice.metadata.ns = endpoints.metadata.ns;
  slice.metadata.labels = endpoints.metadata.labels;
  slice.metadata.labels.insert_or_assign(std::string(kServiceNameLabel), endpoints.metadata.name);
  slice.metadata.labels.insert_or_assign(std::string(kManagedByLabel), std::string(kMirroringController));
  slice.metadata.annotations = endpoints.metadata.annotations;
  for (const std::string_view name : kOwnAnnotations) {
    if (const auto found = slice.metadata.annotations.find(name); found != slice.metadata.annotations.end()) {
      slice.metadata.annotations.erase(found);
    }
  }
  slice.metadata.owner_references = {{.api_version = std::string(api::Endpoints::kApiVersion),
                                      .kind = std::string(api::Endpoints::kKind),
                                      .name = endpoints.metadata.name,
                                      .uid = endpoints.metadata.uid,
                                      .controller = true,
                                      .block_owner_deletion = true}};
  slice.address_type = group.first;
  slice.ports = group.second;
  return slice;
}

/// The slices that a group has to have.
std::vector<api::EndpointSlice> mirrored(const api::Endpoints& endpoints, const MirrorGroup& group,
                                         const std::map<MirrorKey, api::SliceEndpoint>& wanted) {
  std::vector<api::EndpointSlice> slices;
  for (const auto& [key, endpoint] : wanted) {
    if (slices.empty() || slices.back().endpoints.size() == kMirroredPerSubset) {
      slices.push_back(mirror_frame(endpoints, group));
    }
    slices.back().endpoints.push_back(endpoint);
  }
  return slices;
}

bool is_the_same(const api::EndpointSlice& slice, const api::EndpointSlice& wanted) {
  return slice.metadata.labels == wanted.metadata.labels && slice.metadata.annotations == wanted.metadata.annotations &&
         slice.endpoints == wanted.endpoints;
}

}  // namespace

bool is_mirrored(const api::Endpoints& endpoints, const api::Service* service) {
  if (service == nullptr || !service->selector.empty() || endpoints.metadata.deletion_timestamp) return false;
  if (endpoints.metadata.annotations.contains(kLockAnnotation)) return false;
  const auto skipped = endpoints.metadata.labels.find(kSkipMirrorLabel);
  return skipped == endpoints.metadata.labels.end() || !is_true(skipped->second);
}

SlicePlan plan_mirror(const api::Endpoints& endpoints, std::span<const SlicePtr> slices) {
  MirrorGroups groups;
  for (const api::EndpointSubset& subset : endpoints.subsets) want(subset, groups);
  SlicePlan plan;
  std::map<MirrorGroup, std::vector<SlicePtr>> existing;
  for (const SlicePtr& slice : slices) {
    const api::OwnerReference* owner = api::controller_of(slice->metadata);
    std::vector<api::SlicePort> ports = slice->ports;
    std::ranges::sort(ports);
    const MirrorGroup group{slice->address_type, std::move(ports)};
    const bool wanted = groups.contains(group) && owner != nullptr && owner->uid == endpoints.metadata.uid;
    (wanted ? existing[group] : plan.deleted).push_back(slice);
  }
  for (const auto& [group, wanted] : groups) {
    const std::vector<SlicePtr>& there = existing[group];
    std::vector<api::EndpointSlice> next = mirrored(endpoints, group, wanted);
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (i >= there.size()) {
        plan.created.push_back(std::move(next[i]));
      } else if (!is_the_same(*there[i], next[i])) {
        api::EndpointSlice changed = *there[i];
        changed.metadata.labels = std::move(next[i].metadata.labels);
        changed.metadata.annotations = std::move(next[i].metadata.annotations);
        changed.endpoints = std::move(next[i].endpoints);
        plan.updated.push_back(std::move(changed));
      }
    }
    for (std::size_t i = next.size(); i < there.size(); ++i) plan.deleted.push_back(there[i]);
  }
  return plan;
}

std::size_t unmirrored_addresses(const api::Endpoints& endpoints) {
  std::size_t beyond = 0;
  for (const api::EndpointSubset& subset : endpoints.subsets) {
    const std::size_t all = subset.addresses.size() + subset.not_ready.size();
    beyond += all - std::min(all, kMirroredPerSubset);
  }
  return beyond;
}

}  // namespace spillway::endpoints
