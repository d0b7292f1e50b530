// The pods of a node whose containers are processes of this machine, and the containers of each: one table, which the
// classes of ProcessRuntime read and change. Answers what can be answered from it: views for the statistics, targets of
// reactions, places of logs. Thread: loop. Bounds: ProcessRuntimeOptions::pods_max pods.
#pragma once

#include "agent/contract/ports.h"
#include "agent/contract/running_pod.h"
#include "api/json/json.h"
#include "api/object/meta.h"
#include "base/error.h"
#include "base/time.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/node_slice.h"
#include "host/observation/observer.h"
#include "host/pods/container_starts.h"
#include "host/pods/pod_identity.h"
#include "host/pods/pod_removals.h"
#include "host/process/container_process.h"
#include "host/process/kept_records.h"
#include "host/process/pod_isolator.h"
#include "host/reaction/host_events.h"
#include "host/reaction/reaction_target.h"
#include "host/supervisor/supervisor.h"
#include "host/volumes/volume_set.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {

struct ProcessPod {
  /// An attachment to the node's network. kDetached: nothing is left of it.
  enum class NetworkState { kNone, kAttached, kDetaching, kDetached };

  /// Progress of freeing a stopped pod's disk space.
  enum class FreeState { kUnasked, kAsked, kRunning, kDone };

  PodIdentity identity = new_pod_identity();
  agent::CreatePod command;
  WallTime created;
  CgroupDir cgroup;
  IsolatedPod isolated;
  std::string directory;
  std::optional<Error> broken;  // why it could not be made
  bool stopping = false;
  bool stop_asked = false;
  FreeState freeing = FreeState::kUnasked;
  bool removing = false;
  NetworkState network = NetworkState::kNone;
  api::Json capabilities;  // for plug-ins (capabilities_of); null: it is attached to no network
  std::map<std::string, std::unique_ptr<ContainerProcess>> containers;
  std::shared_ptr<VolumeSet> volumes;            // null: it is not confined, or has ended; the thread's alone
  std::set<std::string> disk_volumes;            // on which its containers may write
  ContainerStarts awaited;                       // containers whose mounts are being opened
  std::shared_ptr<const ReactionTarget> target;  // null: to be made anew
  bool made = true;                              // false: known from its record alone
  std::optional<Supervisor> holder;              // holds the pod's namespaces while no container runs
  KeptEnds ends;
  std::vector<std::string> mounts;                                 // volume mounts made by an earlier process
  std::vector<std::pair<Supervisor, agent::StartContainer>> left;  // by an earlier process, not taken over yet

  /// True if no container and no attachment to the network is left.
  bool is_at_rest() const;

  // Paths in the pod's directory; no container can have such a name.

  /// The pod's own directory, in which its containers work.
  std::string work_folder() const { return directory + "/_work"; }

  std::string volume_folder() const { return directory + "/_volumes"; }

  /// The files that the node makes for a container.
  std::string file_folder(const std::string& container) const { return directory + "/_files/" + container; }

  std::string log_path(const std::string& container, std::int32_t attempt) const;

  /// The records for the runtime's successor: the pod, and the ends of its containers.
  std::string record_path() const { return directory + "/_pod.json"; }

  std::string ends_path() const { return directory + "/_ends.jsonl"; }
};

class ProcessPods {
 public:
  using Map = std::map<std::string, ProcessPod>;  // by uid

  ProcessPods(const NodeSlice& slice, HostEvents& events) : slice_(slice), events_(events) {}

  ProcessPods(const ProcessPods&) = delete;
  ProcessPods& operator=(const ProcessPods&) = delete;
  ~ProcessPods() = default;

  Map& all() { return pods_; }

  const Map& all() const { return pods_; }

  /// Null: there is no such pod.
  ProcessPod* find(const std::string& uid);
  /// True if another pod has the uid now, or waits for it. Null: the pod was unknown.
  bool is_made_anew(const std::string& uid, const PodIdentity& identity);
  /// Finds the pod of that name that is not being stopped, if there are several.
  const ProcessPod* find(const api::PodKey& key) const;
  /// Null: there is no such pod, or no container of that name in it.
  ContainerProcess* find_container(const std::string& uid, const std::string& name);
  std::vector<api::PodKey> keys() const;
  /// Pods that were made and have not ended, and their running containers.
  std::vector<agent::RunningPod> running() const;

  /// The target of reactions to memory pressure; null: there is none, or it has no cgroup.
  std::shared_ptr<const ReactionTarget> find_target(const std::string& uid);
  /// After a change of the pod's containers.
  void change_target(ProcessPod& pod);

  /// For the statistics.
  std::vector<PodView> views() const;
  /// Writes the weights of the classes of pods, which follow from the pods in them.
  void update_class_shares() const;

  Result<std::string> find_log(const api::PodKey& key, const std::string& container, std::int32_t attempt) const;
  bool is_log_live(const std::string& path) const;

  PodRemovals& removals() { return removals_; }

  /// The node shuts down: no container starts any more.
  void close() { closing_ = true; }

  bool is_closing() const { return closing_; }

 private:
  const NodeSlice& slice_;
  HostEvents& events_;
  Map pods_;
  PodRemovals removals_;
  bool closing_ = false;
};

}  // namespace spillway::host
