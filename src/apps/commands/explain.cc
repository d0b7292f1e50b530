// `spillway explain`: asks the agents through the API server, or reads a journal, and prints the answer.
#include "api/codec/codec.h"
#include "api/object/event.h"
#include "api/object/kind_id.h"
#include "api/object/pod_volumes.h"
#include "api/object/replication_controller.h"
#include "api/object/service.h"
#include "api/object/storage.h"
#include "api/object/workload.h"
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/commands/node_standing.h"
#include "apps/commands/outlook_reading.h"
#include "apps/commands/overview_reading.h"
#include "apps/commands/volumes_now.h"
#include "apps/controller/controller_pages.h"
#include "apps/controller/scheduler_setup.h"
#include "apps/process/process.h"
#include "apps/process/terminal.h"
#include "apps/view/cluster_view.h"
#include "apps/view/controller_client.h"
#include "apps/view/remote.h"
#include "cli/text/explanation.h"
#include "cli/text/outlook_text.h"
#include "cli/text/overview_text.h"
#include "cli/text/value_text.h"
#include "host/files/journal_file.h"
#include "policy/admission/resize.h"
#include "policy/containers/pod_resize.h"
#include "policy/decision_json.h"
#include "policy/outlook/overview.h"
#include "policy/outlook/pod_outlook.h"
#include "policy/outlook/workload_outlook.h"
#include "policy/scheduling/extender.h"
#include "policy/scheduling/gates.h"
#include "policy/scheduling/place.h"
#include "policy/scheduling/pod_volumes.h"
#include "policy/scheduling/preemption.h"
#include "policy/workloads/rollout_outlook.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apps {

namespace {

using policy::Decision;

constexpr std::size_t kListed = 10;

/// The answers of one or more nodes, or of a journal.
struct Findings {
  std::vector<Decision> decisions;    // oldest first
  std::optional<Decision> now;        // the present state of one node
  std::optional<Decision> lifecycle;  // the controllers' view of that node
  std::vector<Error> silent;          // nodes that did not answer
};

bool is_about(const policy::Subject& subject, const api::PodKey& pod) {
  return subject.kind == "Pod" && subject.ns == pod.ns && subject.name == pod.name;
}

bool compares(const Decision& decision, const api::PodKey& pod) {
  return std::ranges::any_of(decision.candidates, [&](const auto& each) { return is_about(each.subject, pod); });
}

/// The decision that answers best: the last one about the pod itself, then the present state, then the last one in
/// which the pod was compared.
const Decision* best_about(const Findings& found, const api::PodKey& pod) {
  for (auto it = found.decisions.rbegin(); it != found.decisions.rend(); ++it) {
    if (is_about(it->subject, pod)) return &*it;
  }
  if (found.now && compares(*found.now, pod)) return &*found.now;
  for (auto it = found.decisions.rbegin(); it != found.decisions.rend(); ++it) {
    if (compares(*it, pod)) return &*it;
  }
  return nullptr;
}

Findings read_journal(const cli::ExplainCommand& command) {
  Findings found;
  auto entries = host::read_journal_files(*command.journal);
  if (!entries) {
    found.silent.push_back(entries.error());
    return found;
  }
  for (agent::JournalEntry& entry : *entries) found.decisions.push_back(std::move(entry.decision));
  return found;
}

/// A pod without a node's answer: the reason in its own status.
std::optional<Decision> from_status(const api::Pod& pod) {
  Decision decision;
  decision.subject = {.kind = "Pod", .ns = pod.metadata.ns, .name = pod.metadata.name, .uid = pod.metadata.uid};
  decision.verdict = policy::Verdict::kRefuses;
  for (const api::PodCondition& condition : pod.status.conditions) {
    if (condition.type != "PodScheduled" || condition.status != "False") continue;
    decision.area = policy::Area::kScheduling;
    decision.action = "bind";
    decision.by = pod.spec.scheduler_name.empty() ? "the scheduler" : pod.spec.scheduler_name;
    decision.message = condition.message;
    decision.at = condition.last_transition_time.value_or(WallTime{});
    return decision;
  }
  if (pod.status.phase != "Failed" || pod.status.reason.empty()) return std::nullopt;
  decision.area = policy::Area::kAdmission;
  decision.action = pod.status.reason == "Evicted" ? "evict" : "admit";
  if (decision.action == "evict") decision.verdict = policy::Verdict::kActs;
  decision.by = pod.spec.node_name;
  decision.message = pod.status.message;
  decision.at = pod.status.start_time.value_or(pod.metadata.creation_timestamp.value_or(WallTime{}));
  return decision;
}

/// Prints a pod whose node has not carried out its last resize, with the conditions that say why.
std::optional<Decision> from_resize(const api::Pod& pod) {
  const api::PodCondition* pending = api::find_condition(pod.status.conditions, containers::kPodResizePending);
  const api::PodCondition* begun = api::find_condition(pod.status.conditions, containers::kPodResizeInProgress);
  const api::PodCondition* condition = pending != nullptr ? pending : begun;
  if (condition == nullptr || api::is_terminal(pod)) return std::nullopt;
  Decision decision;
  decision.subject = {.kind = "Pod", .ns = pod.metadata.ns, .name = pod.metadata.name, .uid = pod.metadata.uid};
  decision.area = policy::Area::kAdmission;
  decision.action = "resize";
  decision.verdict = condition->reason == admission::kInfeasible ? policy::Verdict::kRefuses : policy::Verdict::kWaits;
  decision.by = pod.spec.node_name;
  decision.message = condition->message;
  if (decision.message.empty() && condition == begun)
    decision.message = "the node changes the limits of its containers";
  decision.at = condition->last_transition_time.value_or(WallTime{});
  return decision;
}

class Explainer {
 public:
  explicit Explainer(const cli::ExplainCommand& command) : command_(command) {}

