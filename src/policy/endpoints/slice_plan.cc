#include "policy/endpoints/slice_plan.h"

#include "api/object/kind_id.h"
#include "api/text/time_text.h"
#include "policy/endpoints/digest_order.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace spillway::endpoints {
namespace {

using Slices = std::vector<api::EndpointSlice>;
/// Ports in digest order, so that equal lists compare equal.
using Ports = std::vector<api::SlicePort>;

/// The identity of an endpoint: two with an equal one are the same endpoint, whatever else changed about it.
using EndpointId = std::tuple<std::vector<std::string>, std::string, std::string, std::string>;
/// Wanted endpoints in the order in which slices are filled.
using Wanted = std::map<EndpointId, api::SliceEndpoint>;

constexpr std::array<std::string_view, 3> kOwnLabels{kServiceNameLabel, kManagedByLabel, kHeadlessLabel};

EndpointId id_of(const api::SliceEndpoint& endpoint) {
  std::vector<std::string> addresses = endpoint.addresses;
  std::ranges::sort(addresses);
  const api::ObjectReference target = endpoint.target.value_or(api::ObjectReference{});
  return {std::move(addresses), endpoint.hostname.value_or(std::string{}), target.ns, target.name};
}

bool same_target(std::optional<api::ObjectReference> a, std::optional<api::ObjectReference> b) {
  for (auto* target : {&a, &b}) {
    if (*target) (*target)->resource_version.clear();
  }
  return a == b;
}

/// True if two states of the same endpoint do not need a write of the slice. The zone does not count: upstream compares
/// it with itself.
bool shows_the_same(const api::SliceEndpoint& a, const api::SliceEndpoint& b) {
  return a.node_name == b.node_name && a.ready == b.ready && a.serving == b.serving && a.terminating == b.terminating &&
         same_target(a.target, b.target);
}

api::SliceEndpoint endpoint_of(const api::Pod& pod, const api::Service& service, const api::Node* node, Family family) {
  api::SliceEndpoint endpoint;
  endpoint.addresses = addresses_of(pod, family);
  const bool serving = workloads::is_ready(pod);
  endpoint.ready = service.publish_not_ready || (serving && !is_terminating(pod));
  endpoint.serving = serving;
  endpoint.terminating = is_terminating(pod);
  endpoint.target = {.kind = "Pod", .ns = pod.metadata.ns, .name = pod.metadata.name, .uid = pod.metadata.uid};
  if (!pod.spec.node_name.empty()) endpoint.node_name = pod.spec.node_name;
  if (node != nullptr) {
    const auto zone = node->metadata.labels.find("topology.kubernetes.io/zone");
    if (zone != node->metadata.labels.end() && !zone->second.empty()) endpoint.zone = zone->second;
  }
  endpoint.hostname = hostname_of(pod, service);
  return endpoint;
}

Ports ports_of(const api::Pod& pod, const api::Service& service) {
  Ports ports;
  for (const api::ServicePort& port : service.ports) {
    if (const auto number = target_port(port, pod)) {
      ports.push_back(
          {.name = port.name, .protocol = port.protocol, .port = *number, .app_protocol = port.app_protocol});
    }
  }
  sort_by_digest(ports);
  return ports;
}

/// Removes the labels that name the slice's Service and its controller.
api::StringMap labels_of_service(api::StringMap labels) {
  for (const std::string_view key : kOwnLabels) {
    if (const auto found = labels.find(key); found != labels.end()) labels.erase(found);
  }
  return labels;
}

bool is_owned_by(const api::EndpointSlice& slice, const api::Service& service) {
  const api::OwnerReference* owner = api::controller_of(slice.metadata);
  return owner != nullptr && owner->uid == service.metadata.uid && api::kind_of(*owner) == api::kind_of<api::Service>();
}

/// Plans the slices of one address family.
class FamilyPlan {
 public:
  FamilyPlan(const SliceView& view, Family family, SlicePlan& out)
      : view_(view), family_(family), labels_(slice_labels(view.service)), out_(out) {}

  void run(std::span<const SlicePtr> slices) {
    sort_in(slices);
    want_pods();
    for (auto& [ports, wanted] : wanted_) fill(existing_[ports], wanted, ports);
    for (const auto& [ports, existing] : existing_) {
      if (!wanted_.contains(ports)) deleted_.insert(deleted_.end(), existing.begin(), existing.end());
    }
    if (slices.size() == deleted_.size() && created_.empty()) keep_placeholder();
    give_hints();
    replace_instead_of_deleting();
    hand_over();
  }

