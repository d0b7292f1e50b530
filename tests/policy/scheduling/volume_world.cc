#include "policy/scheduling/volume_world.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::scheduling {

namespace {

template <typename Map>
auto found_in(const Map& map, const std::string& name) -> typename Map::mapped_type {
  const auto found = map.find(name);
  return found == map.end() ? nullptr : found->second;
}

}  // namespace

void VolumeWorld::add_node(const std::string& name, api::StringMap labels, std::vector<api::CsiNode::Driver> with) {
  auto node = std::make_shared<api::Node>();
  node->metadata.name = name;
  node->metadata.labels = std::move(labels);
  node->status.allocatable = {{"pods", api::parse_quantity("110").value()}};
  nodes[name].set_node(node);
  if (with.empty()) return;
  drivers[name] = std::make_shared<api::CsiNode>();
  drivers[name]->drivers = std::move(with);
}

api::PersistentVolumeClaim& VolumeWorld::add_claim(const std::string& name, const std::string& handle,
                                                   const std::string& driver) {
  auto& volume = volumes[handle];
  if (!volume) volume = std::make_shared<api::PersistentVolume>();
  volume->metadata.name = handle;
  volume->csi_driver = driver;
  volume->csi_handle = handle;
  auto& claim = claims[name];
  claim = std::make_shared<api::PersistentVolumeClaim>();
  claim->metadata = {.name = name, .ns = "shop", .uid = name};
  claim->metadata.annotations[std::string(api::kClaimBindCompleted)] = "yes";
  claim->volume_name = handle;
  claim->status.phase = "Bound";
  return *claim;
}

void VolumeWorld::attach(const std::string& node, const std::string& handle, const std::string& driver) {
  auto attachment = std::make_shared<api::VolumeAttachment>();
  attachment->node_name = node;
  attachment->attacher = driver;
  attachment->volume_name = handle;
  attachments.push_back(std::move(attachment));
}

void VolumeWorld::run(const std::string& node, const api::Pod& pod) {
  nodes.at(node).add(pod);
}

VolumeView VolumeWorld::view() const {
  const auto claim = [this](const std::string& ns, const std::string& name) {
    return ns == "shop" ? found_in(claims, name) : nullptr;
  };
  const auto attached = [this](const std::string& node) {
    std::vector<std::shared_ptr<const api::VolumeAttachment>> list;
    for (const auto& attachment : attachments) {
      if (attachment->node_name == node) list.push_back(attachment);
    }
    return list;
  };
  return {
      .storage = {.claim = claim,
                  .volume = [this](const std::string& name) { return found_in(volumes, name); },
                  .storage_class = [this](const std::string& name) { return found_in(classes, name); },
                  .volumes_for = [](const api::PersistentVolumeClaim&) { return std::vector<storage::VolumePtr>(); }},
      .nodes = nodes,
      .taken = taken,
      .csi_node = [this](const std::string& node) { return found_in(drivers, node); },
      .attachments = attached};
}

std::vector<std::string> VolumeWorld::refusals(const api::Pod& pod, FilterSet left_out) const {
  const PodVolumes asked(pod, view());
  if (!asked.problem().empty()) return {"*: " + asked.problem()};
  std::vector<std::string> said;
  const VolumeFilter filter = asked.filter();
  if (!filter) return said;
  for (const auto& [name, load] : nodes) {
    if (const auto no = filter(load, left_out)) said.push_back(fmt::format("{}: {}", name, no->misfits.front().text));
  }
  return said;
}

api::Pod pod_with_claims(const std::string& name, const std::vector<std::string>& claims) {
  api::Pod pod;
  pod.metadata = {.name = name, .ns = "shop", .uid = name};
  for (const std::string& claim : claims) {
    api::Volume volume{.name = claim, .source = "persistentVolumeClaim"};
    volume.definition = api::Json::object({{"claimName", claim}});
    pod.spec.volumes.push_back(std::move(volume));
  }
  return pod;
}

api::Pod pod_with_volume(const std::string& name, const std::string& volume) {
  api::Pod pod;
  pod.metadata = {.name = name, .ns = "shop", .uid = name};
  const api::Json parsed = api::parse_json(volume).value();
  for (const auto& [type, definition] : *parsed.if_object()) {
    api::Volume each{.name = "disk", .source = std::string(type)};
    each.definition = definition;
    pod.spec.volumes.push_back(std::move(each));
  }
  return pod;
}

}  // namespace spillway::scheduling
