#include "api/object/pod_volumes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::api {

namespace {

bool reads_only(const Json& definition) {
  const Json* flag = definition.find("readOnly");
  return flag != nullptr && flag->if_bool() == true;
}

ExclusiveDisk disk_of(ExclusiveDisk::Kind kind, const Json& definition, std::string_view member) {
  return {kind, std::string(definition.string_at({member})), {}, reads_only(definition)};
}

ExclusiveDisk rbd_of(const Json& definition) {
  ExclusiveDisk disk{ExclusiveDisk::Kind::kRbd,
                     fmt::format("{}/{}", definition.string_at({"pool"}), definition.string_at({"image"})),
                     {},
                     reads_only(definition)};
  const Json* monitors = definition.find("monitors");
  if (monitors != nullptr && monitors->if_array() != nullptr) {
    for (const Json& monitor : *monitors->if_array()) {
      if (monitor.if_string() != nullptr) disk.monitors.push_back(*monitor.if_string());
    }
  }
  return disk;
}

std::optional<ExclusiveDisk> exclusive_disk_of(const Volume& volume) {
  using enum ExclusiveDisk::Kind;
  if (volume.source == "gcePersistentDisk") return disk_of(kGcePersistentDisk, volume.definition, "pdName");
  if (volume.source == "iscsi") return disk_of(kIscsi, volume.definition, "iqn");
  if (volume.source == "rbd") return rbd_of(volume.definition);
  if (volume.source != "awsElasticBlockStore") return std::nullopt;
  ExclusiveDisk disk = disk_of(kAwsElasticBlockStore, volume.definition, "volumeID");
  disk.read_only = false;
  return disk;
}

}  // namespace

std::vector<std::string> claims_of(const Pod& pod) {
  std::vector<std::string> names;
  const auto add = [&names](std::string name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  };
  for (const Volume& volume : pod.spec.volumes) {
    if (volume.source == "persistentVolumeClaim") add(std::string(volume.definition.string_at({"claimName"})));
    if (volume.source == "ephemeral") add(fmt::format("{}-{}", pod.metadata.name, volume.name));
  }
  return names;
}

std::vector<ExclusiveDisk> exclusive_disks_of(const Pod& pod) {
  std::vector<ExclusiveDisk> disks;
  for (const Volume& volume : pod.spec.volumes) {
    if (auto disk = exclusive_disk_of(volume)) disks.push_back(*std::move(disk));
  }
  return disks;
}

bool are_in_conflict(const ExclusiveDisk& one, const ExclusiveDisk& other) {
  if (one.kind != other.kind || one.name != other.name || (one.read_only && other.read_only)) return false;
  return one.kind != ExclusiveDisk::Kind::kRbd ||
         std::ranges::find_first_of(one.monitors, other.monitors) != one.monitors.end();
}

}  // namespace spillway::api
