#include "controllers/nodes/cloud_check.h"

#include "controllers/shared/paths.h"
#include "policy/lifecycle/condition_taints.h"
#include "policy/lifecycle/node_health.h"
#include "policy/lifecycle/zone.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

constexpr std::string_view kShutdownTaint = "node.cloudprovider.kubernetes.io/shutdown";
constexpr Duration kHeldFor = seconds(1);

bool is_ready(const api::Node& node) {
  return lifecycle::readiness_of(node) == lifecycle::Readiness::kTrue;
}

bool is_marked_shut_down(const api::Node& node) {
  return lifecycle::has_taint(node.spec.taints, kShutdownTaint, api::kNoSchedule);
}

std::string subject_of(const std::string& node) {
  return "machine/" + node;
}

}  // namespace

CloudCheck::CloudCheck(Shared shared, ActGate& gate, Rng rng, Options options)
    : shared_(shared),
      gate_(gate),
      options_(std::move(options)),
      taints_(shared_.client, shared_.nodes, rng.fork("taints"), shared_.log) {}

void CloudCheck::start(Now now) {
  if (options_.enabled) ask(now);
}

/// The nodes after those of the last question first, so that all have their turn.
void CloudCheck::ask(Now now) {
  std::vector<InstanceQuestion> nodes;
  std::vector<InstanceQuestion> before;
  for (const auto& [name, node] : shared_.nodes.cache().all()) {
    if (is_ready(*node)) {
      gate_.release(subject_of(name));
      if (is_marked_shut_down(*node)) set_shut_down(node, false, now);
    } else if (!deleting_.contains(name)) {
      (name > asked_up_to_ ? nodes : before).push_back({name, node->spec.provider_id});
    }
  }
  std::ranges::move(before, std::back_inserter(nodes));
  if (nodes.empty()) {
    shared_.client.at(now.mono + options_.period, [this](Now then) { ask(then); });
    return;
  }
  const bool more = nodes.size() > options_.nodes_max;
  if (more) nodes.resize(options_.nodes_max);
  asked_up_to_ = more ? nodes.back().node : "";
  question_ = std::move(nodes);
}

std::optional<std::vector<InstanceQuestion>> CloudCheck::take_question() {
  return std::exchange(question_, std::nullopt);
}

void CloudCheck::run(Now now) {
  if (!answer_) return;
  const auto answer = *std::exchange(answer_, std::nullopt);
  if (answer) {
    evaluate(*answer, now);
  } else {
    shared_.log.warning("the cloud instance check failed", {{"error", answer.error().text()}});
  }
  shared_.client.at(now.mono + options_.period, [this](Now then) { ask(then); });
}

/// A node is evaluated anew: it may have returned during the call to the cloud.
void CloudCheck::evaluate(const std::vector<InstanceAnswer>& answers, Now now) {
  const auto gone = std::ranges::count(answers, std::optional(InstanceState::kGone), &InstanceAnswer::state);
  const bool believed = gone < 2 || std::cmp_less(gone, answers.size());
  for (const InstanceAnswer& answer : answers) {
    const NodePtr node = shared_.nodes.cache().find(answer.node);
    if (!node || is_ready(*node) || !answer.state) continue;
    if (answer.state == InstanceState::kGone && !believed) {
      gate_.hold(lifecycle::ActKind::kDeleteNode, subject_of(answer.node),
                 {policy::ReasonCode::kActLimitReached,
                  {{"act", std::string(lifecycle::to_string(lifecycle::ActKind::kDeleteNode))},
                   {"gone_nodes", static_cast<std::int64_t>(gone)},
                   {"asked_nodes", static_cast<std::int64_t>(answers.size())}}},
                 now.mono + kHeldFor, now);
    } else if (answer.state == InstanceState::kGone) {
      remove(node, now);
    } else if (answer.state == InstanceState::kShutDown && !is_marked_shut_down(*node)) {
      set_shut_down(node, true, now);
    }
  }
}

void CloudCheck::remove(const NodePtr& node, Now now) {
  const std::string& name = node->metadata.name;
  const std::string zone = lifecycle::zone_key(node->metadata.labels, options_.facts.zone_labels);
  if (gate_.ask({lifecycle::ActKind::kDeleteNode, zone, {}}, subject_of(name), now)) return;  // for the next call
  if (!deleting_.insert(name).second) return;
  shared_.log.info("deleting a node whose machine no longer exists",
                   {{"node", name}, {"provider_id", node->spec.provider_id}});
  const std::string message =
      options_.facts.cloud_events_by_node_controller
          ? fmt::format("Node {} event: Deleting Node {} because it's not present according to cloud provider", name,
                        name)
          : fmt::format("Deleting node {} because it does not exist in the cloud provider", name);
  shared_.events.record(client::reference_to(*node), client::EventType::kNormal, "DeletingNode", message, now);
  api::Json options = api::Json::object({{"apiVersion", "v1"}, {"kind", "DeleteOptions"}});
  options.make({"preconditions", "uid"}) = node->metadata.uid;
  shared_.client.remove(node_path(name), options,
                        [this, name](const Result<api::Json>& outcome, Now) { on_removed(name, outcome); });
}

/// After a failure the cloud's next answer leads to another deletion.
void CloudCheck::on_removed(const std::string& name, const Result<api::Json>& outcome) {
  deleting_.erase(name);
  if (outcome || outcome.error().code == ErrorCode::kNotFound) return;
  shared_.log.warning("node was not deleted", {{"node", name}, {"error", outcome.error().text()}});
}

void CloudCheck::set_shut_down(const NodePtr& node, bool shut_down, Now now) {
  const auto edit = [uid = node->metadata.uid, shut_down](api::Node& seen, Now then) {
    if (seen.metadata.uid != uid || shut_down == is_marked_shut_down(seen)) return false;
    const std::string effect(api::kNoSchedule);
    if (!shut_down) return lifecycle::erase_taint(seen.spec.taints, {std::string(kShutdownTaint), {}, effect, {}});
    seen.spec.taints.push_back({std::string(kShutdownTaint), {}, effect, std::chrono::floor<seconds>(then.wall)});
    return true;
  };
  taints_.apply(
      node->metadata.name, edit,
      [this, name = node->metadata.name, shut_down](NodeTaintWriter::Outcome outcome, Now) {
        if (outcome != NodeTaintWriter::Outcome::kWritten) return;
        shared_.log.info(shut_down ? "machine is shut down" : "machine is back", {{"node", name}});
      },
      now);
}

}  // namespace spillway::controllers