 private:
  void sort_in(std::span<const SlicePtr> slices) {
    for (const SlicePtr& slice : slices) {
      if (!is_owned_by(*slice, view_.service)) {
        deleted_.push_back(slice);
        continue;
      }
      Ports ports = slice->ports;
      sort_by_digest(ports);
      existing_[std::move(ports)].push_back(slice);
    }
  }

  void want_pods() {
    for (const PodPtr& pod : view_.pods) {
      if (!belongs_to_endpoints(*pod, true)) continue;
      Wanted& wanted = wanted_[ports_of(*pod, view_.service)];
      const api::Node* node = view_.node(pod->spec.node_name);
      if (node == nullptr && !view_.service.publish_not_ready) {
        out_.missing_nodes.push_back(pod->spec.node_name);
        continue;
      }
      api::SliceEndpoint endpoint = endpoint_of(*pod, view_.service, node, family_);
      if (!endpoint.addresses.empty()) wanted[id_of(endpoint)] = std::move(endpoint);
    }
  }

  /// Fills slices with these ports, until each wanted endpoint is in one.
  void fill(const std::vector<SlicePtr>& existing, Wanted& wanted, const Ports& ports) {
    std::vector<SlicePtr> unchanged;
    Slices changed;
    for (const SlicePtr& slice : existing) sort_out(slice, wanted, unchanged, changed);
    std::ranges::stable_sort(changed, std::greater{}, [](const auto& slice) { return slice.endpoints.size(); });
    for (api::EndpointSlice& slice : changed) pour(wanted, slice);
    while (!wanted.empty()) {
      if (const SlicePtr target = fullest_with_room(unchanged, wanted.size())) {
        std::erase(unchanged, target);
        pour(wanted, changed.emplace_back(*target));
      } else {
        pour(wanted, created_.emplace_back(new_slice(ports)));
      }
    }
    for (api::EndpointSlice& slice : changed) {
      slice.ports = ports;  // ports in the order of the Service
      updated_.push_back(std::move(slice));
    }
    unchanged_.insert(unchanged_.end(), unchanged.begin(), unchanged.end());
  }

  /// Takes from `wanted` the endpoints that this slice holds already, and files the slice: kept as it is, updated
  /// without those no longer wanted, or deleted because none is left.
  void sort_out(const SlicePtr& slice, Wanted& wanted, std::vector<SlicePtr>& unchanged, Slices& changed) {
    std::vector<api::SliceEndpoint> kept;
    bool differs = false;
    for (const api::SliceEndpoint& endpoint : slice->endpoints) {
      const auto found = wanted.find(id_of(endpoint));
      if (found == wanted.end()) continue;
      differs = differs || !shows_the_same(found->second, endpoint);
      kept.push_back(std::move(found->second));
      wanted.erase(found);
    }
    const bool relabelled = labels_of_service(slice->metadata.labels) != labels_of_service(labels_);
    const bool rewritten = differs || kept.size() != slice->endpoints.size();
    if (rewritten && kept.empty()) return deleted_.push_back(slice);
    if (!rewritten && !relabelled) return unchanged.push_back(slice);
    api::EndpointSlice& next = changed.emplace_back(*slice);
    if (rewritten) next.endpoints = std::move(kept);
    next.metadata.labels = labels_;
  }

  void pour(Wanted& wanted, api::EndpointSlice& slice) const {
    while (!wanted.empty() && slice.endpoints.size() < view_.per_slice) {
      slice.endpoints.push_back(std::move(wanted.begin()->second));
      wanted.erase(wanted.begin());
    }
  }

  SlicePtr fullest_with_room(const std::vector<SlicePtr>& slices, std::size_t count) const {
    SlicePtr best;
    if (count >= view_.per_slice) return best;
    for (const SlicePtr& slice : slices) {
      const std::size_t size = slice->endpoints.size();
      if (size + count <= view_.per_slice && (!best || size > best->endpoints.size())) best = slice;
    }
    return best;
  }

  api::EndpointSlice new_slice(const Ports& ports) const {
    const api::ObjectMeta& service = view_.service.metadata;
    api::EndpointSlice slice;
    slice.metadata.generate_name = service.name + "-";
    slice.metadata.ns = service.ns;
    slice.metadata.labels = labels_;
    slice.metadata.owner_references = {{.api_version = std::string(api::Service::kApiVersion),
                                        .kind = std::string(api::Service::kKind),
                                        .name = service.name,
                                        .uid = service.uid,
                                        .controller = true,
                                        .block_owner_deletion = true}};
    slice.address_type = to_string(family_);
    slice.ports = ports;
    return slice;
  }

