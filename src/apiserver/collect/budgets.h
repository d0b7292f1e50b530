// The status of PodDisruptionBudgets, counted from the cache by a BudgetCounter. Thread: loop.
// Bounds: kCollectorWritesMax writes in flight. Source: Kubernetes docs, "Specifying a Disruption Budget"; spec "API
// server contract", 13.5.
#pragma once

#include "api/json/json.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/subresource/budget_counter.h"
#include "apiserver/write/writer.h"

#include <map>
#include <set>
#include <string>

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
  /// The budget with its status as it should be.
  api::Json computed(api::Json budget) const;
  void write(const std::string& key);
  void arm_expiry(const std::string& key, const api::Json& budget);

  Core& core_;
  Writer& writer_;
  const BudgetCounter counter_;
  const ResourceCache& budgets_;
  std::set<std::string> dirty_;
  std::set<std::string> busy_;
  std::map<std::string, TimerQueue::Id> expiry_;  // of entries in status.disruptedPods
};

}  // namespace spillway::apiserver
