#include "policy/lifecycle/lines/timeout_evictions.h"

#include <optional>

namespace spillway::lifecycle {

void TimeoutEvictions::on_opening(const NodeMonitor::Opening& opening) {
  for (const std::string& name : opening.deleted) status_.erase(name);
  for (const api::Node* node : opening.added) cancel(*node);
}

TimeoutEvictions::Step TimeoutEvictions::decide_eviction(const api::Node& node, const Assessment& assessment, Now now) {
  if (!assessment.current) return Step::kNone;
  return decide_eviction(node, *assessment.observed, now);
}

TimeoutEvictions::Step TimeoutEvictions::decide_eviction_of_new_pod(const api::Node& node, Now now) {
  const std::optional<HealthRecord> record = monitor_.find_record(node.metadata.name);
  if (!record || !record->ready) return Step::kNone;
  return decide_eviction(node, record->ready->status, now);
}

TimeoutEvictions::Step TimeoutEvictions::decide_eviction(const api::Node& node, Readiness readiness, Now now) {
  if (readiness == Readiness::kTrue) {
    cancel(node);
    return Step::kNone;
  }
  const std::string& name = node.metadata.name;
  const std::optional<HealthRecord> record = monitor_.find_record(name);
  if (!record) return Step::kNone;
  const Instant since = readiness == Readiness::kFalse ? record->transition : record->probe;
  if (now.mono <= since + timeout_) return Step::kNone;
  if (status_per_node_ && monitor_.knows(name)) {
    const auto known = status_.find(name);
    if (known != status_.end() && known->second == Status::kEvicted) return Step::kDeleteAgain;
    set(name, Status::kToBeEvicted);
  }
  return monitor_.enqueue(node, now) ? Step::kQueued : Step::kNone;
}

void TimeoutEvictions::set(std::string_view node, Status status) {
  status_.insert_or_assign(std::string(node), status);
  monitor_.keep_due(node, true);
}

void TimeoutEvictions::evicted(std::string_view node) {
  if (monitor_.knows(node)) set(node, Status::kEvicted);
}

void TimeoutEvictions::cancel(const api::Node& node) {
  status_.erase(node.metadata.name);
  monitor_.keep_due(node.metadata.name, false);
  monitor_.dequeue(node);
}

void TimeoutEvictions::cancel_all() {
  for (const auto& [name, status] : status_) monitor_.keep_due(name, false);
  status_.clear();
  monitor_.dequeue_all();
}

}  // namespace spillway::lifecycle
