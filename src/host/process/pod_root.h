// The file system of a confined pod: a tree of read-only mounts of this machine's programs, libraries and settings, and
// nothing else. Made for each pod. Thread: loop. Waits for some dozens of system calls of a process that is made for
// it. Source: mount_namespaces(7), pivot_root(2); Filesystem Hierarchy Standard 3.0.
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/kernel/mount_steps.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

/// The path of a pod's own directory, which is home, working directory and /tmp at once.
inline constexpr std::string_view kPodHome = "/tmp";

/// The folder in which a pod finds the program of its node, whatever its name and place on the machine.
inline constexpr std::string_view kProgramFolder = "/run/spillway/bin";

struct PodRootOptions {
  std::string scratch;              // an existing directory below which nothing is shown
  std::string program;              // file visible at its own path and as "spillway" in kProgramFolder
  std::vector<std::string> hidden;  // files and directories that are never shown, wherever they are
};

class PodRoot {
 public:
  /// Errors name the namespace or mount that cannot be made.
  static Result<PodRoot> create(const PodRootOptions& options);

  /// A mount namespace, borrowed.
  int mounts() const { return mounts_.get(); }

 private:
  explicit PodRoot(UniqueFd mounts) : mounts_(std::move(mounts)) {}

  UniqueFd mounts_;
};

/// The path in a pod's view without the links that the view has of this machine, and without dots. Reads this machine's
/// files.
std::string path_in_view(std::string_view path);

/// Steps that make mount points at each of these paths (of path_in_view()) where the view shows a directory of this
/// machine without that entry: the directory is then shown entry by entry, in a new directory that has it. The mounts
/// are made between the first list and the second. Reads this machine's files.
struct RoomSteps {
  std::vector<MountStep> before;
  std::vector<MountStep> after;
};

RoomSteps room_steps(const std::vector<std::string>& paths);

/// The steps that build the tree below `options.scratch`. Reads this machine's files.
std::vector<MountStep> pod_root_steps(const PodRootOptions& options);

/// Path of this process's program. Empty: unknown, or replaced.
std::string own_program();

}  // namespace spillway::host
