// The volumes of one pod on this machine: directories below its own, and file systems in memory that are mounted only
// in the thread's mount namespace, so that they end with the process. Volumes placed on the machine for another program
// (place()) stay until a process removes them. A container gets a mount of its own, opened without following a link out
// of the volume. Thread: one at a time, which has entered a mount namespace of its own (VolumeSet::enter_namespace) and
// on which all calls are made; may wait for file systems. Source: spec "Pod lifecycle", 6.10, 7; mount_namespaces(7),
// open_tree(2).
#pragma once

#include "agent/contract/volume_ports.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace spillway::host {

struct VolumeSetOptions {
  std::string directory;            // parent of the pod's volumes, on disk
  std::uint32_t first_id = 0;       // the machine's id that is the pod's 0
  std::vector<std::string> hidden;  // files and directories of the machine that no pod gets
  std::string provisioned = {};     // parent of the node's provisioned volumes, which is hidden otherwise; empty: none
  bool kept = false;                // an earlier process may have made the volume or a part of it, which is kept
  std::vector<std::string> mounts;  // the earlier process's mounts, below the directory or beside it
};

/// A volume mount for a container: detached, with its attributes.
struct OpenedMount {
  UniqueFd mount;
  bool is_directory = false;
  std::string path;  // in the container
};

/// A volume mount that another program makes: a path of the machine.
struct PlacedMount {
  std::string host_path;
  agent::VolumeBinding binding;
};

class VolumeSet {
 public:
  explicit VolumeSet(VolumeSetOptions options);

  /// Unmounts the volumes, unless keep() was called.
  ~VolumeSet();
  VolumeSet(const VolumeSet&) = delete;
  VolumeSet& operator=(const VolumeSet&) = delete;

  /// Enters the namespace; call it once, on the thread. Later mounts of the machine are visible there; mounts made
  /// there are invisible elsewhere. `found`: the namespace of an earlier process, to enter instead of a new one; -1:
  /// there is none.
  static Outcome enter_namespace(int found = -1);

  /// Keeps the mounts when this object is destroyed. On any thread.
  void keep() { keep_ = true; }

  Outcome set_up(const agent::VolumeSetup& setup, WallTime at);
  /// Errors are upstream's where a container cannot be made for them.
  Result<OpenedMount> open(const agent::VolumeBinding& binding, const std::string& container);
  /// The content of a regular file of an empty directory, as agent::ReadVolumeFile describes it.
  Result<std::string> read_file(const std::string& volume, const std::string& path) const;
  /// Prepares a mount for another program, on a thread that did not enter a namespace. A part of a volume is bound to a
  /// path of its own, so that no link is followed later.
  Result<PlacedMount> place(const agent::VolumeBinding& binding, const std::string& container);

 private:
  struct Volume {
    agent::VolumeSetup setup;
    std::string directory;  // empty: a path of the machine
    UniqueFd root;          // O_PATH
    bool mounted = false;
  };

  Result<std::string> bind_part(OpenedMount part);
  Outcome make_directory(Volume& volume, bool in_memory, std::optional<Bytes> size);
  /// The name of a provisioned volume of this node that the local directory is; empty: it is none.
  std::string provisioned_name(const agent::LocalDirectory& local) const;
  Result<UniqueFd> open_provisioned_for_pod(const std::string& name) const;
  static bool is_given(const Volume& volume);
  Outcome give_to_pod(const Volume& volume) const;

  VolumeSetOptions options_;
  std::map<std::string, Volume> volumes_;
  std::vector<std::string> parts_;  // the mount points of parts of volumes
  std::size_t next_part_ = 0;
  std::set<std::string> found_;  // mounts of volumes by an earlier process, not taken over yet
  std::atomic<bool> keep_ = false;
};

}  // namespace spillway::host
