#include "sim/scenario/event_actions.h"

#include "policy/workloads/deployment_revisions.h"
#include "policy/workloads/pod_template.h"
#include "sim/scenario/expectation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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
  return owner != nullptr && owner->kind == "DaemonSet";
}

bool has_ended(const api::Pod& pod) {
  return pod.status.phase == "Failed" || pod.status.phase == "Succeeded";
}

/// The rate per second; a change with a duration grows evenly.
std::int64_t rate_of(Duration over, std::int64_t grows, std::int64_t given) {
  if (over <= Duration::zero()) return given;
  return std::max<std::int64_t>(
      static_cast<std::int64_t>(static_cast<double>(grows) / std::chrono::duration<double>(over).count()), 0);
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

}  // namespace

void EventActions::carry_out(const Action& action) {
  std::visit(*this, action);
}

void EventActions::take_back(const Action& action) {
  if (const auto* partition = std::get_if<PartitionNodes>(&action)) {
    (*this)(HealNodes{partition->nodes});
  } else if (const auto* crash = std::get_if<CrashNodes>(&action)) {
    (*this)(RestartNodes{crash->nodes});
  } else if (std::holds_alternative<CrashControllers>(action)) {
    (*this)(RestartControllers{});
  } else if (std::holds_alternative<CrashScheduler>(action)) {
    (*this)(RestartScheduler{});
  } else if (const auto* stop = std::get_if<StopApiServer>(&action)) {
    (*this)(StartApiServer{stop->server});
  } else if (const auto* broken = std::get_if<BreakEtcd>(&action)) {
    (*this)(MendEtcd{*broken});
  } else if (std::holds_alternative<SlowApiServer>(action)) {
    NetworkFaults again = cluster_.network().faults();
    again.latency_min = faults_.latency_min;
    again.latency_max = faults_.latency_max;
    cluster_.network().set_faults(again);
  } else if (const auto* drain = std::get_if<DrainNodes>(&action)) {
    (*this)(UncordonNodes{drain->nodes});
  } else if (std::holds_alternative<MuteWatch>(action)) {
    (*this)(MuteWatch{});
  } else if (const auto* memory = std::get_if<UseMemory>(&action)) {
    for_each(memory->pods, [this](const std::string& uid, SimHost& machine) {
      if (const auto before = used_before_.find(uid); before != used_before_.end())
        machine.use_memory(uid, before->second, Bytes{0});
    });
  } else if (const auto* clocks = std::get_if<JumpMachineClocks>(&action)) {
    (*this)(JumpMachineClocks{clocks->nodes, -clocks->by});
  } else if (const auto* links = std::get_if<WorsenLinks>(&action)) {
    for (const std::size_t node : nodes_of(links->nodes)) cluster_.mend_link_of(node);
  } else if (const auto* endings = std::get_if<HoldEndings>(&action)) {
    for_each(endings->pods,
             [](const std::string& uid, SimHost& machine) { machine.set_ending(uid, SimHost::Ending::kPrompt); });
  } else if (const auto* pause = std::get_if<PauseRollout>(&action)) {
    (*this)(ResumeRollout{pause->deployment});
  } else if (const auto* images = std::get_if<KeepImages>(&action)) {
    (*this)(KeepImages{images->nodes, Bytes{0}});
  } else if (const auto* disk = std::get_if<FillDisk>(&action)) {
    for_each(disk->pods, [this](const std::string& uid, SimHost& machine) {
      if (const auto before = disk_before_.find(uid); before != disk_before_.end())
        machine.use_disk(uid, before->second, Bytes{0});
    });
  } else if (const auto* files = std::get_if<ReadFiles>(&action)) {
    for_each(files->pods, [](const std::string& uid, SimHost& machine) { machine.read_files(uid, {}); });
  } else if (const auto* fork = std::get_if<ForkProcesses>(&action)) {
    for_each(fork->pods, [this](const std::string& uid, SimHost& machine) {
      if (const auto before = processes_before_.find(uid); before != processes_before_.end())
        machine.fork_processes(uid, before->second, 0);
    });
  }
}

void EventActions::operator()(const PartitionNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) cluster_.partition_node(node, action.cut);
}

void EventActions::operator()(const HealNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) cluster_.heal_node(node);
}

