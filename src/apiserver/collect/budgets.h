// The status of PodDisruptionBudgets, counted from the cache; the arithmetic is policy/disruption's. Thread: loop.
// Bounds: kCollectorWritesMax writes in flight. Source: Kubernetes docs, "Specifying a Disruption Budget"; spec "API
// server contract", 13.5.
#pragma once

#include "api/json/json.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/writer.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class BudgetCollector final : public Collector {
 public:
  BudgetCollector(Core& core, Writer& writer);

 private:
  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  void note_namespace(const std::string& ns);
  /// Objects of a kind that scales its pods; null: of another kind.
  const ResourceCache* scaled(std::string_view kind) const;
  /// The budget with its status as it should be.
  api::Json computed(api::Json budget) const;
  /// The summed scale of the controllers of the pods; nullopt if one has none or none that can be scaled.
  std::optional<std::int64_t> expected_by_controllers(const std::vector<ObjectPtr>& pods) const;
  void write(const std::string& key);
  void arm_expiry(const std::string& key, const api::Json& budget);

  Core& core_;
  Writer& writer_;
  const ResourceCache& pods_;
  const ResourceCache& budgets_;
  const ResourceCache& replica_sets_;
  const ResourceCache& replication_controllers_;
  const ResourceCache& deployments_;
  const ResourceCache& stateful_sets_;
  std::set<std::string> dirty_;
  std::set<std::string> busy_;
  std::map<std::string, TimerQueue::Id> expiry_;  // of entries in status.disruptedPods
};

}  // namespace spillway::apiserver
