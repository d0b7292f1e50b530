// Deletes pods that only the garbage collector deletes, by the rule lifecycle::pods_to_collect. A node that pods name
// and the cache does not have waits 40 s in quarantine and is read once more before its pods are deleted.
// Thread: loop. Runs every 20 s. Bounds: one deletion per pod in flight; what fails is tried again by the next run.
// Source: Kubernetes docs, "Pod Lifecycle", garbage collection of pods; spec "Node lifecycle", S13.
#pragma once

#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "policy/lifecycle/pod_gc.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace spillway::controllers {

class PodGc {
 public:
  struct Options {
    Duration period = seconds(20);
    Duration quarantine = seconds(40);
    lifecycle::FinishedKept finished;
  };

  PodGc(Shared shared, telemetry::Registry& metrics, Options options)
      : shared_(shared), metrics_(metrics), options_(options) {}

  PodGc(const PodGc&) = delete;
  PodGc& operator=(const PodGc&) = delete;

  void start(Now now) { pass(now); }

 private:
  void pass(Now now);
  void collect(Now now);
  void watch_missing_nodes(Now now);
  void confirm_gone(const std::string& node);
  void on_node_read(const std::string& node, const Result<api::Json>& outcome, Now now);
  lifecycle::PodGcView view();
  /// Marks the pod Failed unless it has ended already, then deletes it without grace.
  void finish(const PodPtr& pod, lifecycle::PodGarbage reason, Now now);
  void on_marked_failed(const PodPtr& pod, lifecycle::PodGarbage reason, const Result<api::Json>& outcome);
  void force_delete(const PodPtr& pod, lifecycle::PodGarbage reason);
  void on_deleted(const PodPtr& pod, lifecycle::PodGarbage reason, const Result<api::Json>& outcome, Now now);
  /// Records an event about the owners of finished pods that were removed by the fair rule. The owners outlive their
  /// pods, and so does the event.
  void record_collected(Now now);
  void count(std::string_view name, std::string_view help, const api::Pod& pod, lifecycle::PodGarbage reason);

  Shared shared_;
  telemetry::Registry& metrics_;
  Options options_;
  std::vector<const api::Pod*> pods_;           // pods of the run under way
  std::map<std::string, Instant> quarantined_;  // missing nodes, since when
  std::set<std::string, std::less<>> gone_;     // confirmed by the API server
  std::set<std::string> in_progress_;           // uids
  std::vector<PodPtr> unrecorded_;              // deleted, as long as others are in progress
};

}  // namespace spillway::controllers