  int run() {
    if (!command_.scheduler_config.empty()) {
      auto config = read_scheduler_file(command_.scheduler_config);
      if (!config) {
        print_error(config.error());
        return cli::kExitUsage;
      }
      profiles_ = std::move(config->profiles);
      extenders_ = std::move(config->extenders.rules);
    }
    if (command_.journal) return report(read_journal(command_), std::nullopt);
    catch_interrupts();
    auto client = ControllerClient::create(loop_, command_.target);
    if (!client) {
      print_error(client.error());
      return cli::kExitUsage;
    }
    cluster_ = &(*client)->cluster();
    if (command_.about == cli::ExplainCommand::About::kOverview) return list_concerns((*client)->name_space());
    if (command_.name_space.empty()) command_.name_space = (*client)->name_space();
    if (command_.name_space.empty()) command_.name_space = "default";
    return ask(**client);
  }

 private:
  /// Prints the objects with problems. `usual`: the namespace of the context.
  int list_concerns(const std::string& usual) {
    const auto reading = read_overview(*cluster_, command_.name_space, loop_.now());
    if (!reading) {
      print_error(reading.error());
      return cli::kExitFailure;
    }
    for (const std::string& each : reading->unread) print_err("spillway: explain: not read: {}\n", each);
    const std::string name_space = usual.empty() ? "default" : usual;
    if (cli::is_document(command_.output)) {
      print_answer(cli::overview_json(reading->overview, name_space), command_.output);
    } else {
      write_stdout(cli::overview_text(reading->overview, name_space, paint(), screen_width()));
    }
    return cli::kExitOk;
  }

  cli::Paint paint() const {
    return shows_colour(command_.colour, STDOUT_FILENO) ? cli::Paint::kTerminal : cli::Paint::kNone;
  }

