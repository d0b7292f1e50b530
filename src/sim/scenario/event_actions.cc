#include "sim/scenario/event_actions.h"

#include "api/object/kind_id.h"
#include "policy/workloads/deployment_revisions.h"
#include "policy/workloads/pod_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <variant>

namespace spillway::sim {
namespace {

using api::Json;

constexpr Duration kDrainRetry = seconds(5);
constexpr int kDrainAttempts = 120;
constexpr std::string_view kRolloutNumber = "simulation/rollout";

std::string name_text(const DeploymentChoice& deployment) {
  return fmt::format("{}/{}", deployment.ns, deployment.name);
}

std::string path_of(const DeploymentChoice& deployment) {
  return fmt::format("/apis/apps/v1/namespaces/{}/deployments/{}", deployment.ns, deployment.name);
}

bool is_of_daemon_set(const api::Pod& pod) {
  const api::OwnerReference* owner = api::controller_of(pod.metadata);
  return owner != nullptr && api::kind_of(*owner) == api::kind_of<api::DaemonSet>();
}

/// The path at which objects of this kind are created.
std::string collection_of(const std::string& kind, const std::string& ns) {
  if (kind == "Namespace") return "/api/v1/namespaces";
  if (kind == "Node") return "/api/v1/nodes";
  const std::string_view plural = kind == "Pod" ? "pods" : kind == "Service" ? "services" : "configmaps";
  return fmt::format("/api/v1/namespaces/{}/{}", ns, plural);
}

Json pod_spec_of(const CreateObject& action) {
  Json command = Json::array({"stress", "--memory", fmt::format("{}", action.memory.count())});
  if (action.growth_per_second > Bytes{0}) {
    command.if_array()->emplace_back("--rate");
    command.if_array()->emplace_back(fmt::format("{}", action.growth_per_second.count()));
  }
  Json container = Json::object({{"name", "main"}, {"image", "none"}, {"command", std::move(command)}});
  if (!action.memory_request.empty()) container.make({"resources", "requests", "memory"}) = action.memory_request;
  Json spec = Json::object({{"containers", Json::array({std::move(container)})}});
  if (!action.priority_class.empty()) spec["priorityClassName"] = action.priority_class;
  if (!action.restarts) spec["restartPolicy"] = "Never";
  return spec;
}

Json document_of(const CreateObject& action) {
  Json object =
      Json::object({{"apiVersion", "v1"}, {"kind", action.kind}, {"metadata", Json::object({{"name", action.name}})}});
  if (action.kind == "Pod") object["spec"] = pod_spec_of(action);
  if (action.kind == "Service") {
    object["spec"] = Json::object({{"type", "NodePort"}, {"ports", Json::array({Json::object({{"port", 80}})})}});
  }
  return object;
}

class ClusterMachines final : public ActedMachines {
 public:
  explicit ClusterMachines(Cluster& cluster) : cluster_(cluster) {
    for (std::size_t i = 0; i < cluster.node_count(); ++i) numbers_.emplace(cluster.node_name(i), i);
  }

  VirtualTime& time() override { return cluster_.time(); }

  SimHost* machine(std::size_t node) override { return cluster_.machine(node); }

  SimHost* machine_named(const std::string& node) override {
    const auto found = numbers_.find(node);
    return found == numbers_.end() ? nullptr : cluster_.machine(found->second);
  }

  void for_each_pod(const std::function<bool(const api::Pod&)>& visit) const override {
    for (const auto& [key, pod] : cluster_.world().pods()) {
      if (!visit(pod)) return;
    }
  }

  void partition_node(std::size_t node, Cut cut) override { cluster_.partition_node(node, cut); }

  void heal_node(std::size_t node) override { cluster_.heal_node(node); }

  void crash_node(std::size_t node) override { cluster_.crash_node(node); }

  void restart_node(std::size_t node) override { cluster_.restart_node(node); }

  void restart_agent(std::size_t node, const agent::EvictionOptions& eviction) override {
    cluster_.restart_agent(node, eviction);
  }

  void jump_clock_of(std::size_t node, Duration by) override { cluster_.jump_clock_of(node, by); }

  void set_link_of(std::size_t node, const Link& link) override { cluster_.set_link_of(node, link); }

  void restore_link_of(std::size_t node) override { cluster_.restore_link_of(node); }

