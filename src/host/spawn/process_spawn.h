// Starts one process of a container: inside its cgroup before the first instruction of its program, in a session of its
// own, with nothing inherited but what the plan names. The child reports a failure through a close-on-exec pipe.
// Thread: loop. Never waits for the child; with a supervisor, for one clone more, which that makes.
// Source: clone(2) (CLONE_INTO_CGROUP, CLONE_PIDFD), close_range(2), execveat(2).
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/cgroup/cgroup.h"
#include "host/kernel/pod_namespaces.h"
#include "host/spawn/process_child.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::host {

/// A process between this one and the program, which stays the program's parent when this one ends. It is forked from
/// this process, makes the program's process first, and then becomes `program`.
struct SupervisorPlan {
  int program = -1;
  const CgroupDir* cgroup = nullptr;
  std::vector<std::pair<int, int>> descriptors;  // inherited descriptors: number here, and number there (SupervisorFd)
  // its SupervisorState, to which it writes the number of the program's process
  int state = -1;
};

struct SpawnPlan {
  std::vector<std::string> argv;         // not empty
  std::vector<std::string> environment;  // "NAME=value"; its PATH is searched for argv[0]
  std::string working_dir;
  std::int32_t oom_score_adj = 0;
  const CgroupDir* cgroup = nullptr;
  int stdin_fd = -1;  // nothing to read
  int stdout_fd = -1;
  int stderr_fd = -1;
  bool terminal = false;                      // stdin_fd is a terminal, which becomes the session's controlling one
  const PodNamespaces* namespaces = nullptr;  // namespaces to enter; null: this process's
  /// Written before the program runs: names with dots between their parts, and values.
  std::vector<std::pair<std::string, std::string>> sysctls;
  /// The soft limit of open files that the program starts with; absent: ours.
  std::optional<std::uint64_t> open_files_max;
  /// The pid namespace of a container that the program enters; -1: it gets its own.
  int shared_pids = -1;
  /// Needs `namespaces` with a view.
  std::optional<Confinement> confinement;
  /// Settings of the supervisor; nullopt: the program is our own child.
  std::optional<SupervisorPlan> supervisor = {};
};

struct SpawnedProcess {
  pid_t pid = 0;
  UniqueFd pidfd;
  UniqueFd status;       // readable once the program runs (end of file) or has failed to start (a report)
  pid_t supervisor = 0;  // our child, the parent of the program; 0: there is none
  UniqueFd supervisor_pidfd;
};

/// Errors: no process could be made. All later errors are reported by `status`.
Result<SpawnedProcess> spawn(const SpawnPlan& plan);

/// Reads `status`: nullopt while it is empty. A value without text: the program runs.
struct StartReport {
  std::string failure;  // an error in one line, e.g. exec: "foo": executable file not found in $PATH
  std::string reason;   // "RunContainerError"; "CreateContainerError" if the preparation failed
};

std::optional<StartReport> read_start_report(const SpawnPlan& plan, int status_fd);

/// Executes a start up to the program: `plan` names none that exists. Waits for it. The error names what failed.
Outcome try_out(SpawnPlan plan);

/// "net.ipv4.conf.eth0/100.rp_filter" is /proc/sys/net/ipv4/conf/eth0.100/rp_filter. kInvalid: a part is empty, "." or
/// "..".
Result<std::string> sysctl_path(std::string_view name);

/// Raises this process's soft limit of open files to the hard limit: every container takes some fifteen. Returns the
/// limit before the first call, for started programs; absent if it cannot be read.
std::optional<std::uint64_t> raise_open_files();

/// The candidates for a program's path: argv[0] (which must exist) itself if it has a slash, else in each directory of
/// PATH.
std::vector<std::string> program_candidates(std::span<const std::string> argv,
                                            std::span<const std::string> environment);

}  // namespace spillway::host
