// Records a run: gets every write of the store, reads the state of machines and controllers on a grid of virtual time,
// and reads the journals of agents. Changes nothing: the run makes the same writes with it.
// Thread: one. Cost: at each point of the grid, every node, zone and pod once. Bounds: those of RunHistory.
#pragma once

#include "agent/contract/journal.h"
#include "base/alive.h"
#include "sim/history/run_history.h"
#include "sim/run_observer.h"
#include "store/store.h"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {

class Recorder final : public RunObserver {
 public:
  struct Options {
    std::string name;
    std::string story;
    std::uint64_t seed = 0;
    /// The time between two samples; nullopt: 1 s up to 200 nodes, 5 s up to 1,000, else 10 s.
    std::optional<Duration> interval = std::nullopt;
    /// Bounds of the history, for tests of them.
    std::size_t points_max = RunHistory::kPointsMax;
    std::size_t events_max = RunHistory::kEventsMax;
    std::size_t decisions_max = RunHistory::kDecisionsMax;
  };

  explicit Recorder(Options options);
  ~Recorder() override;

  void on_begin(Cluster& cluster) override;
  void on_timeline(Cluster& cluster) override;
  void on_end(Cluster& cluster) override;

  /// Complete after on_end().
  const RunHistory& history() const { return history_; }

 private:
  struct PodSeen {
    std::int32_t node = -1;
    bool evicted = false;
    bool deleting = false;
    bool unplaced = false;
  };

  void add(Series& series, std::int32_t value);
  void add(EventKind kind, std::int32_t node, std::string subject, std::string text);
  void add(std::int32_t node, policy::Decision decision);
  std::int32_t now_ms() const;
  std::int32_t zone_place(const std::string& name);
  std::int32_t brake_place(std::string_view code);

  void on_change(const store::Change& change);
  void on_node(const std::string& name);
  void on_pod(const std::string& ns, const std::string& name);
  void on_journal(std::size_t node, const agent::JournalLine& line);
  void put_state(std::size_t node, const NodeState& state);

  /// Records the state of everything, and sets the next time for it.
  void observe();
  void observe_machines();
  void observe_memory(std::size_t node);
  void learn_thresholds(std::size_t node);
  void observe_controllers();
  void observe_pods();
  void record_machines(const std::map<std::pair<std::string, Machine>, std::size_t>& changed);

  Options options_;
  RunHistory history_;
  Cluster* cluster_ = nullptr;
  std::map<std::string, std::int32_t> node_places_;
  std::vector<NodeState> states_;
  std::vector<Machine> machines_;  // state of the machines at the last sample
  std::vector<bool> was_ready_;    // once
  std::vector<bool> was_up_;
  std::vector<std::uint64_t> oom_kills_;
  std::map<std::string, PodSeen> pods_;      // by uid
  std::set<std::string> to_explain_;         // nodes that have changed since the last sample
  std::map<std::string, std::string> held_;  // subject of a held act, and the brake that holds it
  std::size_t points_ = 0;
  Alive alive_;
};

}  // namespace spillway::sim
