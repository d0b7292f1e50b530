#include "controllers/nodes/node_status_writer.h"

#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "controllers/shared/paths.h"
#include "controllers/shared/step_run.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

namespace spillway::controllers {

enum class NodeStatusStep : std::uint8_t {
  kWrite,   // write the conditions
  kPause,   // after a refused or lost write: wait for `retry_wait`
  kReread,  // read the node, and assess it again; back to kWrite if it is still silent
};

/// The write of one node's conditions, with its attempts. Thread: loop.
class NodeStatusWrite final : public StepRun<NodeStatusWrite, NodeStatusStep> {
 public:
  using NodePtr = NodeStatusWriter::NodePtr;
  using Step = NodeStatusStep;

  /// `writer` must outlive the write.
  NodeStatusWrite(NodeStatusWriter& writer, NodePtr node, lifecycle::Assessment assessment);

 private:
  Next run(Step step, Now now) override;
  Next write();
  Next on_answer(const Result<api::Json>& outcome, Now now);
  Next pause(Now now);
  Next reread();
  Next on_reread(const Result<api::Json>& outcome, Now now);
  Next end_written(Now now);
  Next finish(Now now);
  Next abandon(Now now);

  NodeStatusWriter& writer_;
  std::string name_;
  NodePtr node_;                      // node as read last
  lifecycle::Assessment assessment_;  // for that state
  int attempts_ = 0;
};

namespace {

using lifecycle::Assessment;

constexpr std::array kNodeStatusSteps = {NodeStatusStep::kWrite, NodeStatusStep::kPause, NodeStatusStep::kReread};

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
                                   lifecycle::HealthConfig health, Options options, Finished finished,
                                   Abandoned abandoned)
    : shared_(shared),
      monitor_(monitor),
      metrics_(metrics),
      health_(health),
      options_(options),
      finished_(std::move(finished)),
      abandoned_(std::move(abandoned)) {}

void NodeStatusWriter::write(const NodePtr& node, const Assessment& assessment, Now now) {
  writing_.insert(node->metadata.name);
  std::make_shared<NodeStatusWrite>(*this, node, assessment)->advance(now);
}

NodeStatusWrite::NodeStatusWrite(NodeStatusWriter& writer, NodePtr node, Assessment assessment)
    : StepRun(kNodeStatusSteps),
      writer_(writer),
      name_(node->metadata.name),
      node_(std::move(node)),
      assessment_(std::move(assessment)) {}

Next NodeStatusWrite::run(Step step, Now now) {
  switch (step) {
    case Step::kWrite:
      return write();
    case Step::kPause:
      return pause(now);
    case Step::kReread:
      return reread();
  }
  return Next::kEnd;
}

Next NodeStatusWrite::write() {
  ++attempts_;
  writer_.shared_.client.patch(node_path(name_, "status"), client::PatchType::kStrategicMerge,
                               status_patch(*node_, *assessment_.write), then(&NodeStatusWrite::on_answer));
  return Next::kWait;
}

Next NodeStatusWrite::on_answer(const Result<api::Json>& outcome, Now now) {
  if (outcome) {
    if (auto written = api::decode<api::Node>(*outcome)) {
      node_ = std::make_shared<const api::Node>(*std::move(written));
    }
    return end_written(now);
  }
  if (outcome.error().code == ErrorCode::kNotFound) return abandon(now);
  if (attempts_ < writer_.options_.attempts_max) return Next::kStep;
  writer_.metrics_.status_write_failures.add();
  writer_.shared_.log.warning("node status was not written", {{"node", name_}, {"error", outcome.error().text()}});
  return abandon(now);
}

Next NodeStatusWrite::pause(Now now) {
  writer_.shared_.client.at(now.mono + writer_.options_.retry_wait, then_advance());
  return Next::kWait;
}

Next NodeStatusWrite::reread() {
  writer_.shared_.client.get(node_path(name_), then(&NodeStatusWrite::on_reread));
  return Next::kWait;
}

Next NodeStatusWrite::on_reread(const Result<api::Json>& outcome, Now now) {
  auto node = outcome ? api::decode<api::Node>(*outcome) : Result<api::Node>(outcome.error());
  const auto cached = writer_.shared_.nodes.cache().find(name_);
  if (!node || !cached || cached->metadata.uid != node->metadata.uid) return abandon(now);
  node_ = std::make_shared<const api::Node>(*std::move(node));
  if (carries_our_write(*node_, assessment_)) return end_written(now);  // the answer to the write was lost
  const auto lease = writer_.shared_.leases.cache().find("kube-node-lease/" + name_);
  assessment_ = writer_.monitor_.assess(*node_, lease.get(), now);
  if (!assessment_.write) return finish(now);  // the node has posted in the meantime
  steps_.go_to(Step::kWrite);
  return Next::kStep;
}

Next NodeStatusWrite::end_written(Now now) {
  writer_.metrics_.status_writes.add();
  writer_.shared_.log.info("node is silent",
                           {{"node", name_}, {"reason", policy::render(assessment_.reason(writer_.health_))}});
  if (!writer_.shared_.nodes.cache().find(name_)) return abandon(now);
  writer_.writing_.erase(name_);
  writer_.monitor_.confirm_written(*node_, assessment_, now);
  writer_.finished_(node_, assessment_, now);
  return Next::kEnd;
}

Next NodeStatusWrite::finish(Now now) {
  writer_.writing_.erase(name_);
  writer_.finished_(node_, assessment_, now);
  return Next::kEnd;
}

Next NodeStatusWrite::abandon(Now now) {
  writer_.writing_.erase(name_);
  writer_.abandoned_(name_, now);
  return Next::kEnd;
}

}  // namespace spillway::controllers
