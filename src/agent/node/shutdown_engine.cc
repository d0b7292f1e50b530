#include "agent/node/shutdown_engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace spillway::agent {
namespace {

constexpr Duration kReportPoll = milliseconds(50);

double unix_seconds(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

}  // namespace

ShutdownEngine::ShutdownEngine(AgentContext& context, Pods& pods, telemetry::Registry* metrics,
                               std::function<void(Now)> on_begin)
    : context_(context), pods_(pods), metrics_(metrics), on_begin_(std::move(on_begin)) {}

bool ShutdownEngine::begin(std::function<void(Now)> done, Now now) {
  if (active_) {
    done_ = std::move(done);
    return true;
  }
  const std::vector<PriorityGrace> groups = shutdown_groups(context_.options.shutdown);
  if (groups.empty() || shutdown_delay_seconds(groups) <= 0) return false;
  active_ = true;
  done_ = std::move(done);
  context_.events.record(node_reference(context_.options.node_name), client::EventType::kNormal, "Shutdown",
                         "Shutdown manager detected shutdown event", now);
  if (metrics_ != nullptr) {
    metrics_
        ->gauge("kubelet_graceful_shutdown_start_time_seconds",
                "Last graceful shutdown start time since unix epoch in seconds")
        .set(unix_seconds(now.wall));
  }
  std::vector<ShutdownPod> pods;
  for (const api::Pod* pod : pods_.active()) {
    pods.push_back({.name = pod->metadata.uid,
                    .priority = pod->spec.priority.value_or(0),
                    .spec_grace_seconds = pod->spec.termination_grace_period_seconds});
  }
  context_.log.info("node is shutting down", {{"pods", static_cast<std::int64_t>(pods.size())},
                                              {"delay_seconds", shutdown_delay_seconds(groups)}});
  steps_ = plan_shutdown(groups, pods);
  if (on_begin_) on_begin_(now);
  next_group(now);
  return true;
}

api::Json ShutdownEngine::state() const {
  api::Json groups = api::Json::array();
  for (const PriorityGrace& group : shutdown_groups(context_.options.shutdown)) {
    groups.if_array()->push_back(
        api::Json::object({{"graceSeconds", group.grace_seconds}, {"priority", std::int64_t{group.priority}}}));
  }
  api::Json ending = api::Json::array();
  for (const std::string& uid : ending_) ending.if_array()->emplace_back(uid);
  return api::Json::object({{"active", active_},
                            {"ending", std::move(ending)},
                            {"groups", std::move(groups)},
                            {"groupsBegun", static_cast<std::uint64_t>(next_step_)}});
}

void ShutdownEngine::next_group(Now now) {
  if (timer_) context_.api.cancel(*std::exchange(timer_, std::nullopt));
  ending_.clear();
  while (next_step_ < steps_.size()) {
    const ShutdownStep step = steps_[next_step_++];
    for (const ShutdownPodGrace& pod : step.pods) {
      if (pods_.is_finished(pod.name)) continue;
      ending_.insert(pod.name);
      ended_.push_back(pod.name);
    }
    if (ending_.empty()) continue;
    context_.log.info("shutting down pods", {{"priority", std::int64_t{step.group.priority}},
                                             {"grace_seconds", step.group.grace_seconds},
                                             {"pods", static_cast<std::int64_t>(ending_.size())}});
    timer_ = context_.api.at(now.mono + seconds(step.group.grace_seconds), [this](Now later) {
      timer_.reset();
      context_.log.warning("pods are still ending, their time is over",
                           {{"pods", static_cast<std::int64_t>(ending_.size())}});
      next_group(later);
    });
    for (const ShutdownPodGrace& pod : step.pods) {
      if (!pods_.is_finished(pod.name)) pods_.shut_down(pod.name, pod.grace_seconds, now);
    }
    return;
  }
  wait_for_reports(now.mono + kReportWait, now);
}

void ShutdownEngine::on_pod_finished(const std::string& uid, Now now) {
  if (ending_.erase(uid) > 0 && ending_.empty()) next_group(now);
}

void ShutdownEngine::wait_for_reports(Instant deadline, Now now) {
  const bool written = std::ranges::all_of(ended_, [this](const std::string& uid) { return pods_.is_reported(uid); });
  if (!written && now.mono < deadline) {
    timer_ = context_.api.at(now.mono + kReportPoll, [this, deadline](Now later) {
      timer_.reset();
      wait_for_reports(deadline, later);
    });
    return;
  }
  if (metrics_ != nullptr) {
    metrics_
        ->gauge("kubelet_graceful_shutdown_end_time_seconds",
                "Last graceful shutdown end time since unix epoch in seconds")
        .set(unix_seconds(now.wall));
  }
  context_.log.info("pods are shut down", {{"pods", static_cast<std::int64_t>(ended_.size())}});
  if (done_) std::exchange(done_, {})(now);
}

}  // namespace spillway::agent
