#include "controllers/recording/lifecycle_record.h"

#include "policy/lifecycle/lines/kubernetes_line.h"

#include "recording/codec.h"

#include <array>

namespace spillway::controllers {

struct OfLifecycle;  // the family of the records

using recording::Is;
using LifecycleWriter = recording::Writer<OfLifecycle>;
using LifecycleReader = recording::Reader<OfLifecycle>;

constexpr auto last_of(const LifecycleReader&, lifecycle::EvictionMode) {
  return lifecycle::EvictionMode::kLegacy;
}

constexpr auto last_of(const LifecycleReader&, lifecycle::FullDisruption) {
  return lifecycle::FullDisruption::kHold;
}

void describe(auto& io, Is<Now> auto& n) {
  io(n.mono, n.wall);
}

void describe(auto& io, Is<lifecycle::MonitorConfig> auto& m) {
  auto& z = m.zones;
  io(m.health.node_monitor_grace_period, m.health.node_startup_grace_period, z.node_eviction_rate,
     z.secondary_node_eviction_rate, z.large_cluster_size_threshold, z.unhealthy_zone_threshold, z.full_disruption,
     m.pod_eviction_timeout);
}

void describe(auto& io, Is<lifecycle::ActLimit> auto& l) {
  io(l.acts, l.window);
}

void describe(auto& io, Is<lifecycle::ActLimits> auto& l) {
  io(l.global, l.per_zone, l.per_owner);
}

void describe(auto& io, Is<lifecycle::BrakeConfig> auto& b) {
  io(b.mark_not_ready, b.taint, b.delete_pod, b.delete_node, b.stall_share, b.stall_max, b.watch_age_max,
     b.clock_jump_max, b.clock_hold, b.cool_down);
}

void describe(auto& io, Is<RecordedController> auto& c) {
  io(c.compat, c.mode, c.node_monitor_period, c.monitor, c.brakes);
}

void describe(auto& io, Is<ControllerState> auto& s) {
  io(s.run, s.segment, s.after_gap, s.at, s.controller);
}

void describe(auto& io, Is<NodeSaid::Condition> auto& c) {
  io(c.type, c.status, c.reason);
}

void describe(auto& io, Is<NodeSaid> auto& s) {
  io(s.name, s.labels, s.conditions);
}

void describe(auto& io, Is<NodeKnown> auto& k) {
  io(k.said, k.marked, k.taint, k.leased, k.last_sign);
}

void describe(auto& io, Is<NodeChanged> auto& c) {
  io(c.at, c.said);
}

void describe(auto& io, Is<NodeGone> auto& g) {
  io(g.at, g.name);
}

void describe(auto& io, Is<SignsOfLife::One> auto& o) {
  io(o.node, o.lease, o.after);
}

void describe(auto& io, Is<SignsOfLife> auto& h) {
  io(h.at, h.signs);
}

void describe(auto& io, Is<LifecycleDecided> auto& d) {
  io(d.at, d.subject, d.what, d.reasons);
}

lifecycle::Profile RecordedController::profile() const {
  if (const auto line = lifecycle::parse_line(compat)) return lifecycle::upstream_profile(*line, mode);
  lifecycle::Profile own;
  own.mode = mode;
  return own;
}

RecordedController recorded_controller(const lifecycle::Profile& profile, Duration node_monitor_period,
                                       const lifecycle::MonitorConfig& monitor, lifecycle::BrakeConfig brakes) {
  std::string compat;
  for (const lifecycle::Line line : lifecycle::kLines) {
    if (profile == lifecycle::upstream_profile(line, profile.mode)) compat = lifecycle::to_string(line);
  }
  return {std::move(compat), profile.mode, node_monitor_period, monitor, std::move(brakes)};
}

std::string encode_record(const LifecycleRecord& record) {
  LifecycleWriter writer;
  writer(record);
  return writer.take();
}

Result<LifecycleRecord> decode_lifecycle_record(std::string_view text) {
  LifecycleRecord record;
  LifecycleReader reader(text);
  reader(record);
  if (!reader.is_done()) return make_error(ErrorCode::kInvalid, "a record that cannot be read");
  return record;
}

}  // namespace spillway::controllers
