// Claims that are given a volume when their first pod is placed: reserves volumes, or selects the node for which they
// are made, and waits until the claims of a placed pod are bound. As kube-scheduler's plug-in of this name in PreBind.
// Thread: loop. Bounds: one wait per placed pod with such claims, for `timeout` at most. Source: Kubernetes docs,
// "Storage Classes", volume binding mode; spec "Scheduler and workloads", 7.
#pragma once

#include "api/object/node.h"
#include "api/object/pod.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "controllers/shared/storage_cache.h"
#include "policy/scheduling/preemption.h"
#include "policy/storage/pod_claims.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace spillway::controllers {

class VolumeBinding {
 public:
  using PodPtr = scheduling::PodPtr;

  struct Hooks {
    /// The writes of a pod have been answered: from now on it only waits.
    std::function<void()> on_waits;
    /// The claims of the pod are bound.
    std::function<void(const PodPtr& pod, const std::string& node, Now now)> on_bound;
    /// The claims will not be bound; `why`: for the status of the pod.
    std::function<void(const PodPtr& pod, const std::string& node, const std::string& why, Now now)> on_failed;
  };

  /// The references must outlive this object.
  VolumeBinding(client::ApiClient& client, const client::Informer<api::Node>& nodes, StorageCache& storage,
                Duration timeout, Hooks hooks);
  VolumeBinding(const VolumeBinding&) = delete;
  VolumeBinding& operator=(const VolumeBinding&) = delete;

  /// Sends the writes of the plan, and waits until the claims are bound.
  void begin(const PodPtr& pod, const std::string& node, storage::ClaimPlan plan, Now now);
  /// Forgets the wait of a pod, if it has one.
  void end(const std::string& pod_uid);
  /// Ends the waits of pods whose claims are bound by now, whose claims failed, or that waited too long.
  void check_waits(Now now);

  /// Names of volumes that waiting pods get.
  const std::set<std::string>& taken() const { return taken_; }

  /// Pods that wait and have no write under way.
  std::size_t waiting() const { return waiting_; }

 private:
  /// A pod that has a node and waits for its claims.
  struct Wait {
    PodPtr pod;
    std::string node;
    storage::ClaimPlan plan;
    std::set<client::ObjectKey> asked;  // claims that were seen to request a volume on the node
    Instant until;
    std::size_t writes = 0;  // without an answer
    std::string failure;     // error of a failed write
  };

  using WaitPtr = std::shared_ptr<Wait>;

  struct Progress {
    bool waits = false;
    std::string failure;  // why waiting is of no use; empty: it may be
  };

  void on_written(const WaitPtr& wait, const Outcome& outcome, Now now);
  /// The present claim; nullptr: it was deleted.
  storage::ClaimPtr claim_now(const storage::ClaimPtr& claim);
  /// The progress of a claim that gets an existing volume.
  Progress progress_of_binding(const std::pair<storage::ClaimPtr, storage::VolumePtr>& binding);
  /// The progress of a claim whose volume is made for the node.
  Progress progress_of_provision(Wait& wait, const storage::ClaimPtr& given);
  Progress progress_of(Wait& wait, Now now);

  client::ApiClient& client_;
  const client::Informer<api::Node>& nodes_;
  StorageCache& storage_;
  Duration timeout_;
  Hooks hooks_;
  std::map<std::string, WaitPtr> waits_;  // by uid of the pod
  std::set<std::string> taken_;
  std::size_t waiting_ = 0;
};

}  // namespace spillway::controllers
