#include "host/pods/volume_commands.h"

#include <utility>
#include <variant>

namespace spillway::host {

void VolumeCommands::set_up(const agent::SetUpVolumes& command, const std::shared_ptr<VolumeSet>& volumes,
                            std::set<std::string>& disk_volumes) {
  for (const agent::VolumeSetup& each : command.volumes) {
    const auto* empty = std::get_if<agent::EmptyDirectory>(&each.content);
    if (empty != nullptr && !empty->in_memory) disk_volumes.insert(each.name);
  }
  const bool queued = thread_.set_up(volumes, command, loop_.now().wall, events_.emitter<agent::VolumesSetUp>());
  if (!queued) refuse(command, "too many volumes are being made");
}

void VolumeCommands::refuse(const agent::SetUpVolumes& command, const std::string& why) {
  agent::VolumesSetUp answer{command.uid, command.id, {}};
  for (const agent::VolumeSetup& each : command.volumes) answer.failures.push_back({each.name, why});
  events_.emit(std::move(answer));
}

void VolumeCommands::read(const agent::ReadVolumeFile& command, const std::shared_ptr<VolumeSet>& volumes) {
  thread_.read(volumes, command, events_.emitter<agent::VolumeFileRead>());
}

}  // namespace spillway::host
