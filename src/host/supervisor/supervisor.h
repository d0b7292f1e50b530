// The agent's handle of a container's supervisor, which this agent or an earlier one started; it consists of
// descriptors. The supervisor holds everything that must outlive agents: the first process as its child, the ends of
// the pipes, the namespaces of the pod. Its state is read from shared memory; its orders are single words
// (SupervisorOrder). Thread: loop. Never waits. Source: docs/adr/0013-supervised-pods.md; pidfd_getfd(2),
// memfd_create(2), unix(7).
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "host/kernel/pidfd.h"
#include "host/logs/container_log.h"
#include "host/supervisor/supervisor_state.h"
#include "runtime/loop.h"

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {

struct SupervisorWish {
  std::string record;  // the container's, for the next agent; at most kRecordBytesMax
  std::string log_path;
  LogLimits log_limits;
  WallTime started_at;
};

class Supervisor {
 public:
  /// Creates the memory shared with agents; the supervisor is started later.
  static Result<Supervisor> prepare(const SupervisorWish& wish);
  /// Opens a supervisor that an earlier agent started. kInvalid: it is none, or of an unsupported version.
  static Result<Supervisor> find(pid_t pid);

  /// Descriptors that the supervisor inherits: number here, and number there.
  std::vector<std::pair<int, int>> descriptors() const;

  /// Marks that the supervisor runs.
  void live(pid_t pid, UniqueFd pidfd) {
    pid_ = pid;
    pidfd_ = std::move(pidfd);
    orders_.reset();
  }

  pid_t pid() const { return pid_; }

  /// The pidfd of the supervisor; -1: it was not started yet.
  int pidfd() const { return pidfd_.get(); }

  /// False: the supervisor has ended, and everything it held is lost.
  bool is_alive() const;

  Result<SupervisorState> state() const;
  Result<std::string> record() const;
  /// A copy of the descriptor that the supervisor holds under that number; empty: there is none, or the supervisor has
  /// ended.
  UniqueFd copy(SupervisorFd number) const;

  /// False: the supervisor has ended or does not accept the order.
  bool send_order(SupervisorOrder order, int with = -1) const;
  /// Ends the supervisor, and reaps it if it is a child of this process.
  void quit(runtime::Loop& loop);

 private:
  UniqueFd state_;
  UniqueFd orders_;  // the supervisor's end of the socket, until it runs
  UniqueFd give_orders_;
  pid_t pid_ = 0;
  UniqueFd pidfd_;
};

/// The end in the form of wait(2).
ProcessEnd end_of(std::int32_t wait_status);

/// Parses the exit status in the last field of /proc/PID/stat of a process that has ended and is not reaped; nullopt:
/// the process runs, or the field is missing.
std::optional<ProcessEnd> end_in_stat(std::string_view stat);

/// The exit status of a container's first process, which must have ended; nullopt: it is unknown.
std::optional<ProcessEnd> read_end(const Supervisor& supervisor, pid_t process);

}  // namespace spillway::host
