#include "policy/scheduling/pod_volumes.h"

#include "policy/storage/volume_topology.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace spillway::scheduling {

namespace {

constexpr std::string_view kNoDisk = "node(s) had no available disk";
constexpr std::string_view kUsedByAnotherPod =
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";
constexpr std::string_view kTooManyVolumes = "node(s) exceed max volume count";
constexpr std::string_view kOtherZone = "node(s) had no available volume zone";

Refusal volume_refusal(Filter filter, std::string_view text, std::vector<policy::Fact> more = {}) {
  std::vector<policy::Fact> facts{{"volumes", std::string(text)}};
  facts.insert(facts.end(), more.begin(), more.end());
  return {filter, {{policy::Reason{policy::ReasonCode::kNodeSelectorMismatch, std::move(facts)}, std::string(text)}}};
}

std::size_t uses_of(const policy::NodeLoad& node, const std::string& claim) {
  const auto found = node.volumes.claims.find(claim);
  return found == node.volumes.claims.end() ? 0 : found->second;
}

std::int64_t count_of(std::size_t number) {
  return static_cast<std::int64_t>(number);
}

}  // namespace

PodVolumes::PodVolumes(const api::Pod& pod, VolumeView view)
    : view_(std::move(view)),
      ns_(pod.metadata.ns),
      claims_(storage::claims_for(pod, view_.storage)),
      disks_(api::exclusive_disks_of(pod)) {
  if (!claims_.problem.empty()) return;
  for (const std::string& name : claims_.exclusive) {
    std::size_t& uses = exclusive_[policy::claim_key(ns_, name)];
    for (const auto& [node, load] : view_.nodes) uses += uses_of(load, policy::claim_key(ns_, name));
  }
  for (const std::string& name : api::claims_of(pod)) {
    const auto claim = view_.storage.claim(ns_, name);
    if (!claim) continue;
    if (const auto volume = storage::attachable_of(*claim, view_.storage)) {
      wanted_[volume->driver].insert(volume->handle);
    }
  }
}

VolumeFilter PodVolumes::filter() const {
  if (claims_.bound.empty() && claims_.unbound.empty() && disks_.empty()) return {};
  return [this](const policy::NodeLoad& node, FilterSet left_out) { return refuse(node, left_out); };
}

storage::ClaimPlan PodVolumes::plan(const api::ObjectMeta& node) const {
  return storage::plan_claims(claims_, node, view_.taken);
}

std::optional<Refusal> PodVolumes::refuse(const policy::NodeLoad& node, FilterSet left_out) const {
  const auto asks = [left_out](Filter filter) { return !left_out.contains(filter); };
  std::optional<Refusal> no;
  if (asks(Filter::kVolumeRestrictions)) no = check_restrictions(node);
  if (!no && asks(Filter::kNodeVolumeLimits)) no = check_limits(node);
  if (!no && asks(Filter::kVolumeBinding)) {
    const std::string refusal = plan(node.node->metadata).refusal;
    if (!refusal.empty()) no = volume_refusal(Filter::kVolumeBinding, refusal);
  }
  if (!no && asks(Filter::kVolumeZone)) {
    const auto other = std::ranges::find_if(claims_.bound, [&node](const storage::VolumePtr& volume) {
      return !storage::is_in_zone_of(*volume, node.node->metadata);
    });
    if (other != claims_.bound.end()) {
      no = volume_refusal(Filter::kVolumeZone, kOtherZone, {{"volume", (*other)->metadata.name}});
    }
  }
  return no;
}

std::optional<Refusal> PodVolumes::check_restrictions(const policy::NodeLoad& node) const {
  const bool disk_is_used = std::ranges::any_of(disks_, [&node](const api::ExclusiveDisk& disk) {
    return std::ranges::any_of(node.volumes.disks,
                               [&disk](const api::ExclusiveDisk& other) { return api::are_in_conflict(disk, other); });
  });
  if (disk_is_used) return volume_refusal(Filter::kVolumeRestrictions, kNoDisk);
  const auto as_it_is = view_.nodes.find(node.node->metadata.name);
  for (const auto& [claim, uses] : exclusive_) {
    // The load may lack pods that would be removed; pods on other nodes stay.
    const std::size_t here = as_it_is == view_.nodes.end() ? 0 : uses_of(as_it_is->second, claim);
    if (uses - here + uses_of(node, claim) == 0) continue;
    return volume_refusal(Filter::kVolumeRestrictions, kUsedByAnotherPod, {{"claim", claim}});
  }
  return std::nullopt;
}

std::optional<Refusal> PodVolumes::check_limits(const policy::NodeLoad& node) const {
  if (wanted_.empty() || !view_.csi_node) return std::nullopt;
  const auto drivers = view_.csi_node(node.node->metadata.name);
  if (!drivers) return std::nullopt;
  std::optional<std::map<std::string, std::set<std::string>>> used;
  for (const api::CsiNode::Driver& driver : drivers->drivers) {
    const auto wanted = wanted_.find(driver.name);
    if (!driver.volumes_max || wanted == wanted_.end()) continue;
    if (!used) used = in_use(node);
    const std::set<std::string>& there = (*used)[driver.name];
    const auto fresh =
        std::ranges::count_if(wanted->second, [&there](const std::string& volume) { return !there.contains(volume); });
    if (fresh == 0 || count_of(there.size()) + fresh <= *driver.volumes_max) continue;
    return volume_refusal(Filter::kNodeVolumeLimits, kTooManyVolumes,
                          {{"driver", driver.name},
                           {"attached", count_of(there.size())},
                           {"limit", static_cast<std::int64_t>(*driver.volumes_max)}});
  }
  return std::nullopt;
}

std::map<std::string, std::set<std::string>> PodVolumes::in_use(const policy::NodeLoad& node) const {
  std::map<std::string, std::set<std::string>> used;
  for (const auto& [key, pods] : node.volumes.claims) {
    const std::size_t slash = key.find('/');
    const auto claim = view_.storage.claim(key.substr(0, slash), key.substr(slash + 1));
    if (!claim) continue;
    if (const auto volume = storage::attachable_of(*claim, view_.storage)) used[volume->driver].insert(volume->handle);
  }
  if (!view_.attachments) return used;
  for (const auto& attachment : view_.attachments(node.node->metadata.name)) {
    if (attachment->attacher.empty() || attachment->volume_name.empty()) continue;
    const storage::VolumePtr volume = view_.storage.volume(attachment->volume_name);
    if (volume && !volume->csi_handle.empty()) used[attachment->attacher].insert(volume->csi_handle);
  }
  return used;
}

}  // namespace spillway::scheduling
