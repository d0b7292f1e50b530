#include "controllers/nodes/node_ipam.h"

#include "controllers/shared/paths.h"
#include "policy/addresses/ip_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::controllers {

namespace {

constexpr std::size_t kCallsMax = 30;  // upstream's workers: fewer make a cluster's start slow, more crowd out others
constexpr int kTriesBeforeEvent = 3;   // as often as upstream writes before its event

api::Json ranges_patch(const api::Node& node, const std::vector<api::IpRange>& blocks) {
  api::Json ranges = api::Json::array();
  for (const api::IpRange& each : blocks) ranges.if_array()->emplace_back(addresses::to_text(each));
  const api::Json first = ranges.if_array()->front();
  return api::Json::object({{"metadata", api::Json::object({{"uid", node.metadata.uid}})},
                            {"spec", api::Json::object({{"podCIDR", first}, {"podCIDRs", std::move(ranges)}})}});
}

std::string status_text(const api::Node& node, std::string_view reason) {
  return fmt::format("Node {} status is now: {}", node.metadata.name, reason);
}

}  // namespace

NodeIpam::NodeIpam(Shared shared, addresses::NodeRanges ranges) : shared_(shared), ranges_(std::move(ranges)) {
  for (addresses::CidrSet& cluster : ranges_.clusters) {
    for (const api::IpRange& service : ranges_.services) {
      ignored(cluster.occupy(service), "a range of Services outside the node ranges uses none of the blocks");
    }
  }
  shared_.nodes.cache().listen({[this](const NodePtr& before, const NodePtr& after, Now now) {
    if (started_) on_node(before, after, now);
  }});
}

void NodeIpam::start(Now now) {
  started_ = true;
  for (const addresses::CidrSet& cluster : ranges_.clusters) {
    shared_.log.info("nodes get their pod addresses from a range",
                     {{"range", addresses::to_text(cluster.cluster())}, {"blocks", cluster.blocks_max()}});
  }
  // First the blocks that nodes have, then the missing ones: no block is given twice.
  for (const auto& [name, node] : shared_.nodes.cache().all()) {
    if (!node->spec.pod_cidrs.empty()) occupy(*node);
  }
  for (const auto& [name, node] : shared_.nodes.cache().all()) {
    if (node->spec.pod_cidrs.empty()) queue_.add(name, now.mono);
  }
}

bool NodeIpam::occupy(const api::Node& node) {
  Blocks shown;
  bool whole = true;
  for (const std::string& text : node.spec.pod_cidrs) {
    const auto range = api::parse_ip_range(text);
    Outcome taken = invalid("spec.podCIDRs", "\"{}\" is not a range of addresses", text);
    const auto set = std::ranges::find_if(ranges_.clusters, [&range](const addresses::CidrSet& each) {
      return range && each.cluster().first.v4 == range->first.v4;
    });
    if (range && set != ranges_.clusters.end()) taken = set->occupy(*range);
    if (range && set == ranges_.clusters.end()) {
      taken = invalid("spec.podCIDRs", "no range of --cluster-cidr is of the family of {}", text);
    }
    if (taken) {
      shown.push_back(*range);
      continue;
    }
    whole = false;
    shared_.log.warning("pod addresses of a node lie outside the ranges of this cluster",
                        {{"node", node.metadata.name}, {"pod_cidr", text}, {"error", taken.error().text()}});
  }
  blocks_.insert_or_assign(node.metadata.uid, std::move(shown));
  return whole;
}

