#include "controllers/nodes/node_status_writer.h"

#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "controllers/shared/paths.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::controllers {

namespace {

using lifecycle::Assessment;

api::Json condition_json(const api::NodeCondition& condition) {
  api::Json json = api::Json::object({{"type", condition.type},
                                      {"status", condition.status},
                                      {"reason", condition.reason},
                                      {"message", condition.message}});
  if (condition.last_heartbeat_time) json["lastHeartbeatTime"] = api::format_time(*condition.last_heartbeat_time);
  if (condition.last_transition_time) json["lastTransitionTime"] = api::format_time(*condition.last_transition_time);
  return json;
}

/// The patch has only the conditions that change; it is refused if the node has changed since it was read.
api::Json status_patch(const api::Node& node, const std::vector<api::NodeCondition>& wanted) {
  api::Json::Array conditions;
  for (const api::NodeCondition& condition : wanted) {
    const api::NodeCondition* known = api::find_condition(node.status.conditions, condition.type);
    if (known == nullptr || *known != condition) conditions.push_back(condition_json(condition));
  }
  return api::Json::object({{"metadata", api::Json::object({{"resourceVersion", node.metadata.resource_version},
                                                            {"uid", node.metadata.uid}})},
                            {"status", api::Json::object({{"conditions", api::Json(std::move(conditions))}})}});
}

bool carries_our_write(const api::Node& node, const Assessment& assessment) {
  const api::NodeCondition* wanted = api::find_condition(*assessment.write, "Ready");
  const api::NodeCondition* found = api::find_condition(node.status.conditions, "Ready");
  return wanted != nullptr && found != nullptr && *wanted == *found;
}

}  // namespace

NodeStatusWriter::NodeStatusWriter(Shared shared, lifecycle::NodeMonitor& monitor, LifecycleMetrics& metrics,
                                   lifecycle::HealthConfig health, Options options, Settled settled,
                                   Abandoned abandoned)
    : shared_(shared),
      monitor_(monitor),
      metrics_(metrics),
      health_(health),
      options_(options),
      settled_(std::move(settled)),
      abandoned_(std::move(abandoned)) {}

void NodeStatusWriter::abandon(const std::string& name, Now now) {
  writing_.erase(name);
  abandoned_(name, now);
}

void NodeStatusWriter::write(const NodePtr& node, const Assessment& assessment, Now) {
  writing_.insert(node->metadata.name);
  attempt(node, assessment, 1);
}

void NodeStatusWriter::attempt(const NodePtr& node, const Assessment& assessment, int number) {
  shared_.client.patch(node_path(node->metadata.name, "status"), client::PatchType::kStrategicMerge,
                       status_patch(*node, *assessment.write),
                       [this, node, assessment, number](const Result<api::Json>& outcome, Now now) {
                         on_answer(node, assessment, number, outcome, now);
                       });
}

void NodeStatusWriter::on_answer(const NodePtr& node, const Assessment& assessment, int attempt,
                                 const Result<api::Json>& outcome, Now now) {
  const std::string& name = node->metadata.name;
  if (outcome) {
    auto written = api::decode<api::Node>(*outcome);
    return on_written(written ? std::make_shared<const api::Node>(*std::move(written)) : node, assessment, now);
  }
  if (outcome.error().code == ErrorCode::kNotFound) return abandon(name, now);
  if (attempt >= options_.attempts_max) {
    metrics_.status_write_failures.add();
    shared_.log.warning("node status was not written", {{"node", name}, {"error", outcome.error().text()}});
    return abandon(name, now);
  }
  reread(name, assessment, attempt, now);
}

void NodeStatusWriter::on_written(const NodePtr& node, const Assessment& assessment, Now now) {
  const std::string& name = node->metadata.name;
  metrics_.status_writes.add();
  shared_.log.info("node is silent", {{"node", name}, {"reason", policy::render(assessment.reason(health_))}});
  if (!shared_.nodes.cache().find(name)) return abandon(name, now);
  writing_.erase(name);
  monitor_.confirm_written(*node, assessment, now);
  settled_(node, assessment, now);
}

void NodeStatusWriter::reread(const std::string& name, const Assessment& before, int attempt, Now now) {
  const auto on_reread = [this, name, before, attempt](const Result<api::Json>& outcome, Now then) {
    auto node = outcome ? api::decode<api::Node>(*outcome) : Result<api::Node>(outcome.error());
    const auto cached = shared_.nodes.cache().find(name);
    if (!node || !cached || cached->metadata.uid != node->metadata.uid) return abandon(name, then);
    const auto fresh = std::make_shared<const api::Node>(*std::move(node));
    if (carries_our_write(*fresh, before)) return on_written(fresh, before, then);  // only its answer was lost
    const auto lease = shared_.leases.cache().find("kube-node-lease/" + name);
    const Assessment assessment = monitor_.assess(*fresh, lease.get(), then);
    if (assessment.write) return this->attempt(fresh, assessment, attempt + 1);
    writing_.erase(name);  // the node has posted meanwhile
    settled_(fresh, assessment, then);
  };
  shared_.client.at(now.mono + options_.retry_wait,
                    [this, name, on_reread](Now) { shared_.client.get(node_path(name), on_reread); });
}

}  // namespace spillway::controllers