  int ask(ControllerClient& client) {
    if (command_.about == cli::ExplainCommand::About::kNode) {
      const auto object = cluster_->get(client::object_path("v1", "nodes", {}, command_.name));
      if (!object && object.error().code == ErrorCode::kNotFound) {
        print_error(object.error());
        return cli::kExitNegative;
      }
      if (const auto node = object ? api::decode<api::Node>(*object) : Result<api::Node>(object.error()))
        trouble_ = outlook::explain_node(*node, loop_.now().wall);
      Findings found;
      ask_controllers(client, command_.name, found);
      ask_node(command_.name, found);
      return report(found, std::nullopt);
    }
    if (command_.about == cli::ExplainCommand::About::kDeployment) return ask_about_rollout();
    if (command_.about == cli::ExplainCommand::About::kWorkload) {
      // The controllers have the evictions that they hold back; without their answer the state of the pods is enough.
      if (may_back_off(command_.resource)) backs_off_ = held_back_evictions(client);
      return ask_for_outlook(command_.resource == "services" ? not_carried(client) : std::string());
    }
    std::optional<Decision> fallback;
    std::vector<std::string> nodes;
    if (!command_.node.empty()) nodes.push_back(command_.node);
    if (command_.about == cli::ExplainCommand::About::kPod) {
      const auto object = cluster_->get("/api/v1/namespaces/" + command_.name_space + "/pods/" + command_.name);
      if (!object && object.error().code != ErrorCode::kNotFound) {
        print_error(object.error());
        return cli::kExitFailure;
      }
      if (object) {
        const auto pod = api::decode<api::Pod>(*object);
        if (pod) fallback = from_status(*pod);
        if (pod && !fallback) fallback = from_resize(*pod);
        if (pod) trouble_ = outlook::explain_containers(*pod, loop_.now().wall);
        if (pod && trouble_) trouble_ = outlook::explain_containers(*pod, loop_.now().wall, neighbours_of(*pod));
        if (pod && !trouble_) trouble_ = trouble_with_start(*pod);
        if (fallback && fallback->area == policy::Area::kScheduling) {
          if (const auto waits = trouble_with_claim(*pod)) return report_trouble(*waits);
          ask_nodes_about(*pod, *fallback);
        }
        if (pod && nodes.empty() && !pod->spec.node_name.empty()) nodes.push_back(pod->spec.node_name);
        if (nodes.empty()) return report({}, fallback);
      }
      exists_ = object.has_value();
    }
    if (nodes.empty()) {
      const auto list = cluster_->get("/api/v1/nodes");
      if (!list) {
        print_error(list.error());
        return cli::kExitFailure;
      }
      for (const api::Json& node : *list->find("items")->if_array())
        nodes.emplace_back(node.string_at({"metadata", "name"}));
    }
    Findings found;
    for (const std::string& node : nodes) ask_node(node, found);
    std::ranges::stable_sort(found.decisions, {}, &Decision::at);
    // The agent of a failed node does not answer; the controllers have the reason why its pods still exist.
    if (pod() && !fallback && best_about(found, *pod()) == nullptr) fallback = ask_about_deletion(client);
    return report(found, fallback);
  }

  /// A claim of the pod that keeps it from a node; no node has to be asked then.
  std::optional<outlook::Outlook> trouble_with_claim(const api::Pod& pod) {
    if (api::claims_of(pod).empty()) return std::nullopt;
    std::vector<outlook::ClaimPtr> claims;
    for (const api::Json& each : cluster_->list(client::object_path("v1", "persistentvolumeclaims", pod.metadata.ns))) {
      auto claim = api::decode<api::PersistentVolumeClaim>(each);
      if (claim) claims.push_back(std::make_shared<const api::PersistentVolumeClaim>(*std::move(claim)));
    }
    return outlook::explain_claim_of(pod, claims, read_storage_classes(*cluster_), loop_.now().wall);
  }

  /// The last warning about a pod that its node has not started.
  std::optional<outlook::Outlook> trouble_with_start(const api::Pod& pod) {
    if (pod.spec.node_name.empty() || pod.status.phase != "Pending") return std::nullopt;
    const std::string about = fmt::format("involvedObject.uid={},type=Warning", pod.metadata.uid);
    std::optional<api::Event> last;
    for (const api::Json& each : cluster_->list(client::object_path("v1", "events", pod.metadata.ns) +
                                                "?fieldSelector=" + api::percent_encode(about))) {
      auto event = api::decode<api::Event>(each);
      if (event && (!last || event->last_timestamp > last->last_timestamp)) last = *std::move(event);
    }
    return last ? outlook::explain_start(pod, *last, loop_.now().wall) : std::nullopt;
  }

  /// The pods of the explained pod's node, if the user may read them.
  std::vector<api::Pod> neighbours_of(const api::Pod& pod) {
    std::vector<api::Pod> pods;
    for (const api::Json& each : cluster_->list("/api/v1/pods?fieldSelector=spec.nodeName%3D" + pod.spec.node_name)) {
      if (auto neighbour = api::decode<api::Pod>(each)) pods.push_back(*std::move(neighbour));
    }
    return pods;
  }

