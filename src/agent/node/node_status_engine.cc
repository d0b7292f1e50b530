#include "agent/node/node_status_engine.h"

#include "agent/node/node_patch.h"
#include "api/codec/codec.h"

#include <algorithm>

namespace spillway::agent {
namespace {

constexpr int kAttempts = 5;      // per sync, as upstream
constexpr double kJitter = 0.04;  // as upstream: nodes that start together drift apart

Duration jittered(Duration period, Rng& rng) {
  return period + std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::nano>(
                      static_cast<double>(period.count()) * kJitter * rng.unit()));
}

}  // namespace

NodeStatusEngine::NodeStatusEngine(AgentContext& context, Rng rng,
                                   std::function<std::shared_ptr<const api::Node>()> cached,
                                   std::function<NodeFacts()> facts)
    : context_(context),
      rng_(rng),
      cached_(std::move(cached)),
      facts_(std::move(facts)),
      registration_(context_.api, context_.log, context_.options.node_name, context_.options.extended_resources,
                    {.initial = [this](Now now) { return node_to_register(now); },
                     .registered = [this](Now now) { on_registered(now); }}) {}

api::Node NodeStatusEngine::node_to_register(Now now) const {
  api::Node initial = initial_node(context_.options, context_.machine);
  record(update(initial, now).events, now);
  return initial;
}

std::string NodeStatusEngine::path(std::string_view subresource) const {
  return client::object_path("v1", "nodes", {}, context_.options.node_name, subresource);
}

std::string NodeStatusEngine::heartbeat_path(std::string_view subresource) const {
  return path(subresource) + context_.heartbeat_query();
}

void NodeStatusEngine::record(const std::vector<NodeEvent>& events, Now now) const {
  for (const NodeEvent& event : events) {
    context_.events.record(node_reference(context_.options.node_name),
                           event.warning ? client::EventType::kWarning : client::EventType::kNormal, event.reason,
                           event.message, now);
  }
}

StatusUpdate NodeStatusEngine::update(api::Node& node, Now now) const {
  StatusUpdate update = update_status(node, context_.options, context_.machine, facts_(), now.wall);
  for (const Error& error : update.errors) {
    context_.log.warning("failed to set some node status fields", {{"error", error.text()}});
  }
  return update;
}

void NodeStatusEngine::start(Now now) {
  context_.events.record(node_reference(context_.options.node_name), client::EventType::kNormal, "Starting",
                         "Starting kubelet.", now);
  if (context_.machine.cgroup_version == 1) {
    context_.events.record(node_reference(context_.options.node_name), client::EventType::kWarning, "CgroupV1",
                           "cgroup v1 support is in maintenance mode, please migrate to cgroup v2", now);
  }
  begin(now);
}

void NodeStatusEngine::begin(Now now) {
  again_ = false;
  last_report_.reset();
  if (context_.options.registration == Registration::kNone) return await_node(now);
  if (timer_) context_.api.cancel(*std::exchange(timer_, std::nullopt));
  state_ = State::kRegistering;
  registration_.start(now);
}

/// The informer reports the node's creation; reading it again covers a stuck watch.
void NodeStatusEngine::await_node(Now now) {
  if (timer_) context_.api.cancel(*timer_);
  state_ = State::kAbsent;
  timer_ = context_.api.at(now.mono + jittered(context_.options.status_update_frequency, rng_), [this](Now) {
    timer_.reset();
    get_node();
  });
}

void NodeStatusEngine::get_node() {
  context_.heartbeats.get(heartbeat_path(),
                          [this](const Result<api::Json>& outcome, Now answered) { on_awaited(outcome, answered); });
}

void NodeStatusEngine::on_awaited(const Result<api::Json>& outcome, Now now) {
  if (state_ != State::kAbsent) return;  // created meanwhile
  outcome ? on_registered(now) : await_node(now);
}

void NodeStatusEngine::on_registered(Now now) {
  state_ = State::kIdle;
  sync(now);
  if (on_registered_) on_registered_(now);
}

api::Json NodeStatusEngine::state(Now now) const {
  return api::Json::object({{"name", context_.options.node_name},
                            {"registered", registered()},
                            {"reportAgeSeconds", age_of(last_report_, now)},
                            {"status", status()}});
}

std::string_view NodeStatusEngine::status() const {
  switch (state_) {
    case State::kAbsent:
      return "absent";
    case State::kRegistering:
      return "registering";
    case State::kIdle:
      return "idle";
    case State::kSyncing:
      return "syncing";
  }
  return {};
}

void NodeStatusEngine::arm(Instant due) {
  if (timer_) context_.api.cancel(*timer_);
  timer_ = context_.api.at(due, [this](Now now) {
    timer_.reset();
    sync(now);
  });
}

void NodeStatusEngine::report_soon(Now now) {
  if (state_ == State::kIdle) return sync(now);
  again_ = state_ == State::kSyncing;
}

void NodeStatusEngine::report_last(std::function<void(Now)> done, Now now) {
  if (!registered()) return done(now);
  on_last_report_ = std::move(done);
  report_soon(now);
}

