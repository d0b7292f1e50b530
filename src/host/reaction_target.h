// What the thread that acts on memory pressure needs of one pod, opened before there is any pressure. Reading, signals
// and kills neither allocate nor open a file, except for the list of processes on version 1, whose held descriptor
// would show an old list. Thread: made and destroyed on the loop, used by the acting thread.
// Source: spec "Wake-up sources", 4, 6; kernel document "cgroup-v2.rst", cgroup.kill.
#pragma once

#include "base/bytes.h"
#include "host/cgroup.h"
#include "host/unique_fd.h"

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::host {

/// The first process of a container, as the loop and the acting thread share it.
struct ContainerHandle {
  UniqueFd pidfd;
  UniqueFd directory;                   // of its cgroup, in the hierarchy of the memory controller
  std::atomic<bool> terminated{false};  // SIGTERM has been sent
};

/// Processes that are being killed and whose memory is to be freed at once.
struct KilledProcesses {
  std::array<pid_t, 256> pids;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::size_t count = 0;
};

class ReactionTarget {
 public:
  /// `parent`: the cgroup of the pod's class. `containers`: running ones. Files that cannot be opened make the pod one
  /// that cannot be measured.
  ReactionTarget(const CgroupDir& parent, const CgroupDir& pod,
                 std::vector<std::shared_ptr<ContainerHandle>> containers);

  /// What the pod's cgroup is charged with; nullopt: it is gone.
  std::optional<Bytes> usage() const noexcept;
  std::optional<Bytes> inactive_file() const noexcept;

  bool has_processes() const noexcept { return !containers_.empty(); }

  /// SIGTERM to the first process of each container. The pod and its class get all the processor they can use: who has
  /// next to no share of it cannot even die. The class must be put back once the pod is gone.
  void terminate() const noexcept;
  /// SIGKILL to all that is there now, and who that was; with the processor as above. The loop repeats it until nobody
  /// is left.
  void kill(KilledProcesses& killed) const noexcept;
  /// The first processes, for freeing their memory.
  void list(KilledProcesses& processes) const noexcept;

 private:
  void kill_one_by_one(KilledProcesses& killed) const noexcept;
  void give_processor() const noexcept;

  bool v1_;
  UniqueFd usage_;
  UniqueFd stat_;
  UniqueFd kill_;
  std::array<UniqueFd, 2> weights_;  // of the processor: the class, the pod
  std::vector<std::shared_ptr<ContainerHandle>> containers_;
};

/// The value of `key` (with its trailing blank) in the text of a memory.stat.
std::optional<Bytes> find_memory_stat(std::string_view text, std::string_view key) noexcept;

}  // namespace spillway::host
