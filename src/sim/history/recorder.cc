#include "sim/history/recorder.h"

#include "policy/eviction/threshold.h"
#include "policy/eviction/threshold_parse.h"
#include "policy/lifecycle/node_health.h"
#include "sim/cluster.h"
#include "sim/properties/object_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace spillway::sim {
namespace {

// A change of memory is recorded if it shows: a part of the node's memory, or of the remaining memory when there is
// little of it.
constexpr std::int32_t kMemorySteps = 512;
constexpr std::int32_t kMemoryStepsMost = 4096;

std::int32_t kib_of(Bytes bytes) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(bytes.count() / 1024, 0, std::numeric_limits<std::int32_t>::max()));
}

Status status_of(const api::Node& node, std::string_view type) {
  const api::NodeCondition* condition = api::find_condition(node.status.conditions, type);
  if (condition == nullptr) return Status::kAbsent;
  return condition->status == "True" ? Status::kTrue : condition->status == "False" ? Status::kFalse : Status::kUnknown;
}

Machine machine_of(const Cluster& cluster, std::size_t node) {
  if (cluster.host(node) == nullptr) return Machine::kDown;
  return cluster.is_cut_off(node) ? Machine::kCutOff : Machine::kUp;
}

policy::Subject subject_of(const api::Pod& pod) {
  return {.kind = "Pod", .ns = pod.metadata.ns, .name = pod.metadata.name, .uid = pod.metadata.uid};
}

/// The decision to delete a pod, from the condition that the controllers wrote into it before.
policy::Decision deletion_of(const api::Pod& pod, WallTime at) {
  policy::Decision decision;
  decision.at = at;
  decision.area = policy::Area::kLifecycle;
  decision.verdict = policy::Verdict::kActs;
  decision.action = "delete";
  decision.by = "the controllers";
  decision.subject = subject_of(pod);
  decision.message = api::find_condition(pod.status.conditions, "DisruptionTarget")->message;
  return decision;
}

policy::Decision refusal_of(const api::Pod& pod, const std::string& message, WallTime at) {
  policy::Decision decision;
  decision.at = at;
  decision.area = policy::Area::kScheduling;
  decision.verdict = policy::Verdict::kRefuses;
  decision.action = "bind";
  decision.by = "the scheduler";
  decision.subject = subject_of(pod);
  decision.message = message;
  return decision;
}

/// A pod whose deletion is held: "pod/shop/cart" of the gate.
policy::Decision held_deletion(std::string_view pod, const policy::Reason& reason, WallTime at) {
  policy::Decision decision;
  decision.at = at;
  decision.area = policy::Area::kLifecycle;
  decision.verdict = policy::Verdict::kWaits;
  decision.action = "delete";
  decision.by = "the controllers";
  const std::size_t slash = pod.find('/');
  decision.subject = {.kind = "Pod",
                      .ns = std::string(pod.substr(0, slash)),
                      .name = std::string(pod.substr(slash == pod.npos ? pod.size() : slash + 1)),
                      .uid = {}};
  decision.reasons.push_back(reason);
  return decision;
}

std::string_view words_of(Machine machine) {
  switch (machine) {
    case Machine::kUp:
      return "back";
    case Machine::kDown:
      return "down";
    case Machine::kCutOff:
      return "cut off";
  }
  return "";
}

}  // namespace

Recorder::Recorder(Options options) : options_(std::move(options)) {
  history_.name = options_.name;
  history_.story = options_.story;
  history_.seed = options_.seed;
}

Recorder::~Recorder() {
  alive_.end();
}

void Recorder::on_begin(Cluster& cluster) {
  cluster_ = &cluster;
  const std::size_t nodes = cluster.node_count();
  if (!options_.interval) options_.interval = nodes <= 200 ? seconds(1) : nodes <= 1000 ? seconds(5) : seconds(10);
  history_.sample_ms = static_cast<std::int32_t>(std::chrono::duration_cast<milliseconds>(*options_.interval).count());
  states_.resize(nodes);
  machines_.resize(nodes);
  was_ready_.resize(nodes);
  was_up_.resize(nodes);
  oom_kills_.resize(nodes);
  for (std::size_t i = 0; i < nodes; ++i) {
    node_places_.emplace(cluster.node_name(i), static_cast<std::int32_t>(i));
    NodeHistory& node = history_.nodes.emplace_back();
    node.name = cluster.node_name(i);
    node.zone = zone_place(cluster.node_zone(i));
    states_[i].machine = machine_of(cluster, i);
    add(node.state, states_[i].packed());
  }
  cluster.world().listen(alive_.guard([this](const store::Change& change, Now) { on_change(change); }));
  cluster.on_journal(
      alive_.guard([this](std::size_t node, const agent::JournalLine& line) { on_journal(node, line); }));
  observe();
}