  /// Evaluates the rules of the controller on the present objects of the API server.
  int ask_about_rollout() {
    const auto object = cluster_->get(
        client::object_path(api::Deployment::kApiVersion, "deployments", command_.name_space, command_.name));
    const auto deployment = object ? api::decode<api::Deployment>(*object) : Result<api::Deployment>(object.error());
    if (!deployment) {
      print_error(deployment.error());
      return deployment.error().code == ErrorCode::kNotFound ? cli::kExitNegative : cli::kExitFailure;
    }
    workloads::ReplicaSets sets;
    for (const api::Json& each :
         cluster_->list(client::object_path(api::ReplicaSet::kApiVersion, "replicasets", command_.name_space))) {
      auto set = api::decode<api::ReplicaSet>(each);
      if (set && is_owned_by(set->metadata, deployment->metadata.uid)) {
        sets.push_back(std::make_shared<const api::ReplicaSet>(*std::move(set)));
      }
    }
    std::vector<workloads::PodPtr> pods;
    for (const api::Json& each : cluster_->list(client::object_path("v1", "pods", command_.name_space))) {
      auto pod = api::decode<api::Pod>(each);
      const bool is_ours = pod && std::ranges::any_of(sets, [&pod](const workloads::ReplicaSetPtr& set) {
                             return is_owned_by(pod->metadata, set->metadata.uid);
                           });
      if (is_ours) pods.push_back(std::make_shared<const api::Pod>(*std::move(pod)));
    }
    const Decision decision = workloads::explain_rollout(*deployment, sets, pods, loop_.now().wall);
    cli::is_document(command_.output) ? print_document(decision, {}) : print_text(decision, {});
    return cli::kExitOk;
  }

  /// Evaluates the rules of its controller on the present objects of the API server.
  int ask_for_outlook(std::string not_carried) {
    const ServiceView view{command_.node, std::move(not_carried)};
    const auto outlook =
        read_outlook(*cluster_, command_.resource, command_.name_space, command_.name, view, loop_.now());
    if (!outlook) {
      print_error(outlook.error());
      return outlook.error().code == ErrorCode::kNotFound ? cli::kExitNegative : cli::kExitFailure;
    }
    if (cli::is_document(command_.output)) {
      api::Json document = cli::explanation_json(*outlook);
      if (backs_off_) document["decision"] = policy::to_json(*backs_off_);
      print_answer(document, command_.output);
      return cli::kExitOk;
    }
    std::string text = cli::explain(*outlook, paint(), screen_width());
    if (backs_off_) text += "\n" + cli::explain(*backs_off_, std::nullopt, paint(), screen_width());
    write_stdout(text);
    return cli::kExitOk;
  }

  /// Why the server's process runs no Service proxy; empty: it runs one, or there is no such page.
  std::string not_carried(ControllerClient& client) {
    const auto page = client.cluster().get(std::string(kServicesPage));
    return page ? std::string(page->string_at({"notCarried"})) : std::string();
  }

  static bool may_back_off(std::string_view resource) {
    return resource == "replicasets" || resource == "statefulsets" || resource == "daemonsets";
  }

  /// Asks the active controllers for replacements of evicted pods that they hold back; nullopt: none waits.
  std::optional<Decision> held_back_evictions(ControllerClient& client) {
    const auto answer =
        client.get(fmt::format("{}{}/{}/{}", kEvictionsPage, command_.resource,
                               api::percent_encode(command_.name_space), api::percent_encode(command_.name)));
    auto decision = answer ? policy::decision_from_json(*answer) : Result<Decision>(answer.error());
    if (!decision || decision->verdict == policy::Verdict::kRests) return std::nullopt;
    return *std::move(decision);
  }

  /// nullopt: no deletion of the pod is planned, or no controller answered.
  std::optional<Decision> ask_about_deletion(ControllerClient& client) {
    const auto answer = client.get(fmt::format("{}{}/{}", kPodsPage, api::percent_encode(command_.name_space),
                                               api::percent_encode(command_.name)));
    auto decision = answer ? policy::decision_from_json(*answer) : Result<Decision>(answer.error());
    return decision ? std::optional(*std::move(decision)) : std::nullopt;
  }

  static bool is_owned_by(const api::ObjectMeta& metadata, const std::string& uid) {
    const api::OwnerReference* owner = api::controller_of(metadata);
    return owner != nullptr && owner->uid == uid;
  }

