#include "controllers/nodes/legacy/node_eviction.h"

#include "controllers/shared/paths.h"
#include "controllers/shared/step_run.h"
#include "policy/lifecycle/lines/pod_eviction_plan.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

namespace spillway::controllers {

enum class NodeEvictionStep : std::uint8_t {
  kPod,       // take the next pod; to kEnd after the last
  kNodeLost,  // write NodeLost to its status
  kDeletion,  // delete the pod; back to kPod
  kEnd,
};

/// The eviction of the pods of one node, one after the other. Thread: loop.
class NodeEviction final : public StepRun<NodeEviction, NodeEvictionStep> {
 public:
  using Step = NodeEvictionStep;
  using Done = std::function<void(bool all, Now now)>;

  NodeEviction(Shared shared, const lifecycle::LineFacts& facts, std::string node, const std::vector<PodPtr>& pods,
               Done done);

 private:
  Next run(Step step, Now now) override;
  Next take_pod();
  Next mark_lost();
  Next on_marked(const Result<api::Json>& outcome, Now now);
  Next remove(Now now);
  Next on_removed(const Result<api::Json>& outcome, Now now);
  Next end(bool all, Now now);

  Shared shared_;
  bool missing_pod_is_error_;
  std::string node_;
  Done done_;
  std::vector<std::pair<PodPtr, lifecycle::PodEvictionStep>> pods_;
  std::size_t next_pod_ = 0;
  PodPtr pod_;                        // the pod that is written or deleted now
  lifecycle::PodEvictionStep needs_;  // the calls to make for it
  bool all_ = true;
  std::int64_t remaining_ = 0;  // pods that exist until their kubelet ends them
};

namespace {

constexpr std::array kNodeEvictionSteps = {NodeEvictionStep::kPod, NodeEvictionStep::kNodeLost,
                                           NodeEvictionStep::kDeletion, NodeEvictionStep::kEnd};

api::Json node_lost_patch(const api::Pod& pod) {
  return api::Json::object(
      {{"metadata", api::Json::object({{"uid", pod.metadata.uid}, {"resourceVersion", pod.metadata.resource_version}})},
       {"status",
        api::Json::object({{"reason", "NodeLost"},
                           {"message", lifecycle::node_lost_message(pod.spec.node_name, pod.metadata.name)}})}});
}

}  // namespace

void evict_pods(Shared shared, const lifecycle::LineFacts& facts, const api::Node& node,
                const std::vector<PodPtr>& pods, std::function<void(bool all, Now now)> done, Now now) {
  const std::string& name = node.metadata.name;
  if (!pods.empty()) {
    shared.events.record(client::reference_to(node), client::EventType::kNormal, "DeletingAllPods",
                         fmt::format("Node {} event: Deleting all Pods from Node {}.", name, name), now);
  }
  std::make_shared<NodeEviction>(shared, facts, name, pods, std::move(done))->advance(now);
}

NodeEviction::NodeEviction(Shared shared, const lifecycle::LineFacts& facts, std::string node,
                           const std::vector<PodPtr>& pods, Done done)
    : StepRun(kNodeEvictionSteps),
      shared_(shared),
      missing_pod_is_error_(facts.missing_pod_is_error),
      node_(std::move(node)),
      done_(std::move(done)) {
  std::vector<const api::DaemonSet*> daemon_sets;
  for (const auto& [key, set] : shared_.daemon_sets.cache().all()) daemon_sets.push_back(set.get());
  for (const PodPtr& pod : pods) {
    const lifecycle::PodEvictionStep needs = lifecycle::plan_pod_eviction(*pod, node_, daemon_sets);
    if (needs.set_node_lost || needs.delete_pod) pods_.emplace_back(pod, needs);
    remaining_ += needs.remains ? 1 : 0;
  }
}

Next NodeEviction::run(Step step, Now now) {
  switch (step) {
    case Step::kPod:
      return take_pod();
    case Step::kNodeLost:
      return mark_lost();
    case Step::kDeletion:
      return remove(now);
    case Step::kEnd:
      if (remaining_ > 0) {
        shared_.log.info("pods awaiting deletion due to node controller eviction",
                         {{"node", node_}, {"pods", remaining_}});
      }
      return end(all_, now);
  }
  return Next::kEnd;
}

Next NodeEviction::take_pod() {
  if (next_pod_ == pods_.size()) {
    steps_.go_to(Step::kEnd);
  } else {
    std::tie(pod_, needs_) = pods_[next_pod_++];
  }
  return Next::kStep;
}

Next NodeEviction::mark_lost() {
  if (!needs_.set_node_lost) return Next::kStep;
  shared_.client.patch(pod_path(*pod_, "status"), client::PatchType::kStrategicMerge, node_lost_patch(*pod_),
                       then(&NodeEviction::on_marked));
  return Next::kWait;
}

/// A conflict ends the turn of this pod; any other failure does not keep it alive.
Next NodeEviction::on_marked(const Result<api::Json>& outcome, Now /*now*/) {
  const bool conflict = !outcome && outcome.error().code == ErrorCode::kConflict;
  all_ = all_ && !conflict;
  if (conflict || !needs_.delete_pod) steps_.go_to(Step::kPod);
  return Next::kStep;
}

Next NodeEviction::remove(Now now) {
  shared_.log.info("evicting pod", {{"pod", pod_->key().text()}, {"node", pod_->spec.node_name}});
  shared_.events.record(
      client::reference_to(*pod_), client::EventType::kNormal, "NodeControllerEviction",
      fmt::format("Marking for deletion Pod {} from Node {}", pod_->metadata.name, pod_->spec.node_name), now);
  shared_.client.remove(pod_path(*pod_), delete_options(*pod_), then(&NodeEviction::on_removed));
  return Next::kWait;
}

/// A failure ends the attempt: the pods behind this one have their turn with the next attempt.
Next NodeEviction::on_removed(const Result<api::Json>& outcome, Now now) {
  const bool gone = !outcome && outcome.error().code == ErrorCode::kNotFound;
  if (!outcome && (!gone || missing_pod_is_error_)) return end(false, now);
  steps_.go_to(Step::kPod);
  return Next::kStep;
}

Next NodeEviction::end(bool all, Now now) {
  done_(all, now);
  return Next::kEnd;
}

}  // namespace spillway::controllers
