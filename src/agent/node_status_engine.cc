#include "agent/node_status_engine.h"

#include "api/codec.h"

#include <algorithm>

namespace spillway::agent {
namespace {

constexpr Duration kRegistrationBackOffMax = seconds(7);
constexpr int kAttempts = 5;
constexpr double kJitter = 0.04;

Duration jittered(Duration period, Rng& rng) {
  return period + std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::nano>(
                      static_cast<double>(period.count()) * kJitter * rng.unit()));
}

}  // namespace

NodeStatusEngine::NodeStatusEngine(AgentContext& context, Rng rng,
                                   std::function<std::shared_ptr<const api::Node>()> cached,
                                   std::function<NodeFacts()> facts)
    : context_(context), rng_(rng), cached_(std::move(cached)), facts_(std::move(facts)) {}

std::string NodeStatusEngine::path(std::string_view subresource) const {
  return client::object_path("v1", "nodes", {}, context_.options.node_name, subresource);
}

void NodeStatusEngine::record(const std::vector<NodeEvent>& events, Now now) {
  for (const NodeEvent& event : events) {
    context_.events.record(node_reference(context_.options.node_name),
                           event.warning ? client::EventType::kWarning : client::EventType::kNormal, event.reason,
                           event.message, now);
  }
}

void NodeStatusEngine::start(Now now) {
  context_.events.record(node_reference(context_.options.node_name), client::EventType::kNormal, "Starting",
                         "Starting kubelet.", now);
  try_register(now);
}

void NodeStatusEngine::try_register(Now now) {
  api::Node initial = initial_node(context_.options, context_.machine);
  record(update_status(initial, context_.options, context_.machine, facts_(), now.wall), now);
  context_.api.create(
      client::object_path("v1", "nodes", {}), api::encode(initial),
      [this, initial](const Result<api::Json>& outcome, Now answered) {
        if (outcome) {
          context_.log.info("node registered", {{"node", context_.options.node_name}});
          last_report_ = answered.mono;
          on_registered(answered);
        } else if (outcome.error().code == ErrorCode::kAlreadyExists || outcome.error().code == ErrorCode::kForbidden) {
          reconcile(initial, answered);
        } else {
          context_.log.warning("node not registered",
                               {{"node", context_.options.node_name}, {"error", outcome.error().text()}});
          retry_registration(answered);
        }
      });
}

void NodeStatusEngine::reconcile(const api::Node& initial, Now) {
  context_.api.get(path(), [this, initial](const Result<api::Json>& outcome, Now answered) {
    const Result<api::Node> existing = outcome ? api::decode<api::Node>(*outcome) : Result<api::Node>(outcome.error());
    if (!existing) {
      context_.log.warning("existing node not read", {{"error", existing.error().text()}});
      return retry_registration(answered);
    }
    api::Node wanted = *existing;
    if (!reconcile_metadata(initial, wanted)) return on_registered(answered);
    context_.api.patch(path("status"), client::PatchType::kStrategicMerge, node_patch(*existing, wanted),
                       [this](const Result<api::Json>& patched, Now then) {
                         patched ? on_registered(then) : retry_registration(then);
                       });
  });
}

void NodeStatusEngine::retry_registration(Now now) {
  context_.api.at(now.mono + registration_back_off_, [this](Now later) { try_register(later); });
  registration_back_off_ = std::min(registration_back_off_ * 2, kRegistrationBackOffMax);
}

void NodeStatusEngine::on_registered(Now now) {
  registered_ = true;
  sync(now);
}

void NodeStatusEngine::arm(Instant due) {
  if (timer_) context_.api.cancel(*timer_);
  timer_ = context_.api.at(due, [this](Now now) {
    timer_.reset();
    sync(now);
  });
}

void NodeStatusEngine::report_soon(Now now) {
  if (!registered_) return;
  if (syncing_) {
    again_ = true;
  } else {
    sync(now);
  }
}

void NodeStatusEngine::on_node(const api::Node& node, Now now) {
  if (!registered_ || syncing_) return;
  api::Node wanted = node;
  update_status(wanted, context_.options, context_.machine, facts_(), now.wall);
  if (is_changed(node.status, wanted.status)) arm(now.mono + seconds(1));
}

void NodeStatusEngine::sync(Now now) {
  if (timer_) context_.api.cancel(*std::exchange(timer_, std::nullopt));
  syncing_ = true;
  again_ = false;
  const std::shared_ptr<const api::Node> cached = cached_();
  if (cached) {
    try_update(0, *cached, now);
  } else {
    try_live(1, now);
  }
}

void NodeStatusEngine::try_live(int attempt, Now now) {
  if (attempt >= kAttempts) {
    context_.log.warning("node status not reported", {{"node", context_.options.node_name}});
    return end_sync(now);
  }
  context_.api.get(path(), [this, attempt](const Result<api::Json>& outcome, Now answered) {
    const Result<api::Node> live = outcome ? api::decode<api::Node>(*outcome) : Result<api::Node>(outcome.error());
    live ? try_update(attempt, *live, answered) : try_live(attempt + 1, answered);
  });
}

void NodeStatusEngine::try_update(int attempt, const api::Node& base, Now now) {
  api::Node wanted = base;
  const std::vector<NodeEvent> events = update_status(wanted, context_.options, context_.machine, facts_(), now.wall);
  const bool due = !last_report_ || now.mono - *last_report_ >= context_.options.status_report_frequency;
  const bool changed = is_changed(base.status, wanted.status) || base.metadata.labels != wanted.metadata.labels;
  if (!due && !changed) return end_sync(now);
  if (attempt == 0 || events.empty()) record(events, now);
  context_.api.patch(path("status"), client::PatchType::kStrategicMerge, node_patch(base, wanted),
                     [this, attempt](const Result<api::Json>& outcome, Now answered) {
                       if (!outcome) return try_live(attempt + 1, answered);
                       last_report_ = answered.mono;
                       end_sync(answered);
                     });
}

void NodeStatusEngine::end_sync(Now now) {
  syncing_ = false;
  if (again_) return sync(now);
  arm(now.mono + jittered(context_.options.status_update_frequency, rng_));
}

}  // namespace spillway::agent
