// The status of ResourceQuotas, counted from the cache: when a quota is new or changed, when a counted object is gone,
// and every few minutes. The pause between two counts of a quota is long enough to keep the loop free for others.
//
// A charge (QuotaLedger) raises `used` before its object exists. A count therefore raises `used` at once, and lowers it
// only while no charged write of the namespace is on its way into this cache; other servers' writes are given kSettle
// from the last change of the quota. Thread: loop. Bounds: kCollectorWritesMax writes in flight. Source: Kubernetes
// docs, "Resource Quotas"; spec "Scheduler and workloads", 18.
#pragma once

#include "api/json/json.h"
#include "api/object/resource_quota.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/writer.h"
#include "base/time.h"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace spillway::apiserver {

class QuotaCollector final : public Collector {
 public:
  QuotaCollector(Core& core, Writer& writer);

 private:
  /// State of a quota that its object does not have.
  struct Known {
    std::optional<Instant> changed;  // was seen to have changed then; nullopt: since the last count
    Instant not_before;              // the next count
    std::optional<Instant> due;
  };

  /// The result of a count, and how many objects were visited for it.
  struct Count {
    api::ResourceList used;
    std::size_t visited = 0;
  };

  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  void on_quota(const EventPtr& event);
  /// Plans a count at `due`, or earlier if one is planned already.
  void plan(const std::string& key, Instant due);
  void unplan(const std::string& key, Known& known);
  /// Counts the quotas that are due; called in a wake-up, because events of the store have no time.
  void count_due();
  void arm();
  void write(const std::string& key);
  Count count(const api::ResourceQuota& quota) const;
  void count_resource(const ResourceCache& objects, const api::ResourceQuota& quota, Count& count) const;
  bool may_lower(const std::string& key, const std::string& ns) const;
  /// The quota's document with its computed status.
  api::Json computed(const std::string& key, api::Json quota);

  Core& core_;
  Writer& writer_;
  const ResourceCache& quotas_;
  const ResourceCache& pods_;
  std::map<std::string, Known, std::less<>> known_;
  std::set<std::pair<Instant, std::string>> order_;  // keys of quotas, by the time of their next count
  std::set<std::string> busy_;
  std::optional<TimerQueue::Id> timer_;
};

}  // namespace spillway::apiserver