void NodeIpam::on_node(const NodePtr& before, const NodePtr& after, Now now) {
  if (before && (!after || after->metadata.uid != before->metadata.uid)) release(before->metadata.uid, now);
  if (!after) {
    queue_.remove(before->metadata.name);
    unserved_.erase(before->metadata.name);
    return;
  }
  if (after->spec.pod_cidrs.empty()) {
    if (!blocks_.contains(after->metadata.uid)) queue_.add(after->metadata.name, now.mono);
    return;
  }
  const bool same = before && before->metadata.uid == after->metadata.uid &&
                    before->spec.pod_cidrs == after->spec.pod_cidrs && blocks_.contains(after->metadata.uid);
  if (same) return;
  // Frees the blocks chosen here, unless the node shows them: another writer may have been first.
  const auto chosen = blocks_.extract(after->metadata.uid);
  for (const api::IpRange& each : chosen ? chosen.mapped() : Blocks()) {
    for (addresses::CidrSet& cluster : ranges_.clusters) ignored(cluster.release(each), "of the other family");
  }
  occupy(*after);
  queue_.remove(after->metadata.name);
  unserved_.erase(after->metadata.name);
}

void NodeIpam::release(const std::string& uid, Now now) {
  const auto blocks = blocks_.extract(uid);
  if (!blocks || blocks.mapped().empty()) return;
  for (const api::IpRange& each : blocks.mapped()) {
    for (addresses::CidrSet& cluster : ranges_.clusters) ignored(cluster.release(each), "of the other family");
  }
  for (const std::string& name : std::exchange(unserved_, {})) queue_.add(name, now.mono);
}

/// One block of each range, or none at all.
bool NodeIpam::assign(const api::Node& node) {
  Blocks blocks;
  for (addresses::CidrSet& cluster : ranges_.clusters) {
    const Result<api::IpRange> block = cluster.allocate();
    if (block) {
      blocks.push_back(*block);
      continue;
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) ignored(ranges_.clusters[i].release(blocks[i]), "it is its own");
    return false;
  }
  blocks_.insert_or_assign(node.metadata.uid, std::move(blocks));
  return true;
}

void NodeIpam::run(Now now) {
  if (!started_) return;
  while (calls_ < kCallsMax) {
    const std::optional<std::string> name = queue_.take(now.mono);
    if (!name) break;
    sync(*name, now);
  }
  arm();
}

void NodeIpam::arm() {
  wake_up_.set(shared_.client, calls_ < kCallsMax ? queue_.next_due() : std::nullopt);
}

void NodeIpam::sync(const std::string& name, Now now) {
  const NodePtr node = shared_.nodes.cache().find(name);
  const bool wants = node && node->spec.pod_cidrs.empty() && !node->metadata.deletion_timestamp;
  if (!wants) {
    queue_.done(name);
    return queue_.forget(name);
  }
  if (!blocks_.contains(node->metadata.uid) && !assign(*node)) {
    shared_.events.record(client::reference_to(*node), client::EventType::kNormal, "CIDRNotAvailable",
                          status_text(*node, "CIDRNotAvailable"), now);
    unserved_.insert(name);
    queue_.done(name);
    queue_.retry(name, now.mono);
    return;
  }
  write(node, now);
}

void NodeIpam::write(const NodePtr& node, Now /*now*/) {
  ++calls_;
  shared_.client.patch(node_path(node->metadata.name), client::PatchType::kMerge,
                       ranges_patch(*node, blocks_.at(node->metadata.uid)),
                       [this, node](const Result<api::Json>& outcome, Now now) { on_written(node, outcome, now); });
}

void NodeIpam::on_written(const NodePtr& node, const Result<api::Json>& outcome, Now now) {
  --calls_;
  const std::string& name = node->metadata.name;
  queue_.done(name);
  unserved_.erase(name);
  if (outcome) {
    queue_.forget(name);
    shared_.log.info("node has its pod addresses",
                     {{"node", name}, {"pod_cidr", outcome->string_at({"spec", "podCIDR"})}});
    return;
  }
  const ErrorCode code = outcome.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) release(node->metadata.uid, now);
  shared_.log.warning("pod addresses of a node not written", {{"node", name}, {"error", outcome.error().text()}});
  queue_.retry(name, now.mono);
  if (queue_.failures(name) != kTriesBeforeEvent) return;
  shared_.events.record(client::reference_to(*node), client::EventType::kNormal, "CIDRAssignmentFailed",
                        status_text(*node, "CIDRAssignmentFailed"), now);
}

}  // namespace spillway::controllers
