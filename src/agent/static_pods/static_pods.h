// The pods that files of this node and an address define: started and ended with their manifests, whether there is an
// API server or not, and mirrored there while there is one. Thread: loop. Invariants: one worker per full name at a
// time: a changed pod ends before its successor starts; a mirror follows its manifest only: if it is deleted it is
// created again, if another client changed it, it is replaced; a file that cannot be read as a pod keeps the pod it
// last made, and an address with such a pod keeps all of its pods. Bounds: as many entries as manifests and mirrors;
// one write per mirror in flight, retried with back-off up to 30 s. Source: Kubernetes docs, "Create static Pods"; spec
// "Node agent", 16.
#pragma once

#include "agent/contract/context.h"
#include "agent/contract/static_manifests.h"
#include "agent/pods/pod_workers.h"
#include "agent/static_pods/static_pod.h"
#include "api/json/json.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "base/back_off.h"
#include "client/object_cache.h"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace spillway::agent {

class StaticPods {
 public:
  using PodPtr = client::ObjectCache<api::Pod>::Ptr;

  /// `node`: this node's object; null while it is unknown.
  StaticPods(AgentContext& context, PodWorkers& workers, std::function<std::shared_ptr<const api::Node>()> node);

  /// All manifests of one source. Before every source has been read no mirror is deleted because its manifest is
  /// missing.
  void on_manifests(const StaticManifests& read, Now now);
  /// Called when the mirrors in the API server have been listed.
  void on_synced(Now now);
  /// A change of a pod in the API server.
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);
  void on_node_known(Now now);
  /// Called when the worker with this uid has been removed.
  void on_forgotten(const std::string& uid, Now now);

  /// State for people and /debug/spillway: no contract.
  api::Json state() const;

 private:
  static constexpr Duration kSourceRetryMin = seconds(1);
  static constexpr Duration kSourceRetryMax = seconds(30);

  struct Entry {
    std::optional<StaticPod> wanted;  // nullopt: no manifest has it
    std::string uid;                  // the worker's; empty: none
    PodPtr mirror;                    // null: none
    bool writing = false;             // a create or delete of the mirror is in flight
    bool moved = false;               // the mirror has changed since that began
    BackOff back_off{kSourceRetryMin, kSourceRetryMax};
    std::optional<Instant> retry_at;
  };

  using Files = std::map<std::string, StaticPod>;
  using Problems = std::map<std::string, std::string>;  // by file; of the source itself: ""

  /// The last readable pods of each file, and what is wrong with the source now.
  struct Source {
    Files files;
    Problems problems;
    bool delivered = false;
  };

  void read_files(const StaticManifests& read, Source& source, Now now) const;
  std::map<api::PodKey, const StaticPod*> pods_of(Problems& repeated) const;
  void report(const Problems& repeated);
  bool delivered() const;
  void reconcile_all(Now now);
  void reconcile(const api::PodKey& key, Now now);
  void run_pod(Entry& entry, Now now);
  void write_mirror(const api::PodKey& key, Entry& entry, Now now);
  void on_written(const api::PodKey& key, const char* what, const Result<api::Json>& outcome, Now now);

  AgentContext& context_;
  PodWorkers& workers_;
  std::function<std::shared_ptr<const api::Node>()> node_;
  std::map<api::PodKey, Entry> entries_;
  std::array<Source, kManifestSources> sources_;
  Problems problems_;  // as reported
  std::set<api::PodKey> dirty_;
  bool reconciling_ = false;
  bool synced_ = false;
};

}  // namespace spillway::agent
