#include "controllers/cluster_model.h"

#include "policy/lifecycle/condition_taints.h"
#include "policy/lifecycle/lines/kubernetes_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace spillway::controllers {
namespace {

using api::Json;
using lifecycle::EvictionMode;
using lifecycle::Line;

constexpr std::int64_t kStepMs = 100;
constexpr std::int64_t kReportPeriodMs = 300'000;
constexpr WallTime kWallOrigin = WallTime(seconds(1'700'000'000));
constexpr Instant kMonoOrigin = Instant(hours(24 * 100));
constexpr std::array kKinds = {"event",       "status",  "taint-",  "taint+", "pod_ready", "pod_reason", "pod_delete",
                               "node_delete", "enqueue", "dequeue", "zone",   "health",    "processed"};

std::int64_t integer(const Json& in, std::string_view key, std::int64_t absent = 0) {
  const Json* value = in.find(key);
  return value == nullptr ? absent : value->if_int64().value_or(absent);
}

float single(const Json& in, std::string_view key) {
  return static_cast<float>(in.find(key)->if_double().value());
}

std::string text(const Json& in, std::string_view key, std::string_view absent = {}) {
  const Json* value = in.find(key);
  return value == nullptr || value->if_string() == nullptr ? std::string(absent) : *value->if_string();
}

bool flag(const Json& in, std::string_view key) {
  const Json* value = in.find(key);
  return value != nullptr && value->if_bool().value_or(false);
}

Duration ms(const Json& in, std::string_view key) {
  return milliseconds(integer(in, key));
}

const Json::Array& array(const Json& in, std::string_view key) {
  static const Json::Array kEmpty;
  const Json* value = in.find(key);
  return value == nullptr || value->if_array() == nullptr ? kEmpty : *value->if_array();
}

api::StringMap string_map(const Json& in, std::string_view key) {
  api::StringMap result;
  const Json* value = in.find(key);
  if (value == nullptr || value->if_object() == nullptr) return result;
  for (const auto& [name, each] : *value->if_object()) result.emplace(name, *each.if_string());
  return result;
}

std::vector<api::Taint> taints_of(const Json& in) {
  std::vector<api::Taint> taints;
  for (const Json& taint : array(in, "taints")) {
    taints.push_back({text(taint, "key"), text(taint, "value"), text(taint, "effect"), {}});
  }
  return taints;
}

std::string numbered(const std::string& prefix, std::int64_t index) {
  return fmt::format("{}{:03}", prefix, index);
}

Line line_of(const Json& row) {
  return lifecycle::parse_line(row.string_at({"profile"})).value();
}

lifecycle::MonitorConfig config_of(const Json& in) {
  lifecycle::MonitorConfig config;
  config.health.node_monitor_grace_period = ms(in, "node_monitor_grace_period_ms");
  config.health.node_startup_grace_period = ms(in, "node_startup_grace_period_ms");
  config.pod_eviction_timeout = ms(in, "pod_eviction_timeout_ms");
  config.zones.node_eviction_rate = single(in, "node_eviction_rate");
  config.zones.secondary_node_eviction_rate = single(in, "secondary_node_eviction_rate");
  config.zones.large_cluster_size_threshold = static_cast<std::int32_t>(integer(in, "large_cluster_size_threshold"));
  config.zones.unhealthy_zone_threshold = single(in, "unhealthy_zone_threshold");
  return config;
}

}  // namespace

ClusterModel::ClusterModel(const Json& row)
    : input_(*row.find("input")),
      profile_(lifecycle::upstream_profile(
          line_of(row), row.string_at({"mode"}) == "legacy" ? EvictionMode::kLegacy : EvictionMode::kTaint)),
      config_(config_of(*input_.find("config"))),
      period_(ms(*input_.find("config"), "node_monitor_period_ms")),
      original_(line_of(row) == Line::kV1_7),
      full_(text(input_, "detail") == "full"),
      cloud_(flag(input_, "cloud")) {
  for (const Json& group : array(input_, "groups")) add_group(group);
  for (const Json& pod : array(input_, "pods")) add_pod(pod);
  for (const Json& set : array(input_, "daemonsets")) {
    api::DaemonSet daemon;
    daemon.metadata.ns = text(set, "ns");
    daemon.metadata.name = text(set, "name");
    for (const auto& [key, value] : string_map(set, "selector")) {
      daemon.selector.requirements.push_back({key, api::LabelRequirement::Op::kIn, {value}});
    }
    daemon_sets_.push_back(std::move(daemon));
  }
}

Now ClusterModel::now() const {
  return {kMonoOrigin + milliseconds(t_ms_) + past_, wall(t_ms_)};
}

WallTime ClusterModel::wall(std::int64_t at_ms) const {
  return kWallOrigin + milliseconds(at_ms);
}

std::int64_t ClusterModel::ms_of(WallTime time) const {
  return std::chrono::duration_cast<milliseconds>(time - kWallOrigin).count();
}

void ClusterModel::add_group(const Json& group) {
  const std::string prefix = text(group, "prefix");
  const Json::Array& names = array(group, "names");
  const std::int64_t count = names.empty() ? integer(group, "count") : static_cast<std::int64_t>(names.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string name = names.empty() ? numbered(prefix, i) : *names[static_cast<std::size_t>(i)].if_string();
    Machine machine;
    machine.node.metadata.name = name;
    machine.node.metadata.uid = "uid-" + name;
    machine.node.metadata.resource_version = "1";
    machine.node.metadata.labels = string_map(group, "labels");
    machine.node.metadata.creation_timestamp = wall(integer(group, "created_ms"));
    machine.node.status.node_info.kubelet_version = text(group, "kubelet_version", original_ ? "v1.7.9" : "v1.29.0");
    for (const Json& each : array(group, "conditions")) {
      machine.node.status.conditions.push_back({text(each, "type"), text(each, "status"), text(each, "reason"),
                                                text(each, "message"), wall(integer(each, "hb_ms")),
                                                wall(integer(each, "tr_ms"))});
    }
    machine.node.spec.taints = taints_of(group);
    machine.exists = !flag(group, "absent");
    machine.up = !flag(group, "down");
    machine.ready = text(group, "ready", "True");
    machine.first_post_ms = integer(group, "first_post_ms") + i * integer(group, "stagger_ms");
    machine.period_ms = integer(group, "period_ms", 10000);
    machine.skew_ms = integer(group, "skew_ms");
    const std::string post = text(group, "post", "both");
    machine.post = post == "status" ? Post::kStatus : post == "lease" ? Post::kLease : Post::kBoth;
    machines_.emplace(name, std::move(machine));
  }
}

void ClusterModel::add_pod(const Json& in) {
  api::Pod pod;
  pod.metadata.ns = text(in, "ns");
  pod.metadata.name = text(in, "name");
  pod.metadata.uid = "uid-" + pod.key().text();
  pod.metadata.resource_version = "1";
  pod.metadata.labels = string_map(in, "labels");
  pod.spec.node_name = text(in, "node");
  pod.status.reason = text(in, "reason");
  if (in.find("ready") != nullptr) pod.status.conditions.push_back({.type = "Ready", .status = text(in, "ready")});
  if (in.find("deletion_grace_s") != nullptr) {
    pod.metadata.deletion_grace_period_seconds = integer(in, "deletion_grace_s");
    pod.metadata.deletion_timestamp = now().wall;
  }
  const std::string key = pod.key().text();
  pods_.insert_or_assign(key, std::move(pod));
}

std::vector<std::string> ClusterModel::selected(const Json& in) const {
  std::vector<std::string> names;
  for (const Json& name : array(in, "nodes")) names.push_back(*name.if_string());
  if (in.find("prefix") != nullptr) {
    for (std::int64_t i = integer(in, "from"); i <= integer(in, "to"); ++i) {
      names.push_back(numbered(text(in, "prefix"), i));
    }
  }
  return names;
}

void ClusterModel::apply(const Json& in) {
  const std::string ev = text(in, "ev");
  if (ev == "controller_restart") {
    restart_controller();
  } else if (ev == "api_fail") {
    failures_[{text(in, "verb"), text(in, "name")}] += integer(in, "times");
  } else if (ev == "pod_add") {
    const Json& pod = *in.find("pod");
    add_pod(pod);
    changed(pods_.at(text(pod, "ns") + "/" + text(pod, "name")), "ADDED");
  } else {
    for (const std::string& name : selected(in)) apply_to(machines_.at(name), in);
  }
}

void ClusterModel::apply_to(Machine& machine, const Json& in) {
  const std::string ev = text(in, "ev");
  api::Node& node = machine.node;
  const api::Node before = node;
  if (ev == "kubelet_down") {
    machine.up = false;
  } else if (ev == "kubelet_up") {
    machine.up = true;
  } else if (ev == "kubelet_ready") {
    machine.ready = text(in, "status");
  } else if (ev == "kubelet_pressure") {
    machine.pressure[text(in, "type")] = text(in, "status");
  } else if (ev == "kubelet_skew") {
    machine.skew_ms = integer(in, "renew_ms");
  } else if (ev == "post_now") {
    post(machine);
  } else if (ev == "lease_set") {
    machine.lease.emplace().renew_time = wall(integer(in, "renew_ms"));
    renewed(machine);
  } else if (ev == "node_add") {
    machine.exists = true;
    node.metadata.creation_timestamp = std::chrono::floor<seconds>(now().wall);
    node.spec.taints.clear();
    node.status.conditions.clear();
    machine.reported_ms.reset();
    changed(machine);
  } else if (ev == "node_delete") {
    removed(machine);
  } else if (ev == "node_labels") {
    node.metadata.labels = string_map(in, "labels");
  } else if (ev == "node_taints") {
    node.spec.taints = taints_of(in);
  } else if (ev == "condition_removed") {
    std::erase_if(node.status.conditions, [&](const auto& each) { return each.type == text(in, "type"); });
  } else if (ev == "cloud_gone") {
    cloud_gone_.insert(node.metadata.name);
  }
  if (machine.exists && node != before) changed(machine);
}

std::vector<std::string> ClusterModel::owned_conditions() const {
  if (original_) return {"OutOfDisk", "MemoryPressure", "DiskPressure", "Ready"};
  return {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"};
}

bool ClusterModel::status_due(const Machine& machine) const {
  if (!machine.reported_ms || t_ms_ - *machine.reported_ms >= kReportPeriodMs) return true;
  return std::ranges::any_of(owned_conditions(), [&](const std::string& type) {
    const auto* stored = api::find_condition(machine.node.status.conditions, type);
    const auto pressure = machine.pressure.find(type);
    const std::string status =
        type == "Ready" ? machine.ready : (pressure == machine.pressure.end() ? "False" : pressure->second);
    return stored == nullptr || stored->status != status;
  });
}

void ClusterModel::post(Machine& machine) {
  if (!machine.exists) return;
  const WallTime stamp = wall(t_ms_ + machine.skew_ms);
  if (machine.post != Post::kStatus && !original_) {
    if (!machine.lease) machine.lease.emplace();
    machine.lease->renew_time = stamp;
    renewed(machine);
  }
  if (machine.post != Post::kLease || status_due(machine)) post_status(machine, std::chrono::floor<seconds>(stamp));
}

void ClusterModel::post_status(Machine& machine, WallTime stamp) {
  struct Words {
    std::string_view type, bad_reason, good_reason, bad_message, good_message;
  };

  static constexpr std::array kWords = {
      Words{"MemoryPressure", "KubeletHasInsufficientMemory", "KubeletHasSufficientMemory",
            "kubelet has insufficient memory available", "kubelet has sufficient memory available"},
      Words{"DiskPressure", "KubeletHasDiskPressure", "KubeletHasNoDiskPressure", "kubelet has insufficient disk space",
            "kubelet has no disk pressure"},
      Words{"PIDPressure", "KubeletHasInsufficientPID", "KubeletHasSufficientPID",
            "kubelet has insufficient PID available", "kubelet has sufficient PID available"},
      Words{"OutOfDisk", "KubeletOutOfDisk", "KubeletHasSufficientDisk", "out of disk space",
            "kubelet has sufficient disk space available"},
      Words{"Ready", "KubeletReady", "KubeletNotReady", "kubelet is posting ready status", "container runtime is down"},
  };
  machine.reported_ms = t_ms_;
  auto& conditions = machine.node.status.conditions;
  for (const std::string& type : owned_conditions()) {
    const auto pressure = machine.pressure.find(type);
    const std::string status =
        type == "Ready" ? machine.ready : (pressure == machine.pressure.end() ? "False" : pressure->second);
    const auto words = std::ranges::find(kWords, type, &Words::type);
    auto stored = std::ranges::find(conditions, type, &api::NodeCondition::type);
    if (stored == conditions.end()) {
      conditions.push_back({.type = type});
      stored = std::prev(conditions.end());
    }
    if (stored->status != status) stored->last_transition_time = stamp;
    stored->status = status;
    stored->reason = status == "True" ? words->bad_reason : words->good_reason;
    stored->message = status == "True" ? words->bad_message : words->good_message;
    stored->last_heartbeat_time = stamp;
  }
  changed(machine);
}

Json ClusterModel::run() {
  const std::int64_t duration_ms = integer(input_, "duration_ms");
  const std::int64_t period_ms = integer(*input_.find("config"), "node_monitor_period_ms");
  const Json::Array& events = array(input_, "events");
  std::size_t next = 0;
  for (t_ms_ = 0; t_ms_ <= duration_ms; t_ms_ += kStepMs) {
    past_ = Duration::zero();
    for (; next < events.size() && integer(events[next], "t_ms") <= t_ms_; ++next) {
      apply(events[next]);
      exchange_events();
    }
    for (auto& [name, machine] : machines_) {
      const std::int64_t since = t_ms_ - machine.first_post_ms;
      if (machine.exists && machine.up && since >= 0 && since % machine.period_ms == 0) post(machine);
    }
    exchange_events();
    if (t_ms_ % period_ms == 0) pass();
    tick();
  }
  std::ranges::stable_sort(actions_, [](const auto& a, const auto& b) {
    const auto order = [](const auto& action) {
      const std::string& kind = *action.second[0].if_string();
      return std::pair(action.first, std::ranges::find(kKinds, kind) - kKinds.begin());
    };
    if (order(a) != order(b)) return order(a) < order(b);
    return api::to_text(Json(a.second)) < api::to_text(Json(b.second));
  });
  Json::Array actions;
  for (auto& [at_ms, action] : actions_) {
    action.insert(action.begin(), Json(at_ms));
    actions.emplace_back(std::move(action));
  }
  Json result = Json::object({{"actions", Json(std::move(actions))}});
  if (full_) result["final"] = final_state();
  return result;
}

void ClusterModel::act(Json::Array action) {
  actions_.emplace_back(t_ms_, std::move(action));
}

void ClusterModel::event(std::string_view kind, const std::string& object, std::string_view type,
                         std::string_view reason, const std::string& message) {
  if (is_background(object)) return;
  if (full_) {
    act({"event", kind, object, type, reason, message});
  } else if (reason != "RegisteredNode") {
    act({"event", kind, object, reason});
  }
}

Json ClusterModel::conditions_of(const api::Node& node) const {
  Json::Array all;
  for (const api::NodeCondition& each : node.status.conditions) {
    all.push_back(Json::array({each.type, each.status, each.reason, each.message,
                               ms_of(each.last_heartbeat_time.value()), ms_of(each.last_transition_time.value())}));
  }
  return all;
}

Json ClusterModel::final_state() const {
  Json result = Json::object();
  for (const auto& [name, machine] : machines_) {
    if (is_background(name)) continue;
    if (!machine.exists) {
      result[name] = nullptr;
      continue;
    }
    Json::Array taints;
    for (const api::Taint& taint : machine.node.spec.taints) {
      Json one = Json::object({{"key", taint.key}, {"effect", taint.effect}});
      if (!taint.value.empty()) one["value"] = taint.value;
      if (taint.time_added) one["time_added_ms"] = ms_of(*taint.time_added);
      taints.push_back(std::move(one));
    }
    result[name] = Json::object({{"conditions", conditions_of(machine.node)}, {"taints", Json(taints)}});
  }
  return result;
}

/// The taints of this controller that every node carries: a pass records only what it changed in the end.
ClusterModel::TaintSet ClusterModel::taints_now() const {
  TaintSet result;
  for (const auto& [name, machine] : machines_) {
    if (!machine.exists || is_background(name)) continue;
    for (const std::string_view key : {profile_.facts.not_ready_taint, profile_.facts.unreachable_taint}) {
      if (lifecycle::has_taint(machine.node.spec.taints, key, api::kNoExecute)) result.emplace(name, key);
    }
  }
  return result;
}

void ClusterModel::record_taints(const TaintSet& before, const TaintSet& after) {
  for (const auto& each : after) {
    if (!before.contains(each)) act({"taint+", each.first, each.second});
  }
  for (const auto& each : before) {
    if (!after.contains(each) && machines_.at(each.first).exists) act({"taint-", each.first, each.second});
  }
}

ClusterModel::Queued ClusterModel::queued() const {
  Queued result;
  if (!controller_) return result;
  for (const auto& [key, zone] : controller_->monitor().zones()) {
    for (const auto* entry : zone.queue.entries()) result[key].insert(entry->name);
  }
  return result;
}

/// Records the nodes that are in a queue of `more` and not in the same queue of `less`.
void ClusterModel::record_queues(const char* kind, const Queued& more, const Queued& less) {
  for (const auto& [zone, names] : more) {
    const auto other = less.find(zone);
    for (const std::string& name : names) {
      const bool only_here = other == less.end() || !other->second.contains(name);
      if (only_here && !is_background(name)) act({kind, zone, name});
    }
  }
}

void ClusterModel::record_zones() {
  for (const auto& [key, zone] : controller_->monitor().zones()) {
    const std::string state = zone.state ? std::string(lifecycle::to_string(*zone.state)) : "(none)";
    const float rate = zone.queue.limiter().effective_rate();
    const auto [it, fresh] = zones_seen_.try_emplace(key, state, rate);
    if (!fresh && it->second == std::pair(state, rate)) continue;
    it->second = {state, rate};
    std::int64_t size = 0;
    std::int64_t unhealthy = 0;
    for (const auto& [name, machine] : machines_) {
      if (!machine.exists || lifecycle::zone_key(machine.node.metadata.labels, profile_.facts.zone_labels) != key ||
          lifecycle::is_excluded_from_zone(machine.node.metadata, profile_.facts.zone_exclusion)) {
        continue;
      }
      ++size;
      if (lifecycle::readiness_of(machine.node) != lifecycle::Readiness::kTrue) ++unhealthy;
    }
    act({"zone", key, state, fmt::format("{}", rate), size, unhealthy});
  }
}

void ClusterModel::record_health() {
  if (!full_) return;
  for (const auto& [name, machine] : machines_) {
    const std::optional<lifecycle::HealthRecord> record = controller_->monitor().find_record(name);
    if (!record || is_background(name)) continue;
    const std::pair seen(record->probe, record->transition);
    const auto [it, fresh] = health_seen_.try_emplace(name, seen);
    if (!fresh && it->second == seen) continue;
    it->second = seen;
    const auto in_ms = [](Instant at) { return std::chrono::duration_cast<milliseconds>(at - kMonoOrigin).count(); };
    act({"health", name, in_ms(seen.first), in_ms(seen.second)});
  }
}

}  // namespace spillway::controllers
