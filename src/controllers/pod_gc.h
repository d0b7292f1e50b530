// Deletes pods that nobody else will: on nodes that are gone, stuck in termination without a node or on an
// out-of-service node, and finished ones above a threshold. Thread: loop. Runs every 20 s; a missing node waits 40 s in
// quarantine and is asked for once more. Source: Kubernetes docs, "Garbage collection of Pods"; spec "Node lifecycle",
// S13.
#pragma once

#include "controllers/owned_pods.h"
#include "controllers/shared.h"

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
    /// Finished pods that are kept; 0 or less: all of them.
    std::int64_t terminated_threshold = 12500;
  };

  PodGc(Shared shared, Options options) : shared_(shared), options_(options) {}

  PodGc(const PodGc&) = delete;
  PodGc& operator=(const PodGc&) = delete;

  void start(Now now) { pass(now); }

 private:
  void pass(Now now);
  void collect_orphans(Now now);
  void confirm_gone(const std::string& node);
  void collect_out_of_service();
  void collect_unscheduled();
  void collect_terminated();
  /// Marks the pod Failed unless it has ended already, then deletes it without grace.
  void finish(const PodPtr& pod, std::string_view message);
  void force_delete(const api::Pod& pod);

  Shared shared_;
  Options options_;
  std::map<std::string, Instant> quarantined_;  // missing node → since when
  std::set<std::string> in_progress_;           // uids of pods being deleted
};

}  // namespace spillway::controllers