void NodeStatusEngine::on_node(const api::Node& node, Now now) {
  if (state_ == State::kAbsent) return on_registered(now);
  if (state_ != State::kIdle) return;
  api::Node wanted = node;
  update_status(wanted, context_.options, context_.machine, facts_(), now.wall);
  if (is_changed(node.status, wanted.status)) arm(now.mono + seconds(1));
}

/// The node was deleted. A sync that is running finds that out by its own request.
void NodeStatusEngine::on_node_deleted(Now now) {
  if (state_ != State::kIdle) return;
  context_.log.warning("node was deleted by another client", {{"node", context_.options.node_name}});
  begin(now);
}

void NodeStatusEngine::sync(Now now) {
  if (timer_) context_.api.cancel(*std::exchange(timer_, std::nullopt));
  state_ = State::kSyncing;
  again_ = false;
  const std::shared_ptr<const api::Node> cached = cached_();
  if (cached && is_quiet(cached, now)) return end_sync(now);
  if (cached) {
    try_update(0, cached, now);
  } else {
    try_live(1, now);
  }
}

void NodeStatusEngine::failed(int attempt, const Error& error, Now now) {
  const bool is_answered = error.code == ErrorCode::kConflict;  // the connection works
  if (attempt > 0 && !is_answered && on_repeated_failure_) on_repeated_failure_();
  try_live(attempt + 1, now);
}

void NodeStatusEngine::try_live(int attempt, Now now) {
  if (attempt >= kAttempts) {
    context_.log.warning("node status not reported", {{"node", context_.options.node_name}});
    return end_sync(now);
  }
  context_.heartbeats.get(heartbeat_path(), [this, attempt](const Result<api::Json>& outcome, Now answered) {
    on_live(attempt, outcome, answered);
  });
}

void NodeStatusEngine::on_live(int attempt, const Result<api::Json>& outcome, Now now) {
  if (!outcome && outcome.error().code == ErrorCode::kNotFound) {
    context_.log.warning("node was deleted", {{"node", context_.options.node_name}});
    return begin(now);
  }
  const Result<api::Node> live = outcome ? api::decode<api::Node>(*outcome) : Result<api::Node>(outcome.error());
  live ? try_update(attempt, std::make_shared<const api::Node>(*live), now) : failed(attempt, live.error(), now);
}

bool NodeStatusEngine::is_due(Now now) const {
  return !last_report_ || now.mono - *last_report_ >= context_.options.status_report_frequency ||
         context_.options.status_profile == StatusProfile::kOutOfDisk;
}

bool NodeStatusEngine::is_quiet(const NodePtr& cached, Now now) const {
  return quiet_ && quiet_->node == cached && !is_due(now) &&
         quiet_->runtime_version == context_.machine.container_runtime_version && quiet_->facts == facts_();
}

void NodeStatusEngine::try_update(int attempt, const NodePtr& base, Now now) {
  context_.log.debug("updating node status", {{"node", context_.options.node_name}, {"attempt", attempt}});
  quiet_.reset();
  api::Node wanted = *base;
  const StatusUpdate update = this->update(wanted, now);
  record(update.events, now);
  record_schedulability(wanted, now);
  if (is_due(now) || base->metadata.labels != wanted.metadata.labels || is_changed(base->status, wanted.status)) {
    return patch(attempt, *base, wanted);
  }
  if (update.events.empty() && update.errors.empty()) {
    quiet_ = SyncInputs{base, facts_(), context_.machine.container_runtime_version};
  }
  end_sync(now);
}

/// The patch requires that version: an earlier patch without an answer in time may still arrive when the next one is
/// written.
void NodeStatusEngine::patch(int attempt, const api::Node& base, const api::Node& wanted) {
  api::Json patch = node_patch(base, wanted);
  patch["metadata"]["resourceVersion"] = base.metadata.resource_version;
  context_.heartbeats.patch(
      heartbeat_path("status"), client::PatchType::kStrategicMerge, std::move(patch),
      [this, attempt](const Result<api::Json>& outcome, Now answered) { on_patched(attempt, outcome, answered); });
}

void NodeStatusEngine::on_patched(int attempt, const Result<api::Json>& outcome, Now now) {
  if (!outcome) return failed(attempt, outcome.error(), now);
  last_report_ = now.mono;
  end_sync(now);
}

void NodeStatusEngine::record_schedulability(const api::Node& node, Now now) {
  if (std::exchange(unschedulable_, node.spec.unschedulable) == node.spec.unschedulable) return;
  record({status_event(node.metadata.name, unschedulable_ ? "NodeNotSchedulable" : "NodeSchedulable")}, now);
}

void NodeStatusEngine::end_sync(Now now) {
  state_ = State::kIdle;
  if (again_) return sync(now);
  if (on_last_report_) std::exchange(on_last_report_, {})(now);
  arm(now.mono + jittered(context_.options.status_update_frequency, rng_));
}

}  // namespace spillway::agent
