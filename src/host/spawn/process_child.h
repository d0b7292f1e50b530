// The steps of every child between clone and exec. System calls only: the child shares nothing but a copy of this
// process's memory, in which other threads may have held any lock. Thread: the child's only one. Source:
// credentials(7), capabilities(7), user_namespaces(7).
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/cgroup/cgroup.h"
#include "host/kernel/mount_steps.h"

#include <linux/filter.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::host {

/// Settings that confine a process to its pod's view: ids and rights.
struct Confinement {
  std::uint32_t first_id = 0;     // the machine's id that is the pod's 0
  bool own_pids = true;           // first process of a pid namespace
  std::vector<MountStep> mounts;  // on top of the pod's
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<gid_t> groups;
  std::uint64_t capabilities = 0;
  std::vector<sock_filter> calls;  // empty: no filter
};

enum class ChildStep : int {
  kCgroup,
  kNamespace,
  kLoopback,
  kSysctl,
  kSession,
  kOomScore,
  kWorkingDir,
  kLimits,
  kDescriptors,
  kView,
  kMounts,
  kUsers,
  kIdentity,
  kRights,
  kCallFilter,
  kExec,
  kCloned,  // no failure: a process was made; its number is in `index` where no memory is shared
};

/// The record that a child writes to its status descriptor, in a single write or not at all.
struct ChildReport {
  ChildStep step;
  int error;              // errno
  std::size_t index = 0;  // index of the sysctl or mount
};

/// The number of the status descriptor when the program is started, which closes it.
inline constexpr int kStatusFd = 3;

/// Puts a child into its cgroup: by the clone itself, if the kernel can (version 2), else the child writes itself into
/// each hierarchy.
class CgroupJoin {
 public:
  struct Cloned {
    long pid = -1;  // 0: this is the child; -1: errno has the error
    int pidfd = -1;
  };

  /// `cgroup` may be null and must stay valid.
  static Result<CgroupJoin> prepare(const CgroupDir* cgroup);
  /// Called with all signals blocked. `flags`: CLONE_NEW*.
  Cloned clone(unsigned long flags);
  /// Called in the child, first of all.
  void finish(int status_fd) const;

 private:
  Outcome open_procs();

  const CgroupDir* cgroup_ = nullptr;
  std::vector<UniqueFd> procs_;  // cgroup.procs of each hierarchy that the child must still join
};

/// Out of the way of the first descriptors, which the child fills anew.
Result<UniqueFd> raised(int fd);

/// Arguments for execve(2); `texts` must stay valid.
std::vector<char*> c_strings(const std::vector<std::string>& texts);

[[noreturn]] void fail_child(int status_fd, ChildStep step, int error, std::size_t index = 0);

bool write_whole(int fd, const char* text, std::size_t size);

/// No handler of ours, none blocked.
void reset_signals();

/// Forbids tracing, reading the memory and core dumps until its program runs. Changes of identity reset this.
void seal_memory(int status_fd);

/// Takes an identity of the pod with these rights and no others, for good. `users`: the pod's user namespace.
void drop_rights(const Confinement& own, int users, int status);

/// Executes the first of `candidates` that exists; fails with kExec.
[[noreturn]] void run_program(const std::vector<std::string>& candidates, char* const* argv, char* const* environment);

/// "exec: \"foo\": executable file not found in $PATH".
std::string exec_failure(const std::string& program, int error);

}  // namespace spillway::host
