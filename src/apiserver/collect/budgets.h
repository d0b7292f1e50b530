// The status of PodDisruptionBudgets, counted from the cache by a BudgetCounter. After a change of a pod only those
// budgets are counted again that select it before or after, and only if their counts change. Budgets are counted one by
// one, those of each namespace in turn, a slice at a time; requests are served in between.
// Thread: loop. Bounds: kCollectorWritesMax writes in flight; kSliceSteps steps of counting in kPause. Source:
// Kubernetes docs, "Specifying a Disruption Budget"; spec "API server contract", 13.5.
#pragma once

#include "api/json/json.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/subresource/budget_counter.h"
#include "apiserver/write/writer.h"

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace spillway::apiserver {

class BudgetCollector final : public Collector {
 public:
  /// About 2 ms of counting; of the rest of kPause others have the loop.
  static constexpr std::size_t kSliceSteps = 30'000;
  static constexpr Duration kPause = milliseconds(10);

  BudgetCollector(Core& core, Writer& writer);

  /// Number of steps counted so far.
  std::size_t steps() const { return steps_; }

 private:
  /// The disruption budgets of one namespace, and those of them that wait for a count.
  struct Place {
    std::map<std::string, api::LabelSelector, std::less<>> selectors;  // by key
    std::size_t steps = 0;                                             // steps of a comparison with all of them
    std::deque<std::string> waiting;                                   // keys of budgets to be counted
    std::set<std::string, std::less<>> dirty;                          // the same keys, for look-ups
    bool all = false;                                                  // every budget is to be counted
  };

  /// A count that is under way.
  struct Survey {
    ObjectPtr budget;
    BudgetCounter::Count count;
  };

  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  void know(const ObjectPtr& budget);
  void forget(const StoredObject& budget);
  void mark(const std::string& key);
  void on_budget(const EventPtr& event);
  void on_pod(const CacheEvent& event);
  void mark_all(std::string_view ns);
  /// The next of the namespace that no write is under way for; null: none.
  ObjectPtr take(const std::string& ns, Place& place);
  /// The next budget to be counted, of the namespace after the last one's; null: none.
  ObjectPtr next();
  /// False: the slice is used up.
  bool survey_next(std::size_t& left);
  /// The budget's document with its computed status.
  api::Json computed(api::Json budget, const BudgetSurvey& survey) const;
  void write(const ObjectPtr& budget, BudgetSurvey survey);
  void arm_expiry(const std::string& key, const api::Json& budget);
  void pause();

  Core& core_;
  Writer& writer_;
  const BudgetCounter counter_;
  const ResourceCache& budgets_;
  std::map<std::string, Place, std::less<>> places_;  // by namespace
  std::string last_;                                  // the namespace that was served last
  std::optional<Survey> survey_;
  bool pauses_ = false;
  std::size_t steps_ = 0;
  std::set<std::string> busy_;
  std::map<std::string, TimerQueue::Id> expiry_;  // timers for entries in status.disruptedPods
};

}  // namespace spillway::apiserver