  /// A Service without endpoints has one empty slice: it shows that the controller has processed the Service.
  void keep_placeholder() {
    api::EndpointSlice placeholder = new_slice({});
    const bool is_there = deleted_.size() == 1 && deleted_.front()->endpoints.empty() &&
                          deleted_.front()->ports.empty() && deleted_.front()->metadata.labels == labels_;
    if (is_there) return deleted_.clear();
    created_.push_back(std::move(placeholder));
  }

  void give_hints() {
    const HintedSlices slices{created_, updated_, unchanged_};
    switch (hint_mode(view_.service)) {
      case HintMode::kNone:
        return remove_hints(slices);
      case HintMode::kSameZone:
        return hint_at_own_zone(slices);
      case HintMode::kSameNode:
        return hint_at_own_node(slices);
      case HintMode::kByCapacity:
        out_.hints[family_] = hint_by_capacity(slices, view_.zones);
    }
  }

  /// Merges a deletion and a creation into one update.
  void replace_instead_of_deleting() {
    for (auto old = deleted_.begin(); old != deleted_.end() && !created_.empty();) {
      if (!is_owned_by(**old, view_.service)) {
        ++old;
        continue;
      }
      api::EndpointSlice next = std::move(created_.back());
      created_.pop_back();
      next.metadata.name = (*old)->metadata.name;
      updated_.push_back(std::move(next));
      old = deleted_.erase(old);
    }
  }

  void hand_over() {
    // the Service is being deleted, and its dependents with it
    const bool goes = view_.service.metadata.deletion_timestamp.has_value();
    if (goes) created_.clear();
    for (Slices* slices : {&created_, &updated_}) {
      for (api::EndpointSlice& slice : *slices) stamp(slice);
    }
    std::ranges::move(created_, std::back_inserter(out_.created));
    std::ranges::move(updated_, std::back_inserter(out_.updated));
    std::ranges::move(deleted_, std::back_inserter(out_.deleted));
  }

  void stamp(api::EndpointSlice& slice) const {
    slice.metadata.annotations.erase(std::string(kTriggerTime));
    if (view_.trigger_time) {
      slice.metadata.annotations.emplace(kTriggerTime, api::format_time(*view_.trigger_time));
    }
  }

  const SliceView& view_;
  Family family_;
  api::StringMap labels_;
  SlicePlan& out_;
  std::map<Ports, std::vector<SlicePtr>> existing_;
  std::map<Ports, Wanted> wanted_;
  Slices created_;
  Slices updated_;
  std::vector<SlicePtr> unchanged_;
  std::vector<SlicePtr> deleted_;
};

}  // namespace

std::vector<Family> families_of(const api::Service& service) {
  std::vector<Family> families;
  for (const Family family : {Family::kIpv4, Family::kIpv6}) {
    if (std::ranges::find(service.ip_families, to_string(family)) != service.ip_families.end()) {
      families.push_back(family);
    }
  }
  if (!families.empty()) return families;
  if (!is_headless(service)) return {family_of(service.cluster_ip)};
  return {Family::kIpv4, Family::kIpv6};
}

api::StringMap slice_labels(const api::Service& service) {
  api::StringMap labels = labels_of_service(service.metadata.labels);
  if (is_headless(service)) labels.emplace(kHeadlessLabel, "");
  labels.emplace(kServiceNameLabel, service.metadata.name);
  labels.emplace(kManagedByLabel, kSliceController);
  return labels;
}

SlicePlan plan_slices(const SliceView& view) {
  SlicePlan plan;
  std::map<std::string_view, std::vector<SlicePtr>> by_type;
  for (const SlicePtr& slice : view.slices) by_type[slice->address_type].push_back(slice);
  for (const Family family : families_of(view.service)) {
    const auto slices = by_type.extract(to_string(family));
    FamilyPlan(view, family, plan).run(slices.empty() ? std::vector<SlicePtr>{} : slices.mapped());
  }
  for (const auto& [type, slices] : by_type) plan.deleted.insert(plan.deleted.end(), slices.begin(), slices.end());
  std::ranges::sort(plan.missing_nodes);
  const auto repeated = std::ranges::unique(plan.missing_nodes);
  plan.missing_nodes.erase(repeated.begin(), repeated.end());
  return plan;
}

}  // namespace spillway::endpoints
