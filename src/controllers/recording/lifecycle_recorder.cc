#include "controllers/recording/lifecycle_recorder.h"

#include "policy/lifecycle/profile.h"

#include "recording/frame.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace spillway::controllers {
namespace {

/// The wait after a segment could not be begun.
constexpr Duration kSegmentRetry = seconds(10);

/// The wait after a node was tainted: the slowest of the usual rates gives the next token within a hundred seconds.
constexpr Duration kBucketsFill = minutes(2);

/// The longest run without a calm moment, in segments: its segment would be longer than the others.
constexpr std::size_t kLongest = 4;

/// Labels that define the zone of a node, and labels that exclude it from the zone's count.
constexpr std::array<std::string_view, 5> kKeptLabels = {
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region", "node.kubernetes.io/exclude-disruption"};

/// Written by a node lifecycle controller, not by the node.
bool is_marked(const api::NodeCondition& condition) {
  return condition.status == "Unknown" &&
         (condition.reason == "NodeStatusUnknown" || condition.reason == "NodeStatusNeverUpdated");
}

std::string silence_taint_of(const api::Node& node) {
  for (const api::Taint& taint : node.spec.taints) {
    const bool ours = taint.key == api::kTaintNodeNotReady || taint.key == api::kTaintNodeUnreachable;
    if (ours && taint.effect == api::kNoExecute) return taint.key;
  }
  return {};
}

/// `before`: the conditions that a controller has overwritten.
NodeSaid said_by(const api::Node& node, const NodeSaid* before) {
  NodeSaid said{.name = node.metadata.name, .labels = {}, .conditions = {}};
  for (const std::string_view key : kKeptLabels) {
    if (const auto label = node.metadata.labels.find(std::string(key)); label != node.metadata.labels.end())
      said.labels.insert(*label);
  }
  const api::NodeCondition* const ready = api::find_condition(node.status.conditions, "Ready");
  if (before != nullptr && ready != nullptr && is_marked(*ready)) {
    said.conditions = before->conditions;
    return said;
  }
  for (const api::NodeCondition& each : node.status.conditions)
    if (!is_marked(each)) said.conditions.push_back({each.type, each.status, each.reason});
  return said;
}

}  // namespace

void LifecycleRecorder::on_start(Now now) {
  run_ = static_cast<std::uint64_t>(now.wall.time_since_epoch().count());
  next_segment_ = 0;
  open_ = false;
  after_gap_ = false;
  not_before_.reset();
  nodes_.clear();
  zones_.clear();
}

void LifecycleRecorder::on_pass(Now now) {
  flush();
  if (!run_) return;
  const std::size_t most = sink_.segment_bytes();
  const bool is_time = !not_before_ || now.mono >= *not_before_;
  const bool is_full = segment_bytes_ >= most && ((is_time && is_calm()) || segment_bytes_ >= kLongest * most);
  if (open_ ? is_full : is_time) begin_segment(now);
}

/// A replay that begins here would lack the waiting times of nodes, and the states of zones.
bool LifecycleRecorder::is_calm() const {
  const auto waits = [](const auto& each) { return each.second.node.marked && each.second.node.taint.empty(); };
  const auto disrupted = [](const auto& each) { return each.first.starts_with("zone ") && each.second != "Normal"; };
  return std::ranges::none_of(nodes_, waits) && std::ranges::none_of(zones_, disrupted);
}

void LifecycleRecorder::begin_segment(Now now) {
  std::string bytes(recording::kControllerKind.header);
  open_ = recording::append_frame(bytes,
                                  encode_record(ControllerState{*run_, next_segment_, after_gap_, now, controller_}));
  next_number_ = 0;
  for (auto& [name, known] : nodes_) {
    known.number = next_number_++;
    open_ = recording::append_frame(bytes, encode_record(known.node)) && open_;
  }
  segment_bytes_ = bytes.size();
  open_ = open_ && sink_.begin_segment(std::move(bytes));
  if (!open_) return lose(now);
  ++next_segment_;
  after_gap_ = false;
  not_before_.reset();
}

void LifecycleRecorder::lose(Now now) {
  open_ = false;
  after_gap_ = true;
  not_before_ = now.mono + kSegmentRetry;
  waiting_.signs.clear();
}

void LifecycleRecorder::on_node(const std::string& name, const api::Node* node, Now now) {
  const auto found = nodes_.find(name);
  if (found != nodes_.end() && (node == nullptr || found->second.uid != node->metadata.uid)) {
    nodes_.erase(found);
    write(NodeGone{now, name}, now);
  }
  if (node == nullptr) return;
  const auto [at, fresh] = nodes_.try_emplace(name);
  Known& known = at->second;
  const api::NodeCondition* const ready = api::find_condition(node->status.conditions, "Ready");
  NodeSaid said = said_by(*node, fresh ? nullptr : &known.node.said);
  known.node.marked = ready != nullptr && is_marked(*ready);
  known.node.taint = silence_taint_of(*node);
  const auto heartbeat = ready == nullptr || known.node.marked ? known.heartbeat : ready->last_heartbeat_time;
  const bool beats = heartbeat != known.heartbeat;
  known.heartbeat = heartbeat;
  if (!fresh && said == known.node.said) {
    if (beats) record_sign(known, false, now);
    return;
  }
  if (fresh) {
    known.uid = node->metadata.uid;
    known.number = next_number_++;
  }
  known.node.said = std::move(said);
  known.node.last_sign = now.mono;
  known.last_decision.clear();
  write(NodeChanged{now, known.node.said}, now);
}

void LifecycleRecorder::on_lease(const std::string& node, const api::Lease& lease, Now now) {
  const auto known = nodes_.find(node);
  if (known == nodes_.end() || known->second.renewed == lease.renew_time) return;
  known->second.renewed = lease.renew_time;
  known->second.node.leased = true;
  record_sign(known->second, true, now);
}

void LifecycleRecorder::record_sign(Known& known, bool lease, Now now) {
  known.node.last_sign = now.mono;
  known.last_decision.clear();
  if (!open_) return;
  if (waiting_.signs.empty()) waiting_.at = now;
  waiting_.signs.push_back({known.number, lease, now.mono - waiting_.at.mono});
  if (waiting_.signs.size() >= kBundleMax) flush();
}

void LifecycleRecorder::flush() {
  if (waiting_.signs.empty()) return;
  const Now at = waiting_.at;
  SignsOfLife bundle = std::exchange(waiting_, {});
  write(std::move(bundle), at);
}

void LifecycleRecorder::on_decision(const LifecycleDecision& decision, Now now) {
  const auto node = nodes_.find(decision.subject);
  std::string& last = node != nodes_.end() ? node->second.last_decision : zones_[decision.subject];
  if (std::exchange(last, decision.what) == decision.what) return;  // each pass decides it anew until it is done
  write(LifecycleDecided{now, decision.subject, decision.what, decision.reasons}, now);
  if (!open_) return;
  if (decision.what.starts_with("FullDisruption")) sink_.keep("zone-down");
  const bool uses_up = decision.what.starts_with("tainted") || decision.what == "pods evicted";
  if (uses_up) not_before_ = now.mono + kBucketsFill;
}

void LifecycleRecorder::write(const LifecycleRecord& record, Now now) {
  if (!std::holds_alternative<SignsOfLife>(record)) flush();
  if (!open_) return;
  std::string bytes;
  if (!recording::append_frame(bytes, encode_record(record))) return lose(now);
  segment_bytes_ += bytes.size();
  if (!sink_.append(std::move(bytes))) lose(now);
}

}  // namespace spillway::controllers