 private:
  Cluster& cluster_;
  std::map<std::string, std::size_t> numbers_;
};

}  // namespace

EventActions::EventActions(Cluster& cluster, const std::vector<MachineSpec>& machines)
    : cluster_(cluster),
      machines_(machines),
      acted_(std::make_unique<ClusterMachines>(cluster)),
      machine_actions_(*acted_, machines) {}

EventActions::~EventActions() = default;

void EventActions::carry_out(const Action& action) {
  if (machine_actions_.carry_out(action)) return;
  std::visit(
      [this](const auto& each) {
        if constexpr (!std::is_invocable_v<MachineActions&, decltype(each)>) (*this)(each);
      },
      action);
}

void EventActions::take_back(const Action& action) {
  if (machine_actions_.take_back(action)) return;
  if (std::holds_alternative<CrashControllers>(action)) {
    (*this)(RestartControllers{});
  } else if (std::holds_alternative<CrashScheduler>(action)) {
    (*this)(RestartScheduler{});
  } else if (const auto* stop = std::get_if<StopApiServer>(&action)) {
    (*this)(StartApiServer{stop->server});
  } else if (const auto* broken = std::get_if<BreakEtcd>(&action)) {
    (*this)(RepairEtcd{*broken});
  } else if (std::holds_alternative<SlowApiServer>(action)) {
    NetworkFaults again = cluster_.network().faults();
    again.latency_min = faults_.latency_min;
    again.latency_max = faults_.latency_max;
    cluster_.network().set_faults(again);
  } else if (const auto* drain = std::get_if<DrainNodes>(&action)) {
    (*this)(UncordonNodes{drain->nodes});
  } else if (std::holds_alternative<MuteWatch>(action)) {
    (*this)(MuteWatch{});
  } else if (const auto* pause = std::get_if<PauseRollout>(&action)) {
    (*this)(ResumeRollout{pause->deployment});
  }
}

void EventActions::operator()(const CrashControllers&) {
  cluster_.crash_controllers();
}

void EventActions::operator()(const RestartControllers&) {
  cluster_.restart_controllers();
}

void EventActions::operator()(const StopApiServer& action) {
  cluster_.crash_server(action.server);
}

void EventActions::operator()(const StartApiServer& action) {
  cluster_.restart_server(action.server);
}

void EventActions::operator()(const CrashScheduler&) {
  cluster_.crash_scheduler();
}

void EventActions::operator()(const RestartScheduler&) {
  cluster_.restart_scheduler();
}

void EventActions::operator()(const CreateObject& action) {
  cluster_.create(collection_of(action.kind, action.ns), document_of(action));
}

void EventActions::operator()(const DeleteObject& action) {
  std::string ns = action.ns;
  std::string name = action.name;
  if (action.place) {
    const auto& pods = cluster_.world().pods();
    if (pods.empty()) return;
    const api::PodKey& key = std::next(pods.begin(), static_cast<std::ptrdiff_t>(*action.place % pods.size()))->first;
    ns = key.ns;
    name = key.name;
  }
  if (action.kind == "Pod") cluster_.invariants().on_removal_by_hand({ns, name});
  cluster_.remove(
      fmt::format("{}/{}{}", collection_of(action.kind, ns), name, action.at_once ? "?gracePeriodSeconds=0" : ""));
}

void EventActions::operator()(const BreakEtcd& action) {
  if (cluster_.etcd() == nullptr) return;
  cluster_.invariants().on_outage(true, cluster_.time().now());
  EtcdReplicas& members = cluster_.etcd()->replicas();
  switch (action.what) {
    case BreakEtcd::What::kStop:
      return members.stop(action.number);
    case BreakEtcd::What::kPart:
      return members.part(action.number);
    case BreakEtcd::What::kCutOff:
      return cluster_.cut_off_server(action.number);
  }
}

void EventActions::operator()(const RepairEtcd& action) {
  if (cluster_.etcd() == nullptr) return;
  EtcdReplicas& members = cluster_.etcd()->replicas();
  switch (action.broken.what) {
    case BreakEtcd::What::kStop:
      members.start(action.broken.number);
      break;
    case BreakEtcd::What::kPart:
      members.rejoin(action.broken.number);
      break;
    case BreakEtcd::What::kCutOff:
      cluster_.reach_server_again(action.broken.number);
      break;
  }
  cluster_.invariants().on_outage(false, cluster_.time().now());
}

void EventActions::operator()(const DeposeEtcd&) {
  if (cluster_.etcd() != nullptr) cluster_.etcd()->replicas().depose();
}

void EventActions::operator()(const CompactEtcd&) {
  if (cluster_.etcd() != nullptr) cluster_.etcd()->compact(cluster_.etcd()->history().revision());
}

void EventActions::operator()(const SlowApiServer& action) {
  faults_ = cluster_.network().faults();
  NetworkFaults slow = faults_;
  slow.latency_min = action.latency / 2;
  slow.latency_max = action.latency;
  cluster_.network().set_faults(slow);
}

void EventActions::operator()(const DrainNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) {
    set_schedulable(node, false);
    draining_.insert(node);
    evict_from(node, kDrainAttempts);
  }
}