  static void ask_controllers(ControllerClient& client, const std::string& node, Findings& found) {
    const auto answer = client.get(std::string(kNodesPage) + api::percent_encode(node));
    auto decision = answer ? policy::decision_from_json(*answer) : Result<Decision>(answer.error());
    if (decision) {
      found.lifecycle = *std::move(decision);
    } else {
      found.silent.push_back(Error{decision.error().code, decision.error().text(), "controllers"});
    }
  }

  /// Reads namespaces, and the selectors of Services and owners.
  scheduling::Surroundings read_surroundings() {
    scheduling::Surroundings around;
    for (const api::Json& each : cluster_->list("/api/v1/namespaces")) {
      if (const auto ns = api::decode<api::Namespace>(each)) {
        around.set_namespace(ns->metadata.name, ns->metadata.labels);
      }
    }
    for (const api::Json& each : cluster_->list(client::object_path("v1", "services", command_.name_space))) {
      if (const auto service = api::decode<api::Service>(each)) {
        around.set_service(service->metadata.ns, service->metadata.name, service->selector);
      }
    }
    add_owners<api::ReplicationController>("replicationcontrollers", around);
    add_owners<api::ReplicaSet>("replicasets", around);
    add_owners<api::StatefulSet>("statefulsets", around);
    return around;
  }

  template <typename Owner>
  void add_owners(std::string_view resource, scheduling::Surroundings& around) {
    for (const api::Json& each :
         cluster_->list(client::object_path(Owner::kApiVersion, resource, command_.name_space))) {
      if (const auto owner = api::decode<Owner>(each)) {
        around.set_owner(api::kind_of<Owner>(), owner->metadata.ns, owner->metadata.name, owner->selector);
      }
    }
  }

  /// The profile of the scheduler that the pod names; nullptr, after a printed line that names the missing one: there
  /// is none.
  const scheduling::Profile* profile_for(const api::Pod& pod) const {
    const std::string& wanted = pod.spec.scheduler_name;
    const auto is_it = [&wanted](const scheduling::Profile& each) {
      return wanted.empty() || each.scheduler == wanted;
    };
    const auto found = std::ranges::find_if(profiles_, is_it);
    if (found != profiles_.end()) return &*found;
    print_err("spillway: explain: the pod names the scheduler \"{}\"{}\n", wanted,
              command_.scheduler_config.empty()
                  ? "; its profile is unknown: use --scheduler-config FILE"
                  : fmt::format(", and {} has no profile of that name", command_.scheduler_config));
    return nullptr;
  }

  /// Asks each node's fit for a waiting pod, by the scheduler's own filters and the present state.
  void ask_nodes_about(const api::Pod& waiting, Decision& decision) {
    if (std::string gates = scheduling::gates_text(waiting); !gates.empty()) {
      decision.message = std::move(gates);  // no node is evaluated before gates are removed
      return;
    }
    const scheduling::Profile* profile = profile_for(waiting);
    if (profile == nullptr) return;
    std::map<std::string, policy::NodeLoad> nodes;
    std::map<std::string, std::vector<scheduling::PodPtr>> pods;
    for (const api::Json& each : cluster_->list("/api/v1/nodes")) {
      if (auto node = api::decode<api::Node>(each)) {
        const std::string name = node->metadata.name;
        nodes[name].set_node(std::make_shared<const api::Node>(*std::move(node)));
      }
    }
    scheduling::Surroundings around = read_surroundings();
    for (const api::Json& each : cluster_->list("/api/v1/pods")) {
      auto pod = api::decode<api::Pod>(each);
      if (!pod || api::is_terminal(*pod)) continue;
      const std::string& promised = pod->status.nominated_node_name;
      if (pod->spec.node_name.empty() && !promised.empty()) {
        around.nominate(promised, std::make_shared<const api::Pod>(*pod));
      }
      if (!nodes.contains(pod->spec.node_name)) continue;
      nodes.at(pod->spec.node_name).add(*pod);
      around.add(pod->spec.node_name, *pod);
      const std::string node = pod->spec.node_name;
      pods[node].push_back(std::make_shared<const api::Pod>(*std::move(pod)));
    }
    const VolumesNow reading(*cluster_, waiting);
    for (const Error& error : reading.unread())
      print_err("spillway: explain: not read, so it counts as empty: {}\n", error.text());
    const scheduling::PodVolumes volumes(waiting, reading.view(nodes));
    if (!volumes.problem().empty()) {
      decision.reasons = scheduling::refuse_everywhere(volumes.problem(), nodes.size()).reasons;
      return;
    }
    const scheduling::VolumeFilter filter = volumes.filter();
    const scheduling::Placement placement = scheduling::place_pod(waiting, nodes, *profile, filter, around);
    const bool asks_others = std::ranges::any_of(extenders_, [&waiting](const scheduling::Extender& extender) {
      return scheduling::concerns(extender, waiting);
    });
    if (asks_others) {
      print_err("spillway: explain: the extenders are not called again: their answers are in the pod's condition\n");
    }
    if (placement.node) {
      if (!asks_others) decision.reasons = placement.reasons;
      return;
    }
    decision.candidates = scheduling::candidates_of(placement);
    for (policy::Candidate& victim : victims_now(waiting, placement, *profile, nodes, pods, filter, around)) {
      decision.candidates.push_back(std::move(victim));
    }
    decision.candidates_total = static_cast<std::int64_t>(nodes.size());
  }

