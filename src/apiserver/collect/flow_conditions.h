// The condition Dangling of FlowSchemas: True while their priority level does not exist. Thread: loop. Bounds: one
// write in flight; a failed one is retried after kRetry. Source: Kubernetes API reference, FlowSchemaStatus.
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/writer.h"

#include <set>
#include <string>

namespace spillway::apiserver {

class FlowConditions final : public Collector {
 public:
  static constexpr Duration kRetry = seconds(10);

  FlowConditions(Core& core, Writer& writer);

 private:
  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  /// True if the schema lacks the condition, or has another one.
  bool differs(const StoredObject& schema) const;
  void write(const StoredObject& schema);
  void on_written(const std::string& name, const api::StatusResult<Written>& result);

  Core& core_;
  Writer& writer_;
  const ResourceCache& schemas_;
  const ResourceCache& levels_;
  std::set<std::string> due_;  // names
  bool is_writing_ = false;
};

}  // namespace spillway::apiserver
