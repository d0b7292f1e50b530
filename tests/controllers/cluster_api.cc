// The API of the model: lists and watches for the caches of the controller, and the writes it makes.
#include "api/codec/codec.h"
#include "api/exchange/exchange.h"
#include "controllers/cluster_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {
namespace {

using api::Json;

constexpr std::string_view kNodes = "/api/v1/nodes";
constexpr std::string_view kPods = "/api/v1/pods";
constexpr std::string_view kLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
constexpr std::string_view kDaemonSets = "/apis/apps/v1/daemonsets";

api::Response reply(int status, Json document) {
  return {status, {}, api::to_text(document), std::make_shared<const Json>(std::move(document))};
}

api::Response refuse(int status, std::string_view reason) {
  return reply(status, Json::object({{"kind", "Status"}, {"status", "Failure"}, {"reason", reason}, {"code", status}}));
}

api::Response not_found() {
  return refuse(404, "NotFound");
}

api::Response conflict() {
  return refuse(409, "Conflict");
}

api::Response broken() {
  return refuse(500, "InternalError");
}

std::string_view path_of(std::string_view target) {
  return target.substr(0, target.find('?'));
}

/// The resourceVersion that a write insists on, if it insists, is that of the object.
bool is_current(const Json& patch, const api::ObjectMeta& meta) {
  const std::string_view wanted = patch.string_at({"metadata", "resourceVersion"});
  return wanted.empty() || wanted == meta.resource_version;
}

}  // namespace

bool ClusterModel::fails(const std::string& verb, const std::string& name) {
  const auto it = failures_.find({verb, name});
  if (it == failures_.end() || it->second == 0) return false;
  --it->second;
  return true;
}

void ClusterModel::start_controller() {
  NodeLifecycleController::Options options;
  options.node_monitor_period = period_;
  options.monitor = config_;
  options.profile = profile_;
  options.status.retry_wait = Duration::zero();  // no time passes while a call is tried again
  options.reconcile_nodes = false;               // reconciliation has vectors of its own
  options.live_lease_check = false;              // not in the traces of these lines
  CloudCheck::Options cloud;
  cloud.enabled = cloud_;
  cloud.period = period_;
  cloud.facts = profile_.facts;
  controller_ = std::make_unique<DrivenController>(
      DrivenController::Options{options, cloud, [this](const std::string& node) { return !fails("list_pods", node); }});
  controller_->start(now());
  exchange_events();
}

/// The new controller begins with the next pass.
void ClusterModel::restart_controller() {
  controller_.reset();
  inbox_.clear();
  watches_.clear();
  events_.clear();
}

/// Delivers all requests and answers under way between the controller and the API.
void ClusterModel::exchange_events() {
  if (!controller_) return inbox_.clear();
  for (;;) {
    for (const client::ApiCommand& command : controller_->take_api_commands()) execute(command);
    if (inbox_.empty()) return;
    const client::ApiEvent event = std::move(inbox_.front());
    inbox_.pop_front();
    controller_->on_api_event(event, now());
  }
}

/// The controller's timers, at the time they are due in this step.
void ClusterModel::run_due(Instant until) {
  exchange_events();
  for (auto due = controller_->next_wakeup(); due && *due <= until; due = controller_->next_wakeup()) {
    past_ += std::max(*due - now().mono, Duration::zero());
    controller_->on_wakeup(now());
    exchange_events();
  }
}

void ClusterModel::pass() {
  const TaintSet taints_before = taints_now();
  const Queued queued_before = queued();
  if (!controller_) start_controller();
  run_due(now().mono);
  record_taints(taints_before, taints_now());
  const Queued queued_after = queued();
  record_queues("enqueue", queued_after, queued_before);
  record_queues("dequeue", queued_before, queued_after);
  record_zones();
  record_health();
}

/// Runs the work after a pass: the cloud answers, and the queues are processed.
void ClusterModel::tick() {
  if (!controller_) return;
  past_ = nanoseconds(1);
  answer_cloud();
  const TaintSet taints_before = taints_now();
  const Queued queued_before = queued();
  run_due(now().mono + microseconds(1));
  answer_cloud();
  record_taints(taints_before, taints_now());
  record_queues("processed", queued_before, queued());
}