  /// The pods that the scheduler's preemption would evict for it.
  std::vector<policy::Candidate> victims_now(const api::Pod& waiting, const scheduling::Placement& refused,
                                             const scheduling::Profile& profile,
                                             const std::map<std::string, policy::NodeLoad>& nodes,
                                             std::map<std::string, std::vector<scheduling::PodPtr>>& pods,
                                             const scheduling::VolumeFilter& filter,
                                             const scheduling::Surroundings& around) {
    scheduling::BudgetsByNamespace budgets;
    for (const api::Json& each : cluster_->list("/apis/policy/v1/poddisruptionbudgets")) {
      auto budget = api::decode<api::PodDisruptionBudget>(each);
      if (!budget) continue;
      const std::string ns = budget->metadata.ns;
      budgets[ns].push_back(std::make_shared<const api::PodDisruptionBudget>(*std::move(budget)));
    }
    const scheduling::PodsOn pods_on = [&pods](const std::string& node) { return pods[node]; };
    const scheduling::Preemption decided = scheduling::decide_preemption(waiting, refused,
                                                                         {.nodes = nodes,
                                                                          .pods_on = pods_on,
                                                                          .budgets = budgets,
                                                                          .around = around,
                                                                          .volumes = filter,
                                                                          .profile = profile});
    return decided.chosen ? scheduling::victims_of(waiting, *decided.choice()) : std::vector<policy::Candidate>();
  }

  void ask_node(const std::string& node, Findings& found) {
    const auto answer = cluster_->get("/api/v1/nodes/" + node + "/proxy/debug/spillway/decisions");
    // the node has no agent of ours: its kubelet is shown
    if (!answer && answer.error().code == ErrorCode::kNotFound) {
      auto decision = node_standing(*cluster_, node, loop_.now());
      if (decision && (!pod() || compares(*decision, *pod()))) found.now = *std::move(decision);
      if (decision) return;
    }
    if (!answer) {
      found.silent.push_back(Error{answer.error().code, answer.error().text(), "node " + node});
      return;
    }
    if (const api::Json* now = answer->find("now")) {
      auto decision = policy::decision_from_json(*now);
      if (decision && (!pod() || compares(*decision, *pod()))) found.now = *std::move(decision);
    }
    const api::Json* items = answer->find("items");
    if (items == nullptr || items->if_array() == nullptr) return;
    for (const api::Json& item : *items->if_array()) {
      if (auto decision = policy::decision_from_json(item)) found.decisions.push_back(*std::move(decision));
    }
  }

  std::optional<api::PodKey> pod() const {
    if (command_.about != cli::ExplainCommand::About::kPod) return std::nullopt;
    return api::PodKey{command_.name_space, command_.name};
  }

