// Port: an observer of a run, e.g. one that draws it. Thread: one. Invariant: an observed run makes the same writes as
// one that is not observed.
#pragma once

namespace spillway::sim {

class Cluster;

class RunObserver {
 public:
  RunObserver() = default;
  virtual ~RunObserver() = default;
  RunObserver(const RunObserver&) = delete;
  RunObserver& operator=(const RunObserver&) = delete;

  /// Called before time moves.
  virtual void on_begin(Cluster& cluster) = 0;

  /// Called when the timeline begins: times in an outcome count from here.
  virtual void on_timeline(Cluster& /*cluster*/) {}

  /// Called after the last event, while the cluster still exists.
  virtual void on_end(Cluster& cluster) = 0;
};

}  // namespace spillway::sim