void ClusterModel::answer_cloud() {
  const auto question = controller_->cloud().take_question();
  if (!question) return;
  std::vector<InstanceAnswer> answers;
  for (const InstanceQuestion& each : *question) {
    InstanceAnswer answer{each.node, InstanceState::kRunning};
    if (cloud_gone_.contains(each.node)) answer.state = InstanceState::kGone;
    if (fails("cloud_exists", each.node)) answer.state.reset();
    answers.push_back(std::move(answer));
  }
  controller_->cloud().put_answer(std::move(answers));
  controller_->on_wakeup(now());
  exchange_events();
}

template <typename T>
void ClusterModel::publish(std::string_view collection, std::string_view type, const T& object) {
  const auto watch = watches_.find(collection);
  if (watch == watches_.end()) return;
  Json meta = Json::object({{"name", object.metadata.name}, {"resourceVersion", object.metadata.resource_version}});
  if (!object.metadata.ns.empty()) meta["namespace"] = object.metadata.ns;
  auto event = std::make_shared<api::WatchDocument>();
  event->type = type;
  event->object = std::make_shared<const Json>(Json::object({{"metadata", std::move(meta)}}));
  event->decoded = std::make_shared<const T>(object);
  inbox_.emplace_back(client::WatchFrame{watch->second, nullptr, std::move(event)});
}

void ClusterModel::changed(Machine& machine) {
  machine.node.metadata.resource_version = std::to_string(++revision_);
  publish(kNodes, "MODIFIED", machine.node);
}

void ClusterModel::renewed(Machine& machine) {
  api::Lease& lease = *machine.lease;
  lease.metadata.ns = "kube-node-lease";
  lease.metadata.name = machine.node.metadata.name;
  lease.metadata.resource_version = std::to_string(++revision_);
  publish(kLeases, "MODIFIED", lease);
}

void ClusterModel::removed(Machine& machine) {
  machine.exists = false;
  publish(kNodes, "DELETED", machine.node);
  if (machine.lease) publish(kLeases, "DELETED", *machine.lease);
  machine.lease.reset();
}

void ClusterModel::changed(api::Pod& pod, std::string_view type) {
  pod.metadata.resource_version = std::to_string(++revision_);
  publish(kPods, type, pod);
}

void ClusterModel::execute(const client::ApiCommand& command) {
  if (const auto* call = std::get_if<client::SendCall>(&command)) {
    api::Response response = answer(call->request);
    inbox_.emplace_back(client::CallDone{call->id, std::move(response)});
  } else if (const auto* watch = std::get_if<client::OpenWatch>(&command)) {
    watches_[std::string(path_of(watch->request.target))] = watch->id;
  }
}

api::Response ClusterModel::list(std::string_view collection) const {
  Json::Array items;
  if (collection == kNodes || collection == kLeases) {
    for (const auto& [name, machine] : machines_) {
      if (machine.exists && collection == kNodes) items.push_back(api::encode(machine.node));
      if (machine.lease && collection == kLeases) items.push_back(api::encode(*machine.lease));
    }
  } else if (collection == kPods) {
    for (const auto& [key, pod] : pods_) items.push_back(api::encode(pod));
  } else if (collection == kDaemonSets) {
    for (const api::DaemonSet& set : daemon_sets_) items.push_back(api::encode(set));
  }
  const Json meta = Json::object({{"resourceVersion", std::to_string(revision_)}});
  return reply(200, Json::object({{"metadata", meta}, {"items", Json(std::move(items))}}));
}

api::Response ClusterModel::answer(const api::Request& request) {
  const Json body = request.document ? *request.document : Json();
  const auto target = api::parse_target(request.target).value();
  const std::vector<std::string>& at = target.segments;  // api, v1, nodes, NAME; api, v1, namespaces, NS, pods, NAME
  const bool lists = request.method == api::Method::kGet && target.find("limit") != nullptr;
  if (lists) return list(path_of(request.target));
  if (at.size() >= 4 && at[2] == "nodes") {
    const auto machine = machines_.find(at[3]);
    if (machine == machines_.end() || !machine->second.exists) return not_found();
    if (request.method == api::Method::kGet) return reply(200, api::encode(machine->second.node));
    if (request.method == api::Method::kDelete) return delete_node(at[3]);
    return patch_node(at[3], at.size() > 4, body);
  }
  if (at.size() >= 6 && at[4] == "pods") {
    const std::string key = at[3] + "/" + at[5];
    if (!pods_.contains(key)) return not_found();
    return request.method == api::Method::kDelete ? delete_pod(key, body) : patch_pod(key, body);
  }
  if (at.size() >= 5 && at[4] == "events") {
    return write_event(at.size() > 5 ? at[5] : std::string(body.string_at({"metadata", "name"})), body);
  }
  return not_found();
}

