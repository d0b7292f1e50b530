// The thread on which the volumes of all pods are made, opened and removed: their file systems may hang. It has a mount
// namespace of its own unless others mount them. Thread: loop; answers are delivered there. Bounds: 10,000 jobs that
// wait.
#pragma once

#include "agent/contract/ports.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "host/kernel/blocking_thread.h"
#include "host/volumes/volume_set.h"
#include "runtime/loop.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace spillway::host {

class VolumeThread {
 public:
  /// kMachine: mounts are visible to other programs, which mount them into containers.
  enum class Namespace { kOwn, kMachine };

  explicit VolumeThread(runtime::Loop& loop, Namespace mounts_in = Namespace::kOwn);

  /// Enters the namespace of an earlier process's thread; called first of all. `done` gets the paths of the mount
  /// points there.
  bool enter(UniqueFd found, std::function<void(Result<std::vector<std::string>>)> done);

  /// The namespace, once something has been done in it; -1: none, or the machine's. Borrowed.
  int mounts() const { return *home_; }

  /// The mounts that one container needs.
  struct Mounts {
    std::string container;
    std::vector<agent::VolumeBinding> volumes;  // volumes in the order of their mounts
    std::vector<agent::ManagedFile> files;
    std::string folder;          // directory that receives the files
    std::uint32_t first_id = 0;  // the machine's id that is the pod's 0
  };

  /// False: too much waits; `done` is not called then. `done` gets one failure per volume that could not be made.
  bool set_up(std::shared_ptr<VolumeSet> volumes, agent::SetUpVolumes command, WallTime at,
              std::function<void(agent::VolumesSetUp)> done);
  /// Opens all mounts of a container, or returns the first error.
  bool open(std::shared_ptr<VolumeSet> volumes, Mounts wanted,
            std::function<void(Result<std::vector<OpenedMount>>)> done);
  /// Opens the mounts for other programs to mount. Files are written to `folder` by their names.
  bool place(std::shared_ptr<VolumeSet> volumes, Mounts wanted,
             std::function<void(Result<std::vector<PlacedMount>>)> done);
  /// Reads a file of a volume. `volumes` may be null: the pod is not there. `done` is always called, at once if nothing
  /// can be read.
  void read(const std::shared_ptr<VolumeSet>& volumes, const agent::ReadVolumeFile& command,
            const std::function<void(agent::VolumeFileRead)>& done);
  /// Unmounts everything, after all jobs requested before.
  bool release(std::shared_ptr<VolumeSet> volumes, std::function<void()> done);

 private:
  using Home = std::shared_ptr<std::atomic<int>>;

  static Outcome enter_own(Namespace mounts_in, const Home& home);

  Namespace mounts_in_;
  Home home_ = {new std::atomic<int>(-1), [](std::atomic<int>* fd) {
                  UniqueFd(fd->load()).reset();
                  delete fd;
                }};
  BlockingThread thread_;
};

}  // namespace spillway::host