void EventActions::operator()(const UncordonNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) {
    draining_.erase(node);
    set_schedulable(node, true);
  }
}

void EventActions::operator()(const ScaleWorkload& action) {
  cluster_.patch(fmt::format("/apis/apps/v1/namespaces/{}/{}/{}", action.ns, plural_of(action.kind), action.name),
                 Json::object({{"spec", Json::object({{"replicas", action.replicas}})}}));
}

/// Gives the new template a number of its own; it is the old one but for the given members.
void EventActions::operator()(const RollOut& action) {
  const auto found = cluster_.world().deployments().find(name_text(action.deployment));
  if (found == cluster_.world().deployments().end()) return;
  Json changes = Json::object();
  changes.make({"metadata", "annotations", kRolloutNumber}) = fmt::format("{}", ++rollouts_);
  Json container = found->second.pod_template.spec.find("containers")->if_array()->front();
  if (action.memory)
    container["command"] = Json::array({"stress", "--memory", fmt::format("{}", action.memory->count())});
  if (!action.memory_request.empty()) container.make({"resources", "requests", "memory"}) = action.memory_request;
  changes.make({"spec", "containers"}) = Json::array({std::move(container)});
  cluster_.patch(path_of(action.deployment),
                 Json::object({{"spec", Json::object({{"template", std::move(changes)}})}}));
}

void EventActions::operator()(const PauseRollout& action) {
  set_paused(action.deployment, true);
}

void EventActions::operator()(const ResumeRollout& action) {
  set_paused(action.deployment, false);
}

void EventActions::set_paused(const DeploymentChoice& deployment, bool paused) {
  cluster_.patch(path_of(deployment), Json::object({{"spec", Json::object({{"paused", paused}})}}));
}

void EventActions::operator()(const UndoRollout& action) {
  const auto found = cluster_.world().deployments().find(name_text(action.deployment));
  if (found == cluster_.world().deployments().end() || found->second.paused) return;
  workloads::ReplicaSets sets;
  for (const auto& [key, set] : cluster_.world().replica_sets()) {
    const api::OwnerReference* owner = api::controller_of(set.metadata);
    if (owner != nullptr && owner->uid == found->second.metadata.uid)
      sets.push_back(std::make_shared<const api::ReplicaSet>(set));
  }
  const std::int64_t revision = workloads::last_revision(sets);
  const auto before = std::ranges::find_if(
      sets, [revision](const auto& set) { return workloads::revision_of(set->metadata) == revision; });
  if (revision == 0 || before == sets.end()) return;
  Json pod_template = workloads::template_document((*before)->pod_template);
  pod_template.erase({"metadata", "labels", workloads::kPodTemplateHash});
  cluster_.replace(path_of(action.deployment), "/spec/template", pod_template);
}

void EventActions::operator()(const MuteWatch& action) {
  if (action.path.empty()) {
    cluster_.network().unmute();
  } else {
    cluster_.network().mute("controller", action.path);
  }
}

void EventActions::set_schedulable(std::size_t node, bool schedulable) {
  cluster_.patch(fmt::format("/api/v1/nodes/{}", machines_[node].name),
                 Json::object({{"spec", Json::object({{"unschedulable", !schedulable}})}}));
}

void EventActions::evict_from(std::size_t node, int attempts) {
  if (!draining_.contains(node)) return;
  bool left = false;
  for (const auto& [key, pod] : cluster_.world().pods()) {
    if (pod.spec.node_name != machines_[node].name || has_ended(pod) || is_of_daemon_set(pod)) continue;
    left = true;
    if (pod.metadata.deletion_timestamp) continue;
    const Json metadata = Json::object({{"name", key.name}, {"namespace", key.ns}});
    cluster_.create(fmt::format("/api/v1/namespaces/{}/pods/{}/eviction", key.ns, key.name),
                    Json::object({{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", metadata}}));
  }
  if (!left || attempts == 0) return;
  cluster_.time().after(kDrainRetry, [this, node, attempts] { evict_from(node, attempts - 1); });
}

}  // namespace spillway::sim
