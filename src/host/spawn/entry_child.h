// Makes a process inside a running container: in its cgroup and namespaces, with its identity and no more than its
// rights. Two children are made. The first enters everything and drops its rights while no process of the container can
// see it, then makes the second, which is born into the container's pid namespace without any of our rights and cannot
// be traced or dumped until its program runs (its memory is a copy of ours, its descriptors are the three of the
// program). The first then ends; the second is our child, not the container's. Thread: loop. Never waits. Source:
// pid_namespaces(7), ptrace(2) ("access mode checking"), clone(2) (CLONE_PARENT).
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/cgroup/cgroup.h"
#include "host/spawn/process_child.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

struct EntryPlan {
  std::vector<std::string> argv;         // not empty
  std::vector<std::string> environment;  // "NAME=value"
  std::string working_dir;
  std::int32_t oom_score_adj = 0;
  const CgroupDir* cgroup = nullptr;
  std::vector<UniqueFd> namespaces;          // entered in this order, while root
  const Confinement* confinement = nullptr;  // null: no more is taken from it than from any container of its kind
  int users = -1;                            // the pod's user namespace, borrowed; needed with a confinement
  std::optional<std::uint64_t> open_files_max;
};

/// Streams of the program, borrowed until the call returns. Absent ones (-1) are /dev/null.
struct EntryStreams {
  int in = -1;
  int out = -1;
  int err = -1;
  bool terminal = false;  // `in` is a terminal, which becomes the controlling one
};

/// The number of the second child, in a page that the first child shares with this process. The kernel writes it there
/// while it makes the second child, so this process has the number even when the first child was killed before its
/// report. An unknown child would never be reaped, and the first process of its pid namespace, which waits for all
/// others to be reaped, would never end.
class ProgramNumber {
 public:
  ProgramNumber() = default;
  ~ProgramNumber();
  ProgramNumber(ProgramNumber&& other) noexcept;
  ProgramNumber& operator=(ProgramNumber&& other) noexcept;

  /// Errors: of mmap(2).
  static Result<ProgramNumber> create();

  /// The argument of CLONE_PARENT_SETTID.
  pid_t* address() const { return page_; }

  /// 0: no second child was made (yet).
  pid_t read() const;

 private:
  pid_t* page_ = nullptr;
};

struct EntryChild {
  UniqueFd helper;  // the first child
  UniqueFd status;  // reports, see read_entry_reports()
  ProgramNumber program;
};

/// Errors: no process could be made. All later errors are reported by `status`.
Result<EntryChild> start_entry(const EntryPlan& plan, const EntryStreams& streams);

/// The reports of a child. They end when the program runs or will not run.
struct EntryReports {
  pid_t program = 0;  // the second child, which must be reaped; 0: it was not made (yet)
  std::string failure;
  bool at_end = false;
};

/// Reads new reports without waiting. Does nothing once `reports` are at their end.
void read_entry_reports(const EntryPlan& plan, const EntryChild& child, EntryReports& reports);

}  // namespace spillway::host