void Recorder::on_timeline(Cluster& /*cluster*/) {
  history_.timeline_ms = now_ms();
}

void Recorder::on_end(Cluster& cluster) {
  observe_machines();
  observe_controllers();
  observe_pods();
  history_.length_ms = now_ms();
  history_.violations = cluster.invariants().violations();
  alive_.end();
  cluster_ = nullptr;
}

std::int32_t Recorder::now_ms() const {
  const auto since = std::chrono::duration_cast<milliseconds>(cluster_->time().now().mono.time_since_epoch()).count();
  return static_cast<std::int32_t>(std::min<std::int64_t>(since, std::numeric_limits<std::int32_t>::max()));
}

void Recorder::add(Series& series, std::int32_t value) {
  const std::int32_t at = now_ms();
  if (!series.empty() && series.back().value == value) return;
  if (!series.empty() && series.back().at_ms == at) {
    series.back().value = value;
    const bool as_before = series.size() > 1 && series[series.size() - 2].value == value;
    if (as_before) series.pop_back();
    points_ -= as_before ? 1 : 0;
    return;
  }
  if (points_ >= options_.points_max) {
    ++history_.points_left_out;
    return;
  }
  ++points_;
  series.push_back({at, value});
}

void Recorder::add(EventKind kind, std::int32_t node, std::string subject, std::string text) {
  if (history_.events.size() >= options_.events_max) {
    ++history_.events_left_out;
    return;
  }
  history_.events.push_back({now_ms(), kind, node, std::move(subject), std::move(text)});
}

void Recorder::add(std::int32_t node, policy::Decision decision) {
  if (history_.decisions.size() >= options_.decisions_max) {
    ++history_.decisions_left_out;
    return;
  }
  history_.decisions.push_back({now_ms(), node, std::move(decision)});
}

std::int32_t Recorder::zone_place(const std::string& name) {
  const auto known = std::ranges::find(history_.zones, name, &ZoneHistory::name);
  const auto place = static_cast<std::int32_t>(known - history_.zones.begin());
  if (known == history_.zones.end()) history_.zones.push_back({.name = name, .state = {}, .waiting = {}, .brake = {}});
  return place;
}

std::int32_t Recorder::brake_place(std::string_view code) {
  const auto known = std::ranges::find(history_.brakes, code);
  const auto place = static_cast<std::int32_t>(known - history_.brakes.begin());
  if (known == history_.brakes.end()) history_.brakes.emplace_back(code);
  return place;
}

void Recorder::on_change(const store::Change& change) {
  const std::string_view key = change.key;
  const std::size_t name = key.rfind('/') + 1;
  if (key.starts_with("/registry/minions/")) on_node(std::string(key.substr(name)));
  if (!key.starts_with("/registry/pods/")) return;
  const std::size_t ns = key.rfind('/', name - 2) + 1;
  on_pod(std::string(key.substr(ns, name - 1 - ns)), std::string(key.substr(name)));
}

void Recorder::on_node(const std::string& name) {
  const auto place = node_places_.find(name);
  if (place == node_places_.end()) return;
  const auto node = static_cast<std::size_t>(place->second);
  NodeState state;
  state.machine = machine_of(*cluster_, node);
  if (const auto found = cluster_->world().nodes().find(name); found != cluster_->world().nodes().end()) {
    state.ready = status_of(found->second, "Ready");
    state.memory_pressure = status_of(found->second, "MemoryPressure");
    state.disk_pressure = status_of(found->second, "DiskPressure");
    state.pid_pressure = status_of(found->second, "PIDPressure");
    state.tainted = has_silence_taint(found->second);
    state.unschedulable = found->second.spec.unschedulable;
  }
  put_state(node, state);
}

