// The life of one container as a process of this host: started inside its cgroup, its output written to the log,
// stopped with grace, killed with everything it left behind, gone only when its cgroup is empty. Thread: loop. Never
// waits. Invariant: after a successful start(), exactly one of on_failed and on_exited is called, and on_exited only
// after on_started.
#pragma once

#include "agent/contract/ports.h"
#include "base/back_off.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "host/cgroup/cgroup.h"
#include "host/kernel/pidfd.h"
#include "host/kernel/pod_namespaces.h"
#include "host/logs/container_log.h"
#include "host/reaction/reaction_target.h"
#include "host/spawn/entry_child.h"
#include "host/spawn/process_spawn.h"
#include "host/streams/container_console.h"
#include "host/supervisor/supervisor.h"
#include "host/volumes/volume_set.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::host {

/// Mounts of a confined container on top of its pod's view.
std::vector<MountStep> container_mounts(CgroupVersion version);

/// The supervisors of containers, and how they are started.
struct Supervision {
  int program = -1;
  const CgroupDir* cgroup = nullptr;  // parent of the supervisors; outlives the container
  int volumes = -1;                   // mount namespace with the node's volumes; -1: there is none
};

class ContainerProcess {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_started(agent::ContainerStarted event) = 0;
    /// The container may be destroyed from here on.
    virtual void on_failed(agent::ContainerStartFailed event) = 0;
    virtual void on_exited(agent::ContainerExited event) = 0;
    /// Closes the mounts on a thread that may wait.
    virtual void dispose(UniqueFd mounts) = 0;
  };

  struct Start {
    agent::StartContainer command;              // with env and working_dir complete
    const CgroupDir* pod = nullptr;             // outlives the container
    const PodNamespaces* namespaces = nullptr;  // outlives the container; null: the host's namespaces
    std::vector<std::pair<std::string, std::string>> sysctls;
    std::string log_path;
    LogLimits log_limits;
    std::optional<std::uint64_t> open_files_max;
    std::optional<std::uint32_t> first_id;  // the pod's first id on this machine; nullopt: it has no ids of its own
    bool own_pids = true;                   // counts with a view only
    std::vector<OpenedMount> mounts;        // used with a view only
    UniqueFd pids;                          // the target container's pid namespace; empty: its own
    /// Settings of the supervisor; nullopt: the container ends with this process.
    std::optional<Supervision> supervision = {};
  };

  ContainerProcess(runtime::Loop& loop, telemetry::Log log, Owner& owner, Start start);
  ~ContainerProcess();
  ContainerProcess(const ContainerProcess&) = delete;
  ContainerProcess& operator=(const ContainerProcess&) = delete;

  /// Makes cgroup, log and process. After an error nothing is left and no event follows.
  Outcome start();

  /// Replaces start(): the container runs, or has ended, under the supervisor that an earlier process made for it.
  Outcome adopt(Supervisor supervisor);

  /// Called once the end has been reported: returns the supervisor, which still holds its pod's namespaces; nullopt:
  /// none.
  std::optional<Supervisor> release_supervisor() { return std::exchange(supervisor_, std::nullopt); }

  /// SIGTERM now, SIGKILL to all after `grace`. A repeated stop can only shorten the grace.
  void stop(Duration grace);

  const std::string& name() const { return start_.command.name; }

  const std::string& log_path() const { return start_.log_path; }

  const agent::StartContainer& command() const { return start_.command; }

  const CgroupDir& cgroup() const { return cgroup_; }

  /// The first process of the container.
  pid_t process() const { return pid_; }

  WallTime started_at() const { return started_at_; }

  /// The plan by which another program enters the container, as one of its own; valid only while this object lives.
  /// kNotFound: the container does not run.
  Result<EntryPlan> entry(std::vector<std::string> argv) const;

  /// The pid namespace; empty: the container is among the machine's processes. kNotFound: it does not run.
  Result<UniqueFd> pids() const;

  /// Null: the container has no supervisor.
  const Supervisor* supervisor() const { return supervisor_ ? &*supervisor_ : nullptr; }

  /// The console to which clients attach.
  const std::shared_ptr<ContainerConsole>& console() const { return console_; }

  /// Binds the container to the CPUs of the shared pool, unless it has its own.
  void share_cpus(std::string_view cpus);

  bool is_running() const { return !end_.has_value(); }

  /// The handle for the thread that acts on memory pressure; null before the start.
  const std::shared_ptr<ContainerHandle>& handle() const { return handle_; }

  Bytes log_size() const;

 private:
  using Ends = std::pair<UniqueFd, UniqueFd>;  // ours, the program's

  struct Output {
    explicit Output(LogStream stream) : framer(stream) {}

    UniqueFd pipe;
    LogFramer framer;
    api::Channel channel = api::Channel::kOut;  // stream sent to attached clients
    bool watched = false;
  };

  void watch();
  Outcome hold_process(pid_t pid, UniqueFd pidfd);
  /// Keeps the given descriptors open in `held` until the supervisor has been made.
  Outcome prepare_supervisor(const Ends& out, const Ends& err, std::vector<UniqueFd>& held);
  /// Copies the supervisor's outputs to attached clients.
  void relay();
  void read_relay();
  /// Writes all pending output to the log.
  void drain();
  void on_drained();
  void on_supervisor_end();
  std::optional<ProcessEnd> supervised_end();
  void watch_output(Output& output);
  /// Stops reading while attached clients are behind.
  void pace();
  Outcome open_streams(Ends& in, Ends& out, Ends& err);
  Outcome make_cgroup();
  /// Keeps descriptors of the container's devices open in `held` until the process exists.
  Result<Confinement> confinement(std::vector<UniqueFd>& held) const;
  Outcome plan_process(std::vector<UniqueFd>& held);
  Outcome spawn_process();
  void on_status();
  void on_process_end();
  /// Reads available output, at most `bytes_max`; false at the end of the stream.
  bool pump(Output& output, std::size_t bytes_max);
  void close_output(Output& output);
  void write_log(std::string_view records);
  /// Checks repeatedly until the fate of SIGTERM is certain.
  void resolve_doubt();
  void kill();
  void check_empty();
  void complete();
  void release();

  runtime::Loop& loop_;
  telemetry::Log log_;
  Owner& owner_;
  Start start_;
  SpawnPlan plan_;
  CgroupDir cgroup_;
  std::optional<ContainerLog> log_file_;
  bool log_failed_ = false;
  Output stdout_{LogStream::kStdout};
  Output stderr_{LogStream::kStderr};
  UniqueFd pidfd_;
  std::shared_ptr<ContainerHandle> handle_;
  UniqueFd status_;
  // mount namespace of the container: held, so that the end of the process need not wait for unmounting
  UniqueFd mounts_;
  std::optional<Supervisor> supervisor_;
  UniqueFd relay_;            // socket on which the supervisor copies output
  bool relay_ready_ = false;  // all further output arrives on relay_
  bool relay_watched_ = false;
  UniqueFd drain_;  // closed by the supervisor when the log is complete
  bool drained_ = false;
  bool lost_ = false;  // the exit status of the process is unknown
  bool adopted_ = false;
  pid_t pid_ = 0;
  WallTime started_at_;
  WallTime finished_at_;
  std::string failure_;
  std::string failure_reason_;
  std::optional<ProcessEnd> end_;
  std::optional<Instant> kill_due_;
  std::optional<runtime::Loop::TimerId> grace_timer_;
  std::optional<runtime::Loop::TimerId> empty_timer_;
  std::optional<runtime::Loop::TimerId> doubt_timer_;
  std::optional<runtime::Loop::TimerId> pace_timer_;
  std::optional<runtime::Loop::TimerId> drain_timer_;
  std::shared_ptr<ContainerConsole> console_ = std::make_shared<ContainerConsole>();
  BackOff empty_waits_{milliseconds(1), milliseconds(50)};
  BackOff doubt_waits_{milliseconds(1), milliseconds(100)};
  bool killing_ = false;
};

}  // namespace spillway::host
