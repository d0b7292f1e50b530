// The thread on which the volumes of all pods are made, opened and taken away: their file systems may hang. It has a
// mount namespace of its own. Thread: loop; answers come there. Bounds: 10,000 jobs that wait.
#pragma once

#include "agent/contract/ports.h"
#include "base/error.h"
#include "base/time.h"
#include "host/kernel/blocking_thread.h"
#include "host/volumes/volume_set.h"
#include "runtime/loop.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace spillway::host {

class VolumeThread {
 public:
  explicit VolumeThread(runtime::Loop& loop);

  /// What one container mounts.
  struct Mounts {
    std::string container;
    std::vector<agent::VolumeBinding> volumes;  // in this order
    std::vector<agent::ManagedFile> files;
    std::string folder;          // for the files
    std::uint32_t first_id = 0;  // of ours; the pod's 0
  };

  /// False: too much waits; `done` is not called then. `done` gets one failure per volume that could not be made.
  bool set_up(std::shared_ptr<VolumeSet> volumes, agent::SetUpVolumes command, WallTime at,
              std::function<void(agent::VolumesSetUp)> done);
  /// The same. Opens all, or tells the first error.
  bool open(std::shared_ptr<VolumeSet> volumes, Mounts wanted,
            std::function<void(Result<std::vector<OpenedMount>>)> done);
  /// The same. What is mounted goes, after everything that was asked for before.
  bool release(std::shared_ptr<VolumeSet> volumes, std::function<void()> done);

 private:
  BlockingThread thread_;
};

}  // namespace spillway::host