  int report(const Findings& found, const std::optional<Decision>& fallback) {
    for (const Error& error : found.silent) print_error(error);
    const Decision* answer = nullptr;
    if (pod()) {
      answer = best_about(found, *pod());
      // A decision at the gates explains more about a pod that never ran than a list without it.
      const bool is_newer = fallback && fallback->action == "resize";
      if (fallback && (is_newer || answer == nullptr || !is_about(answer->subject, *pod()))) answer = &*fallback;
    } else if (command_.about == cli::ExplainCommand::About::kNode && found.lifecycle) {
      answer = &*found.lifecycle;
    } else if (command_.about == cli::ExplainCommand::About::kNode && found.now) {
      answer = &*found.now;
    } else if (!found.decisions.empty()) {
      answer = &found.decisions.back();
    }
    if (answer == nullptr && trouble_) {
      print_trouble();
      return cli::kExitOk;
    }
    if (answer == nullptr) {
      if (found.silent.empty()) {
        print_err("spillway: explain: {}nothing has been decided about {}\n",
                  exists_ ? "" : fmt::format("pods \"{}\" not found, and ", pod()->text()), exists_ ? asked() : "it");
      }
      return found.silent.empty() ? cli::kExitNegative : cli::kExitFailure;
    }
    cli::is_document(command_.output) ? print_document(*answer, found) : print_text(*answer, found);
    return cli::kExitOk;
  }

  std::string asked() const {
    switch (command_.about) {
      case cli::ExplainCommand::About::kPod:
        return "pod " + pod()->text();
      case cli::ExplainCommand::About::kNode:
        return "node " + command_.name;
      case cli::ExplainCommand::About::kDeployment:
        return "deployment " + command_.name;
      case cli::ExplainCommand::About::kWorkload:
        return command_.resource + " " + command_.name;
      case cli::ExplainCommand::About::kOverview:
      case cli::ExplainCommand::About::kLast:
        return "anything yet";
    }
    return {};
  }

  int report_trouble(const outlook::Outlook& trouble) {
    trouble_ = trouble;
    print_trouble();
    return cli::kExitOk;
  }

  /// Prints the problems of the pod's containers or claims only.
  void print_trouble() const {
    if (cli::is_document(command_.output)) {
      print_answer(cli::explanation_json(*trouble_), command_.output);
      return;
    }
    write_stdout(cli::explain(*trouble_, paint(), screen_width()));
  }

  void print_text(const Decision& answer, const Findings& found) const {
    // A decision that is not about the pod itself explains nothing about its failing containers.
    if (trouble_ && pod() && !is_about(answer.subject, *pod())) return print_trouble();
    std::string text;
    if (trouble_) text = cli::explain(*trouble_, paint(), screen_width()) + "\n";
    text += cli::explain(answer, pod(), paint(), screen_width());
    if (found.lifecycle && found.now) text += "\n" + cli::explain(*found.now, pod(), paint(), screen_width());
    if (command_.about == cli::ExplainCommand::About::kNode && !found.decisions.empty()) {
      text += "\n  The last decisions\n";
      const std::size_t first = found.decisions.size() - std::min(kListed, found.decisions.size());
      for (std::size_t i = first; i < found.decisions.size(); ++i) {
        text += cli::wrapped(cli::summary_line(found.decisions[i]), "    ", screen_width());
      }
    }
    write_stdout(text);
  }

  void print_document(const Decision& answer, const Findings& found) const {
    api::Json items = api::Json::array();
    for (const Decision& decision : found.decisions) items.if_array()->push_back(policy::to_json(decision));
    api::Json document =
        api::Json::object({{"kind", "Explanation"},
                           {"apiVersion", "spillway/v1"},
                           {"headline", trouble_ ? cli::headline(*trouble_) : cli::headline(answer, std::nullopt)},
                           {"decision", policy::to_json(answer)},
                           {"now", found.now ? policy::to_json(*found.now) : api::Json()},
                           {"lifecycle", found.lifecycle ? policy::to_json(*found.lifecycle) : api::Json()},
                           {"items", std::move(items)}});
    if (trouble_) document["outlook"] = outlook::to_json(*trouble_);
    print_answer(document, command_.output);
  }

  cli::ExplainCommand command_;
  runtime::Loop loop_;
  ClusterView* cluster_ = nullptr;
  std::vector<scheduling::Profile> profiles_{scheduling::default_profile()};
  std::vector<scheduling::Extender> extenders_;  // read from --config
  std::optional<outlook::Outlook> trouble_;      // problems of the pod's containers, or of the node
  std::optional<Decision> backs_off_;            // replacements of evicted pods that wait
  bool exists_ = true;                           // false: the API server has no pod of this name
};

}  // namespace

int run_explain(const cli::ExplainCommand& command) {
  return Explainer(command).run();
}

}  // namespace spillway::apps
