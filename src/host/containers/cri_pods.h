// The pods of a node whose containers a container runtime runs, and the containers of each: one table, which the parts
// of CriRuntime read and change. Answers what can be answered from it: views for the statistics, targets of reactions,
// places of logs, ids. Thread: loop. Bounds: CriRuntimeOptions::pods_max pods.
#pragma once

#include "agent/contract/ports.h"
#include "agent/contract/running_pod.h"
#include "api/json/json.h"
#include "api/object/meta.h"
#include "base/error.h"
#include "base/time.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/node_slice.h"
#include "host/companion/pod_files.h"
#include "host/containers/image_collector.h"
#include "host/observation/observer.h"
#include "host/pods/container_starts.h"
#include "host/pods/pod_identity.h"
#include "host/pods/pod_removals.h"
#include "host/reaction/container_handle.h"
#include "host/reaction/host_events.h"
#include "host/reaction/reaction_target.h"
#include "host/volumes/volume_set.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {

/// The newest instance of a name that was started.
struct CriContainer {
  std::string id;
  std::int32_t attempt = 0;
  bool running = false;
  bool inspecting = false;
  WallTime started_at;
  CgroupDir cgroup;
  std::shared_ptr<ContainerHandle> handle;  // null: no process was seen in it
  std::string termination_log;
  bool message_from_logs = false;  // FallbackToLogsOnError
  bool rotating = false;           // the container's log is being checked or rotated
};

struct CriPod {
  PodIdentity identity = new_pod_identity();
  agent::CreatePod command;
  WallTime created;
  CgroupDir cgroup;
  std::string directory;
  std::string logs;             // folder of the logs of its containers
  bool slice_starting = false;  // systemd is making the pod's cgroup
  bool wants_sandbox = false;   // a sandbox is made as soon as the cgroup exists
  std::optional<Error> broken;  // the reason why the pod could not be made
  std::shared_ptr<VolumeSet> volumes;
  std::set<std::string> disk_volumes;
  std::string sandbox;  // id of the sandbox; empty: there is none
  std::int32_t sandbox_attempt = 0;
  api::Json sandbox_config;
  Instant sandbox_since{};       // lists that began before do not contain it
  bool sandbox_doubted = false;  // the last list did not show the sandbox as ready: its status is being read
  std::string handler;           // handler of the pod's RuntimeClass
  bool asks_for_sandbox = false;
  std::set<std::string> old_sandboxes;
  std::set<std::string> lost_sandboxes;  // sandboxes that have not been stopped
  std::map<std::string, CriContainer> containers;
  ContainerStarts starting;
  std::map<std::pair<std::string, std::int32_t>, std::string> ended;  // ids of earlier instances
  std::vector<agent::ContainerExited> unreported_ends;                // ends that wait for the state of the sandbox
  bool stopping = false;
  bool frees_storage = false;  // storage of the pod's containers is removed before the pod is reported as stopped
  bool removing = false;
  std::shared_ptr<const ReactionTarget> target;  // null: must be opened again
};

class CriPods {
 public:
  using Map = std::map<std::string, CriPod>;  // by uid

  /// `runtime_name`: the scheme of container ids; empty: set_runtime_name() will follow.
  CriPods(const NodeSlice& slice, HostEvents& events, std::string runtime_name)
      : slice_(slice), events_(events), runtime_name_(std::move(runtime_name)) {}

  CriPods(const CriPods&) = delete;
  CriPods& operator=(const CriPods&) = delete;
  ~CriPods() = default;

  Map& all() { return pods_; }

  const Map& all() const { return pods_; }

  /// Null: there is no such pod.
  CriPod* find(const std::string& uid);
  const CriPod* find(const std::string& uid) const;
  /// Null as well if that pod was removed and another one has its uid.
  CriPod* find(const std::string& uid, const PodIdentity& identity);
  /// True if another pod has the uid now, or waits for it.
  bool is_made_anew(const std::string& uid, const PodIdentity& identity) const;
  /// Finds the pod of that name that is not being stopped, if there are several.
  const CriPod* find(const api::PodKey& key) const;
  /// Null: there is no such pod, or no container of that name in it. With `id`: null as well if that is another's.
  CriContainer* find_container(const std::string& uid, const std::string& name);
  CriContainer* find_container(const std::string& uid, const std::string& name, const std::string& id);
  std::vector<api::PodKey> keys() const;
  /// Pods with a sandbox that have not ended, and their running containers.
  std::vector<agent::RunningPod> running() const;

  /// The target of reactions to memory pressure; null: there is none, or it has no cgroup.
  std::shared_ptr<const ReactionTarget> find_target(const std::string& uid);
  /// Called after a change of the pod's cgroup or of its containers.
  void change_target(CriPod& pod);

  /// Views of all pods for the statistics.
  std::vector<PodView> views() const;
  /// Pods whose files are measured.
  std::vector<PodFolder> folders() const;

  Result<std::string> find_log(const api::PodKey& key, const std::string& container, std::int32_t attempt) const;
  bool is_log_live(const std::string& path) const;
  std::optional<std::int32_t> attempt_of(const std::string& container_id) const;
  /// True if a container is being started from the image. Tags are not distinguished.
  bool wants_image(const ListedImage& image) const;

  /// "containerd://ID".
  std::string container_id(const std::string& id) const;

  bool has_runtime_name() const { return !runtime_name_.empty(); }

  void set_runtime_name(std::string name) { runtime_name_ = std::move(name); }

  /// Pods of earlier processes are in the table: from now on what the runtime has beyond it is an orphan.
  void set_complete() { complete_ = true; }

  bool is_complete() const { return complete_; }

  PodRemovals& removals() { return removals_; }

  /// Called when the node shuts down: no pod and no container starts any more.
  void close() { closing_ = true; }

  bool is_closing() const { return closing_; }

 private:
  const NodeSlice& slice_;
  HostEvents& events_;
  std::string runtime_name_;
  Map pods_;
  PodRemovals removals_;
  bool complete_ = false;
  bool closing_ = false;
};

}  // namespace spillway::host