void Recorder::put_state(std::size_t node, const NodeState& state) {
  const NodeState before = std::exchange(states_[node], state);
  if (before == state) return;
  add(history_.nodes[node].state, state.packed());
  const auto place = static_cast<std::int32_t>(node);
  const bool was = before.ready == Status::kTrue;
  const bool is = state.ready == Status::kTrue;
  if (was && !is) {
    const std::string_view now = state.ready == Status::kUnknown ? "Unknown" : "False";
    add(EventKind::kNotReady, place, {},
        state.ready == Status::kAbsent ? "the node object is gone" : fmt::format("Ready is {}", now));
  }
  if (!was && is && was_ready_[node]) add(EventKind::kReady, place, {}, "Ready is True again");
  if (!before.tainted && state.tainted) add(EventKind::kTainted, place, {}, "NoExecute: its pods have to leave");
  if (before.tainted && !state.tainted) add(EventKind::kUntainted, place, {}, "NoExecute taken away");
  const bool changed = was != is || before.tainted != state.tainted;
  if (changed && was_ready_[node] && state.ready != Status::kAbsent) to_explain_.insert(history_.nodes[node].name);
  if (is) was_ready_[node] = true;
}

void Recorder::on_pod(const std::string& ns, const std::string& name) {
  const auto found = cluster_->world().pods().find(api::PodKey{ns, name});
  if (found == cluster_->world().pods().end()) return;
  const api::Pod& pod = found->second;
  PodSeen& seen = pods_[pod.metadata.uid];
  const WallTime wall = cluster_->time().now().wall;
  const std::string subject = pod.key().text();
  if (const auto node = node_places_.find(pod.spec.node_name); node != node_places_.end()) seen.node = node->second;
  if (!seen.evicted && pod.status.phase == "Failed" && pod.status.reason == "Evicted") {
    seen.evicted = true;
    add(EventKind::kEvicted, seen.node, subject, pod.status.message);
  }
  if (!seen.deleting && pod.metadata.deletion_timestamp) {
    seen.deleting = true;
    const api::PodCondition* target = api::find_condition(pod.status.conditions, "DisruptionTarget");
    const bool disrupted = target != nullptr && target->status == "True";
    add(EventKind::kDeleted, seen.node, subject, disrupted ? target->message : std::string("deleted"));
    if (disrupted && !seen.evicted) add(seen.node, deletion_of(pod, wall));
  }
  const api::PodCondition* scheduled = api::find_condition(pod.status.conditions, "PodScheduled");
  if (!seen.unplaced && scheduled != nullptr && scheduled->status == "False" && !scheduled->message.empty()) {
    seen.unplaced = true;
    add(EventKind::kUnplaced, -1, subject, scheduled->message);
    add(-1, refusal_of(pod, scheduled->message, wall));
  }
}

void Recorder::on_journal(std::size_t node, const agent::JournalLine& line) {
  if (const auto* entry = std::get_if<agent::JournalEntry>(&line)) {
    if (!entry->intent) add(static_cast<std::int32_t>(node), entry->decision);
    return;
  }
  const auto& aftermath = std::get<agent::Aftermath>(line);
  const auto of =
      std::find_if(history_.decisions.rbegin(), history_.decisions.rend(), [&](const RecordedDecision& recorded) {
        return recorded.node == static_cast<std::int32_t>(node) && recorded.decision.subject.uid == aftermath.uid;
      });
  if (of == history_.decisions.rend()) return;
  of->decision.cost.insert(of->decision.cost.end(), aftermath.facts.begin(), aftermath.facts.end());
}

void Recorder::observe() {
  observe_machines();
  observe_controllers();
  observe_pods();
  cluster_->time().after(*options_.interval, alive_.guard([this] { observe(); }));
}

void Recorder::observe_machines() {
  std::map<std::pair<std::string, Machine>, std::size_t> changed;
  for (std::size_t i = 0; i < history_.nodes.size(); ++i) {
    NodeState state = states_[i];
    state.machine = machine_of(*cluster_, i);
    if (state.machine != machines_[i] && was_up_[i]) ++changed[{cluster_->node_zone(i), state.machine}];
    machines_[i] = state.machine;
    if (state.machine == Machine::kUp) was_up_[i] = true;
    put_state(i, state);
    observe_memory(i);
  }
  record_machines(changed);
}

void Recorder::record_machines(const std::map<std::pair<std::string, Machine>, std::size_t>& changed) {
  for (const auto& [what, count] : changed) {
    add(EventKind::kMachine, -1, {},
        fmt::format("{} {} of {} {} {}", count, count == 1 ? "node" : "nodes", what.first, count == 1 ? "is" : "are",
                    words_of(what.second)));
  }
}

