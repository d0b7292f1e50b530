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

/// Where a pod finds what is its own: its directory, which is home, working directory and /tmp at once.
inline constexpr std::string_view kPodHome = "/tmp";

/// Where a pod finds the program of its node, however that is called and wherever it lies.
inline constexpr std::string_view kProgramFolder = "/run/spillway/bin";

struct PodRootOptions {
  std::string scratch;              // an existing directory below which nothing is shown
  std::string program;              // shown at its own path and as "spillway" in kProgramFolder
  std::vector<std::string> hidden;  // files and directories that are never shown, wherever they are
};

class PodRoot {
 public:
  /// Errors say which namespace or mount cannot be made.
  static Result<PodRoot> create(const PodRootOptions& options);

  /// A mount namespace, borrowed.
  int mounts() const { return mounts_.get(); }

 private:
  explicit PodRoot(UniqueFd mounts) : mounts_(std::move(mounts)) {}

  UniqueFd mounts_;
};

/// The path in a pod's view without the links that the view has of this machine, and without dots. Looks at this
/// machine's files.
std::string path_in_view(std::string_view path);

/// Steps after which something can be mounted at each of these paths (of path_in_view()), although a directory of this
/// machine that has no such place is shown there: it is shown entry by entry, in a directory that has it. Between them
/// and the second list stand the mounts. Looks at this machine's files.
struct RoomSteps {
  std::vector<MountStep> before;
  std::vector<MountStep> after;
};

RoomSteps room_steps(const std::vector<std::string>& paths);

/// How the tree is built below `options.scratch`. Looks at this machine's files.
std::vector<MountStep> pod_root_steps(const PodRootOptions& options);

/// This process's program. Empty: it cannot be told, or has been replaced.
std::string own_program();

}  // namespace spillway::host
