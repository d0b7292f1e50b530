// Commands about the volumes of pods, which both runtimes carry out alike: they are made and read on the thread of
// volumes, and each command is answered once. Thread: loop. Source: agent/contract/ports.h, SetUpVolumes,
// ReadVolumeFile.
#pragma once

#include "agent/contract/ports.h"
#include "host/reaction/host_events.h"
#include "host/volumes/volume_set.h"
#include "host/volumes/volume_thread.h"
#include "runtime/loop.h"

#include <memory>
#include <set>
#include <string>

namespace spillway::host {

class VolumeCommands {
 public:
  /// All outlive this object.
  VolumeCommands(runtime::Loop& loop, HostEvents& events, VolumeThread& thread)
      : loop_(loop), events_(events), thread_(thread) {}

  /// Makes volumes of a pod. `disk_volumes`: gets the names of those on which its containers may fill the disk.
  void set_up(const agent::SetUpVolumes& command, const std::shared_ptr<VolumeSet>& volumes,
              std::set<std::string>& disk_volumes);
  /// Answers that none of the volumes was made.
  void refuse(const agent::SetUpVolumes& command, const std::string& why);
  /// `volumes`: null if the pod is not there.
  void read(const agent::ReadVolumeFile& command, const std::shared_ptr<VolumeSet>& volumes);

 private:
  runtime::Loop& loop_;
  HostEvents& events_;
  VolumeThread& thread_;
};

}  // namespace spillway::host