void Recorder::observe_memory(std::size_t place) {
  NodeHistory& node = history_.nodes[place];
  const SimHost* host = cluster_->host(place);
  if (host == nullptr) {
    oom_kills_[place] = 0;  // the next machine of that name begins to count anew
    return add(node.available_kib, -1);
  }
  node.memory_kib = kib_of(host->memory());
  if (node.thresholds < 0) learn_thresholds(place);
  const std::uint64_t kills = std::exchange(oom_kills_[place], host->kernel_oom_kills());
  if (oom_kills_[place] > kills) {
    const std::uint64_t more = oom_kills_[place] - kills;
    add(EventKind::kOomKilled, static_cast<std::int32_t>(place), {},
        fmt::format("the kernel killed {} {}: the node was out of memory", more,
                    more == 1 ? "container" : "containers"));
  }
  const std::int32_t available = kib_of(host->available());
  const std::int32_t last = node.available_kib.empty() ? -1 : node.available_kib.back().value;
  const std::int32_t enough =
      std::clamp(available / 16, node.memory_kib / kMemoryStepsMost, node.memory_kib / kMemorySteps);
  if (last >= 0 && available != 0 && std::abs(std::int64_t{available} - last) < enough) return;
  add(node.available_kib, available);
}

void Recorder::learn_thresholds(std::size_t place) {
  NodeHistory& node = history_.nodes[place];
  const auto parsed = eviction::parse_thresholds(cluster_->agent(place)->options().eviction.thresholds);
  std::vector<MemoryThreshold> thresholds;
  const std::int64_t memory = std::int64_t{node.memory_kib} * 1024;
  for (const eviction::Threshold& each : parsed ? *parsed : std::vector<eviction::Threshold>()) {
    const auto amount = eviction::amount_of(each.value, memory);
    if (each.signal != eviction::Signal::kMemoryAvailable || !amount) continue;
    thresholds.push_back({kib_of(amount->bytes()),
                          static_cast<std::int32_t>(std::chrono::duration_cast<seconds>(each.grace_period).count())});
  }
  const auto known = std::ranges::find(history_.thresholds, thresholds);
  node.thresholds = static_cast<std::int32_t>(known - history_.thresholds.begin());
  if (known == history_.thresholds.end()) history_.thresholds.push_back(std::move(thresholds));
}

/// Records zones and brakes as the controllers see them, and their view of the nodes that changed.
void Recorder::observe_controllers() {
  const controllers::ControllerSet* controllers = cluster_->controllers();
  if (controllers == nullptr || !controllers->synced()) return;  // no controllers run: the states are unchanged
  const Now now = cluster_->time().now();
  for (const controllers::ZoneStanding& each : controllers->report().zones(now)) {
    const std::size_t label = each.zone.rfind(':');  // "region::zone"
    const auto place = zone_place(label == std::string::npos ? each.zone : each.zone.substr(label + 1));
    ZoneHistory& zone = history_.zones[static_cast<std::size_t>(place)];
    add(zone.state, static_cast<std::int32_t>(each.state));
    add(zone.waiting, static_cast<std::int32_t>(each.waiting));
    add(zone.brake, each.brake ? brake_place(policy::to_string(each.brake->code)) : -1);
  }
  std::map<std::string, std::string> held;
  for (const auto& [subject, each] : controllers->gate().held()) {
    const std::string code(policy::to_string(each.reason.code));
    held.emplace(subject, code);
    const auto before = held_.find(subject);
    if (before != held_.end() && before->second == code) continue;
    static_cast<void>(brake_place(code));
    if (subject.starts_with("node/")) to_explain_.insert(subject.substr(5));
    if (subject.starts_with("pod/")) add(-1, held_deletion(std::string_view(subject).substr(4), each.reason, now.wall));
  }
  held_ = std::move(held);
  for (const std::string& name : std::exchange(to_explain_, {})) {
    const auto node = node_places_.find(name);
    auto decision = controllers->report().explain_node(name, now);
    if (decision) add(node == node_places_.end() ? -1 : node->second, *std::move(decision));
  }
}

void Recorder::observe_pods() {
  std::int32_t running = 0;
  std::int32_t pending = 0;
  std::int32_t terminating = 0;
  for (const auto& [key, pod] : cluster_->world().pods()) {
    std::int32_t* const group = pod.metadata.deletion_timestamp ? &terminating
                                : pod.status.phase == "Running" ? &running
                                : pod.status.phase == "Pending" ? &pending
                                                                : nullptr;
    if (group != nullptr) ++*group;
  }
  add(history_.running, running);
  add(history_.pending, pending);
  add(history_.terminating, terminating);
}

}  // namespace spillway::sim
