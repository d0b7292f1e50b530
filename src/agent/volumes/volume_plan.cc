#include "agent/volumes/volume_plan.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace spillway::agent {
namespace {

constexpr std::string_view kMemory = "Memory";

/// Upstream's name for the plug-in of a source.
std::string_view plugin_of(std::string_view source) {
  if (source == "emptyDir") return "empty-dir";
  if (source == "hostPath") return "host-path";
  if (source == "configMap") return "configmap";
  if (source == "downwardAPI") return "downward-api";
  return source;  // secret, projected
}

}  // namespace

std::vector<const api::Volume*> mounted_volumes(const api::Pod& pod) {
  std::set<std::string_view> names;
  for (const auto* list : {&pod.spec.init_containers, &pod.spec.containers, &pod.spec.ephemeral_containers}) {
    for (const api::Container& container : *list)
      for (const api::VolumeMount& mount : container.volume_mounts) names.insert(mount.name);
  }
  std::vector<const api::Volume*> found;
  for (const api::Volume& volume : pod.spec.volumes)
    if (names.contains(volume.name)) found.push_back(&volume);
  return found;
}

bool is_always_read_only(const api::Volume& volume) {
  if (volume.source != "persistentVolumeClaim") return has_payload(volume);
  const api::Json* read_only = volume.definition.find("readOnly");
  return read_only != nullptr && read_only->if_bool().value_or(false);
}

std::optional<Bytes> memory_directory_size(const api::EmptyDirVolume& volume, std::optional<Bytes> pod_memory_limit,
                                           std::optional<Bytes> allocatable) {
  std::optional<Bytes> size;
  const std::optional<Bytes> wanted = volume.size_limit ? std::optional(volume.size_limit->bytes()) : std::nullopt;
  for (const std::optional<Bytes>& each : {allocatable, pod_memory_limit, wanted})
    if (each && *each > Bytes{} && (!size || *each < *size)) size = each;
  return size;
}

Result<VolumeSetup> setup_of(const api::Pod& pod, const api::Volume& volume, const VolumeFacts& facts) {
  VolumeSetup setup{
      .name = volume.name, .plugin = std::string(plugin_of(volume.source)), .content = {}, .fs_group = {}};
  if (pod.spec.security.fs_group) setup.fs_group = static_cast<std::uint32_t>(*pod.spec.security.fs_group);
  if (has_payload(volume)) {
    setup.content = VolumeFiles{.files = {}, .in_memory = volume.source != "configMap"};
  } else if (volume.source == "emptyDir" || volume.source.empty()) {
    const api::EmptyDirVolume directory = volume.empty_dir.value_or(api::EmptyDirVolume());
    if (!directory.medium.empty() && directory.medium != kMemory)
      return invalid({}, "the process runtime has no emptyDir of medium \"{}\"", directory.medium);
    EmptyDirectory made{.in_memory = directory.medium == kMemory, .size = {}};
    if (made.in_memory) made.size = memory_directory_size(directory, facts.pod_memory_limit, facts.allocatable_memory);
    setup.plugin = plugin_of("emptyDir");
    setup.content = made;
  } else if (volume.source == "hostPath") {
    setup.fs_group.reset();
    setup.content = HostPath{.path = std::string(volume.definition.string_at({"path"})),
                             .type = std::string(volume.definition.string_at({"type"}))};
  } else {
    return invalid({}, "the process runtime has no volumes of type {}", volume.source);
  }
  return setup;
}

}  // namespace spillway::agent