void EventActions::operator()(const CrashNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) cluster_.crash_node(node);
}

void EventActions::operator()(const RestartNodes& action) {
  for (const std::size_t node : nodes_of(action.nodes)) cluster_.restart_node(node);
}

void EventActions::operator()(const RollingReboot& action) {
  Duration begins{};
  for (const std::size_t node : nodes_of(action.nodes)) {
    cluster_.time().after(begins, [this, node] { cluster_.crash_node(node); });
    cluster_.time().after(begins + action.away, [this, node] { cluster_.restart_node(node); });
    begins += action.interval;
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

void EventActions::operator()(const MendEtcd& action) {
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

void EventActions::operator()(const UseMemory& action) {
  for_each(action.pods, [&](const std::string& uid, SimHost& machine) {
    const Bytes before = machine.usage_of_pod(uid);
    used_before_.insert_or_assign(uid, before);
    const std::int64_t rate = rate_of(action.over, action.to.count() - before.count(), action.rate_per_second.count());
    machine.use_memory(uid, action.to, Bytes{rate});
  });
}

void EventActions::operator()(const FillDisk& action) {
  for_each(action.pods, [&](const std::string& uid, SimHost& machine) {
    const Bytes before = machine.disk_of_pod(uid);
    disk_before_.insert_or_assign(uid, before);
    const std::int64_t rate = rate_of(action.over, action.to.count() - before.count(), action.rate_per_second.count());
    machine.use_disk(uid, action.to, Bytes{rate});
  });
}

void EventActions::operator()(const ForkProcesses& action) {
  for_each(action.pods, [&](const std::string& uid, SimHost& machine) {
    const std::int64_t before = machine.processes_of_pod(uid);
    processes_before_.insert_or_assign(uid, before);
    machine.fork_processes(uid, action.to, rate_of(action.over, action.to - before, action.rate_per_second));
  });
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

void EventActions::operator()(const JumpClock& action) {
  cluster_.time().jump_wall(action.by);
}

void EventActions::operator()(const JumpMachineClocks& action) {
  for (const std::size_t node : nodes_of(action.nodes)) cluster_.jump_clock_of(node, action.by);
}

void EventActions::operator()(const WorsenLinks& action) {
  for (const std::size_t node : nodes_of(action.nodes)) cluster_.set_link_of(node, action.link);
}

void EventActions::operator()(const HoldEndings& action) {
  for_each(action.pods,
           [&action](const std::string& uid, SimHost& machine) { machine.set_ending(uid, action.ending); });
}

void EventActions::operator()(const KeepImages& action) {
  for (const std::size_t node : nodes_of(action.nodes)) {
    if (SimHost* const machine = cluster_.machine(node)) machine->keep_images(action.to, action.undeletable);
  }
}

void EventActions::operator()(const ChangeThresholds& action) {
  for (const std::size_t node : nodes_of(action.nodes)) cluster_.restart_agent(node, action.eviction);
}

void EventActions::operator()(const MuteWatch& action) {
  if (action.path.empty()) {
    cluster_.network().unmute();
  } else {
    cluster_.network().mute("controller", action.path);
  }
}

std::vector<api::PodKey> EventActions::pods_of(const PodChoice& choice) const {
  std::vector<api::PodKey> keys;
  for (const auto& [key, pod] : cluster_.world().pods()) {
    if (choice.first && keys.size() == *choice.first) break;
    if (pod.spec.node_name.empty() || has_ended(pod) || !matches_glob(choice.pods, key.text())) continue;
    if (choice.label) {
      const auto label = pod.metadata.labels.find(choice.label->first);
      if (label == pod.metadata.labels.end() || label->second != choice.label->second) continue;
    }
    keys.push_back(key);
  }
  return keys;
}

void EventActions::for_each(const PodChoice& choice,
                            const std::function<void(const std::string& uid, SimHost& machine)>& act) {
  for (const api::PodKey& key : pods_of(choice)) {
    const api::Pod& pod = cluster_.world().pods().at(key);
    if (SimHost* const machine = machine_of(pod.spec.node_name)) act(pod.metadata.uid, *machine);
  }
}

SimHost* EventActions::machine_of(const std::string& node) {
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    if (machines_[i].name == node) return cluster_.machine(i);
  }
  return nullptr;
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