api::Response ClusterModel::patch_node(const std::string& name, bool status, const Json& patch) {
  Machine& machine = machines_.at(name);
  if (fails(status ? "update_node_status" : "patch_node", name)) return broken();
  if (!is_current(patch, machine.node.metadata)) return conflict();
  if (status) {
    api::NodeStatus wanted = api::decode<api::NodeStatus>(*patch.find("status")).value();
    for (api::NodeCondition& each : wanted.conditions) {
      auto& known = machine.node.status.conditions;
      const auto same = std::ranges::find(known, each.type, &api::NodeCondition::type);
      if (same == known.end()) {
        known.push_back(std::move(each));
      } else {
        *same = std::move(each);
      }
    }
    Json::Array action{"status", name};
    if (full_) action.push_back(conditions_of(machine.node));
    if (!is_background(name)) act(std::move(action));
  } else {
    machine.node.spec.taints.clear();
    for (const Json& each : *patch.at({"spec", "taints"})->if_array()) {
      machine.node.spec.taints.push_back(api::decode<api::Taint>(each).value());
    }
  }
  changed(machine);
  return reply(200, api::encode(machine.node));
}

api::Response ClusterModel::patch_pod(const std::string& key, const Json& patch) {
  if (fails("conflict_pod_status", key)) return conflict();
  if (fails("update_pod_status", key)) return broken();
  api::Pod& pod = pods_.at(key);
  if (!is_current(patch, pod.metadata)) return conflict();
  const api::PodStatus wanted = api::decode<api::PodStatus>(*patch.find("status")).value();
  if (!wanted.reason.empty()) {
    pod.status.reason = wanted.reason;
    pod.status.message = wanted.message;
    act({"pod_reason", key, pod.status.reason, pod.status.message});
  }
  for (const api::PodCondition& condition : wanted.conditions) {
    const auto known = std::ranges::find(pod.status.conditions, condition.type, &api::PodCondition::type);
    if (known == pod.status.conditions.end() || known->status == condition.status) continue;
    known->status = condition.status;
    act({"pod_ready", key, condition.status});
  }
  changed(pod);
  return reply(200, api::encode(pod));
}

api::Response ClusterModel::delete_pod(const std::string& key, const Json& options) {
  if (fails("delete_pod", key)) return broken();
  const Json* grace = options.find("gracePeriodSeconds");
  const bool force = grace != nullptr && grace->if_int64() == 0;
  Json::Array action{"pod_delete", key};
  if (force) action.push_back(0);
  act(std::move(action));
  api::Pod& pod = pods_.at(key);
  const Json found = api::encode(pod);
  if (force) {
    changed(pod, "DELETED");
    pods_.erase(key);
  } else if (!pod.metadata.deletion_timestamp) {
    pod.metadata.deletion_timestamp = now().wall;
    pod.metadata.deletion_grace_period_seconds = 30;
    changed(pod);
  }
  return reply(200, found);
}

api::Response ClusterModel::delete_node(const std::string& name) {
  removed(machines_.at(name));
  act({"node_delete", name});
  return reply(200, Json::object({{"kind", "Status"}, {"status", "Success"}}));
}

/// A repeat raises the count of the event that was posted.
api::Response ClusterModel::write_event(const std::string& name, const Json& event) {
  auto& [posted, count] = events_[name];
  if (posted.is_null()) posted = event;
  const std::int64_t count_now = event.find("count") == nullptr ? 1 : event.find("count")->if_int64().value_or(1);
  const std::string_view ns = posted.string_at({"involvedObject", "namespace"});
  const std::string_view object = posted.string_at({"involvedObject", "name"});
  for (; count < count_now; ++count) {
    this->event(posted.string_at({"involvedObject", "kind"}),
                ns.empty() ? std::string(object) : fmt::format("{}/{}", ns, object), posted.string_at({"type"}),
                posted.string_at({"reason"}), std::string(posted.string_at({"message"})));
  }
  return reply(201, posted);
}

}  // namespace spillway::controllers
