// The files of one pod for the thread that acts on memory pressure, opened before there is any pressure. Reading,
// signals and kills neither allocate nor open a file, except for the list of processes on version 1, whose held
// descriptor would show an old list. Thread: made and destroyed on the loop, used by the acting thread.
// Source: spec "Wake-up sources", 4, 6; kernel document "cgroup-v2.rst", cgroup.kill.
#pragma once

#include "base/bytes.h"
#include "base/unique_fd.h"
#include "host/cgroup/cgroup.h"
#include "host/reaction/container_handle.h"
#include "host/reaction/dying_processes.h"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

/// kPod: a kill is for all that is below the pod's cgroup. kContainers: something else lives there too.
enum class KillScope { kPod, kContainers };

class ReactionTarget {
 public:
  /// The pod has no process: all calls do nothing.
  ReactionTarget() = default;

  /// `parent`: the cgroup of the pod's class. `containers`: running ones. Files that cannot be opened make the pod one
  /// that cannot be measured.
  ReactionTarget(const CgroupDir& parent, const CgroupDir& pod,
                 std::vector<std::shared_ptr<ContainerHandle>> containers, KillScope scope = KillScope::kPod);

  /// The usage of the pod's cgroup; nullopt: the cgroup was removed.
  std::optional<Bytes> usage() const noexcept;
  std::optional<Bytes> inactive_file() const noexcept;

  std::size_t container_count() const noexcept { return containers_.size(); }

  const std::string& container_name(std::size_t i) const noexcept { return containers_[i]->name; }

  /// Working sets of the containers, one element of `into` each; nullopt: it cannot be read. A single container is what
  /// the pod is; of several, this opens and reads two files each.
  void measure_containers(Bytes pod_working_set, std::span<std::optional<Bytes>> into) const noexcept;

  bool has_processes() const noexcept { return !containers_.empty(); }

  /// Holds the processes that die of terminate(), if at all: the first process of each container.
  void hold_first(DyingProcesses& processes) const noexcept;
  /// Holds the processes that die of kill(): all present ones.
  void hold_all(DyingProcesses& processes) const noexcept;

  /// ContainerHandle::terminate() for each container.
  void terminate() const noexcept;
  /// Sends SIGKILL to all present processes; on version 1 to those held. The loop repeats it until none is left.
  void kill(DyingProcesses& held) const noexcept;
  /// The pod and its class get all the processor they can use: who has next to no share of it cannot even die. The
  /// class must be put back once the pod is gone.
  void give_processor() const noexcept;
  std::string_view inactive_key() const noexcept;

 private:
  bool v1_ = false;
  UniqueFd usage_;
  UniqueFd stat_;
  UniqueFd kill_;
  std::array<UniqueFd, 2> weights_;  // processor weights: the class, the pod
  std::vector<std::shared_ptr<ContainerHandle>> containers_;
};

/// The value of `key` (with its trailing blank) in the text of a memory.stat.
std::optional<Bytes> find_memory_stat(std::string_view text, std::string_view key) noexcept;

}  // namespace spillway::host
