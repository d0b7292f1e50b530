// Keeps the configuration of flow control in step with the FlowSchemas and PriorityLevelConfigurations of the cluster.
// A change takes effect at once; many changes in a short time take effect together, kPerSecond times a second. Writes
// nothing. Thread: loop. Source: Kubernetes docs, "API Priority and Fairness"; docs/adr/0079.
#pragma once

#include "apiserver/flow/flow_control.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "base/token_bucket.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::apiserver {

class FlowFeed final : public Collector {
 public:
  static constexpr float kPerSecond = 10;
  static constexpr int kBurst = 64;  // a new cluster is given its schemas and levels one by one

  FlowFeed(Core& core, FlowControl& flows);

  /// The words (policy/flow/schema.h) of the schemas of other names.
  std::size_t words_but(std::string_view name) const;

  std::size_t schemas() const { return schemas_.size(); }

  std::size_t levels() const { return levels_.size(); }

 private:
  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  Core& core_;
  FlowControl& flows_;
  const ResourceCache& stored_schemas_;
  const ResourceCache& stored_levels_;
  std::map<std::string, flow::Schema, std::less<>> schemas_;
  std::map<std::string, flow::Level, std::less<>> levels_;
  std::optional<TokenBucket> pace_;  // made with the first change
  bool is_dirty_ = false;
  bool is_waiting_ = false;  // for a timer
};

}  // namespace spillway::apiserver
