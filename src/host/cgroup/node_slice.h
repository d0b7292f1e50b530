// A node as a cgroup: <root>/spillway/<instance>/<node> with a memory and a pids limit, and the kubelet's tree of
// quality-of-service classes below it. As "the whole host" the node measures the root of the hierarchy and limits
// nothing. The cgroup is locked as long as this object lives; what a dead process left unlocked can be cleared away,
// what another one holds cannot be touched. A node may also be another process's: attach(). Thread: any (one at a
// time). Source: design "Nodes that are cgroups"; spec "Node agent", 9.3, 9.4.
#pragma once

#include "api/object/pod.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/file_lock.h"
#include "base/time.h"
#include "host/cgroup/cgroup.h"
#include "policy/cgroups/cgroup_name.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

/// Below the root: the folder of the instances.
inline constexpr std::string_view kNodesFolder = "spillway";
/// The folder of container supervisors in a node, beside that of its pods. A node that uses a container runtime has
/// none.
inline constexpr std::string_view kSupervisorsFolder = "supervisors";

enum class NodeRoot { kSlice, kHost };

/// Treatment of processes that a dead agent left in the node's cgroup. kKeep: pods keep running.
enum class Leftovers { kEnd, kKeep };

struct NodeSliceOptions {
  NodeRoot root = NodeRoot::kSlice;
  std::string instance = "default";
  std::string node;
  std::optional<Bytes> memory;           // limit of a slice: required, at least 16 MiB
  std::optional<std::int64_t> pids_max;  // limit of a slice; absent: no limit
  Leftovers leftovers = Leftovers::kEnd;
  LockPatience lock_patience;  // with the lock of a process that may just have been killed
};

/// Finds the cgroup to create the node's cgroups in, without changing anything; an error names what is missing and how
/// to get it. On version 2 a process without the right to the whole hierarchy moves into a leaf of its own cgroup and
/// builds beside it. kForbidden: no right to make cgroups. kNotFound: no memory controller is available. kConflict: its
/// own cgroup is shared.
Result<CgroupDir> find_writable_root(const CgroupMounts& mounts);

/// The tree of a kubelet.
struct KubeletTree {
  std::string node;
  std::string cgroup_root;      // the kubelet's; "" and "/": the root of the hierarchy
  std::string kubepods;         // "/kubepods", "/kubepods.slice"
  std::optional<Bytes> memory;  // memory of a node whose root is the kubelet's; absent: the whole machine's
};

/// kInvalid: a node of this machine cannot have so much memory, as the machine has less, or so little.
Outcome check_node_memory(Bytes memory);

class NodeSlice {
 public:
  /// The node of another process: it is only measured, and nothing is created, limited, locked or removed. `root` is
  /// the root of the hierarchy. kNotFound: there is no such tree.
  static Result<NodeSlice> attach(CgroupDir root, KubeletTree tree);

  /// `root` is a result of find_writable_root (or a fake tree). Cgroups that a dead process left for the same node are
  /// killed and removed first, unless they are to be kept. kConflict: a running process has a node of that name.
  /// kInvalid: a bad name or size.
  static Result<NodeSlice> create(CgroupDir root, NodeSliceOptions options);

  /// The tree of a kubelet with systemd's cgroup driver, of a node that is the whole machine: slices that systemd has
  /// made, locked as long as this object lives. `root`: that of the hierarchy. kNotFound: a slice is not there.
  /// kConflict: a running process has the tree.
  static Result<NodeSlice> open_slices(CgroupDir root, const std::string& node, cgroups::CgroupName kubepods,
                                       const LockPatience& patience);

  NodeSlice(NodeSlice&&) = default;
  NodeSlice& operator=(NodeSlice&&) = default;
  ~NodeSlice() = default;

  const NodeSliceOptions& options() const { return options_; }

  bool is_host() const { return options_.root == NodeRoot::kHost; }

  /// The cgroup that the node's figures are read from: the slice, or the root of the hierarchy.
  const CgroupDir& measured() const { return is_host() ? machine_ : slice_; }

  /// The node's memory: the slice's limit, or the machine's memory.
  Bytes memory() const { return memory_; }

  const CgroupDir& slice() const { return slice_; }

  const CgroupDir& kubepods() const { return kubepods_; }

  /// The parent of a pod's cgroup: kubepods itself for guaranteed pods, as the kubelet has it.
  const CgroupDir& parent_of(api::QosClass qos) const;

  cgroups::CgroupDriver driver() const { return driver_; }

  /// The name of the cgroup of a pod in parent_of(). kInvalid: the uid can be in no such name.
  Result<std::string> pod_child(api::QosClass qos, const std::string& uid) const;
  /// The uid in the name of a child of parent_of(); nullopt: no pod's.
  std::optional<std::string> uid_of_child(api::QosClass qos, std::string_view child) const;
  /// Names of a class's cgroup and of a pod's, for systemd. Errors as pod_child().
  Result<cgroups::SliceUnit> class_unit(api::QosClass qos) const;
  Result<cgroups::SliceUnit> pod_unit(api::QosClass qos, const std::string& uid) const;

  /// Kills everything in the slice and removes it, and the folders above it if they are empty. Waits at most 10 s.
  Outcome remove();

 private:
  NodeSlice() = default;

  Outcome build_tree();

  NodeSliceOptions options_;
  cgroups::CgroupDriver driver_ = cgroups::CgroupDriver::kCgroupfs;
  cgroups::CgroupName kubepods_name_{"kubepods"};  // with systemd's driver from the root of the hierarchy on
  Bytes memory_;
  CgroupDir root_;     // parent of the cgroups that we create
  CgroupDir machine_;  // the root of the hierarchy, if that is measured
  CgroupDir instance_;
  CgroupDir slice_;
  CgroupDir kubepods_;
  CgroupDir burstable_;
  CgroupDir best_effort_;
};

/// Ends pods that no agent will take over: their program is removed, or the machine goes down. Thread: main; waits. In
/// all nodes of `instance` (NodeSliceOptions) below `root`, processes in pods get SIGTERM, after `grace` the remaining
/// ones get SIGKILL, and the cgroups are removed. It is no error if there are none; nodes whose pods belong to a
/// container runtime are skipped. kConflict: an agent still runs one of the nodes, which is skipped; the others are
/// ended.
Outcome end_left_nodes(const CgroupDir& root, const std::string& instance, Duration grace);

}  // namespace spillway::host
