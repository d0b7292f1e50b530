// The volumes of one pod on this machine: directories below its own, and file systems in memory that only the thread's
// mount namespace knows, so that nothing of them outlives the process. What a container gets of them is a mount of its
// own, opened without following a link out of the volume.
// Thread: one at a time, which has entered a mount namespace of its own (VolumeSet::enter_namespace) and on which all
// calls are made; may wait for file systems. Source: spec "Pod lifecycle", 6.10, 7; mount_namespaces(7), open_tree(2).
#pragma once

#include "agent/contract/volume_ports.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace spillway::host {

struct VolumeSetOptions {
  std::string directory;            // of the pod's volumes, on disk
  std::uint32_t first_id = 0;       // of ours; the pod's 0
  std::vector<std::string> hidden;  // files and directories of the machine that no pod gets
};

/// What a container mounts: detached, with its attributes.
struct OpenedMount {
  UniqueFd mount;
  bool is_directory = false;
  std::string path;  // in the container
};

class VolumeSet {
 public:
  explicit VolumeSet(VolumeSetOptions options) : options_(std::move(options)) {}

  /// Takes what is mounted away.
  ~VolumeSet();
  VolumeSet(const VolumeSet&) = delete;
  VolumeSet& operator=(const VolumeSet&) = delete;

  /// Once, by the thread. What is mounted on the machine later is seen there too; what is mounted there is seen by
  /// nobody else.
  static Outcome enter_namespace();

  Outcome set_up(const agent::VolumeSetup& setup, WallTime at);
  /// Errors are upstream's where a container cannot be made for them.
  Result<OpenedMount> open(const agent::VolumeBinding& binding, const std::string& container);

 private:
  struct Volume {
    agent::VolumeSetup setup;
    std::string directory;  // empty: a path of the machine
    UniqueFd root;          // O_PATH
    bool mounted = false;
  };

  Outcome make_directory(Volume& volume, bool in_memory, std::optional<Bytes> size);
  Outcome give_to_pod(const Volume& volume) const;

  VolumeSetOptions options_;
  std::map<std::string, Volume> volumes_;
};

}  // namespace spillway::host
