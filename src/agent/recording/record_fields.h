// The members of what a recording holds, in the order they are written in. Left out: processor, network, device and
// stall figures, and the members of pods that do not matter for their eviction: no command, environment, label or probe
// of a pod is ever written.
// Thread: any (pure).
#pragma once

#include "agent/contract/journal.h"
#include "agent/contract/options.h"
#include "agent/contract/ports.h"
#include "agent/eviction/eviction_witness.h"
#include "api/object/pod.h"
#include "api/object/summary.h"
#include "policy/eviction/decide.h"

#include "recording/codec.h"

#include <concepts>
#include <string>
#include <type_traits>

namespace spillway::agent {

struct OfEviction;  // the family of the records

using RecordWriter = recording::Writer<OfEviction>;
using RecordReader = recording::Reader<OfEviction>;
using recording::Is;
using recording::kReads;

// Enumerations: their last value.

constexpr auto last_of(const RecordReader&, eviction::Signal) {
  return eviction::Signal::kPidAvailable;
}

constexpr auto last_of(const RecordReader&, eviction::Condition) {
  return eviction::Condition::kPidPressure;
}

constexpr auto last_of(const RecordReader&, eviction::ReclaimAction) {
  return eviction::ReclaimAction::kImages;
}

constexpr auto last_of(const RecordReader&, eviction::EnforcePods) {
  return eviction::EnforcePods::kYes;
}

constexpr auto last_of(const RecordReader&, eviction::LocalStorageLimits) {
  return eviction::LocalStorageLimits::kEnforced;
}

constexpr auto last_of(const RecordReader&, eviction::MemoryEstimator) {
  return eviction::MemoryEstimator::kWorkingSetAndSwap;
}

constexpr auto last_of(const RecordReader&, eviction::Brake) {
  return eviction::Brake::kOn;
}

constexpr auto last_of(const RecordReader&, eviction::Relief) {
  return eviction::Relief::kOn;
}

constexpr auto last_of(const RecordReader&, eviction::ReliefEnd) {
  return eviction::ReliefEnd::kReturned;
}

constexpr auto last_of(const RecordReader&, api::Quantity::Format) {
  return api::Quantity::Format::kDecimalExponent;
}

constexpr auto last_of(const RecordReader&, ErrorCode) {
  return ErrorCode::kInternalError;
}

constexpr auto last_of(const RecordReader&, ObserveDepth) {
  return ObserveDepth::kWhole;
}

constexpr auto last_of(const RecordReader&, EngineTimer) {
  return EngineTimer::kPlan;
}

// Statistics.

void describe(auto& io, Is<api::MemoryStats> auto& m) {
  io(m.time, m.available_bytes, m.usage_bytes, m.working_set_bytes, m.rss_bytes, m.mem_available_bytes,
     m.swap_left_bytes);
}

void describe(auto& io, Is<api::SwapStats> auto& s) {
  io(s.time, s.available_bytes, s.usage_bytes);
}

void describe(auto& io, Is<api::FsStats> auto& f) {
  io(f.time, f.available_bytes, f.capacity_bytes, f.used_bytes, f.inodes_free, f.inodes, f.inodes_used);
}

void describe(auto& io, Is<api::RlimitStats> auto& r) {
  io(r.time, r.max_pid, r.running_processes);
}

void describe(auto& io, Is<api::ContainerStats> auto& c) {
  io(c.name, c.memory, c.rootfs, c.logs, c.start_time, c.swap);
}

void describe(auto& io, Is<api::VolumeStats> auto& v) {
  io(v.name, v.fs);
}

void describe(auto& io, Is<api::FileCache> auto& c) {
  io(c.inactive_bytes, c.active_bytes, c.refaulted_bytes);
}

void describe(auto& io, Is<api::PodStats> auto& p) {
  io(p.uid, p.ns, p.name, p.containers, p.memory, p.volumes, p.ephemeral_storage, p.process_count, p.start_time, p.swap,
     p.file_cache);
}

void describe(auto& io, Is<api::NodeStats> auto& n) {
  io(n.node_name, n.system_containers, n.memory, n.fs, n.image_fs, n.container_fs, n.rlimit, n.start_time, n.swap);
}

void describe(auto& io, Is<api::Summary> auto& s) {
  io(s.node, s.pods);
}

// Pods without the fields that stripped() removes.

void describe(auto& io, Is<api::ResourceRequirements> auto& r) {
  io(r.limits, r.requests);
}

void describe(auto& io, Is<api::Container> auto& c) {
  io(c.name, c.resources, c.restart_policy);
}

void describe(auto& io, Is<api::EmptyDirVolume> auto& v) {
  io(v.medium, v.size_limit);
}

void describe(auto& io, Is<api::Volume> auto& v) {
  io(v.name, v.source, v.empty_dir);
}

void describe(auto& io, Is<api::Pod> auto& p) {
  io(p.metadata.ns, p.metadata.name, p.metadata.uid, p.metadata.annotations, p.spec.containers, p.spec.init_containers,
     p.spec.volumes, p.spec.overhead, p.spec.resources, p.spec.priority, p.spec.priority_class_name);
}

// Configuration.

void describe(auto& io, Is<eviction::ThresholdConfig> auto& t) {
  io(t.hard, t.soft, t.soft_grace_period, t.minimum_reclaim, t.enforce_pods);
}

void describe(auto& io, Is<eviction::MemoryWatch> auto& w) {
  io(w.estimator, w.mem_available_floor, w.brake, w.kernel_notifications);
}

void describe(auto& io, Is<ObserveOptions> auto& o) {
  io(o.interval_min, o.interval_max, o.fall_floor_per_second);
}

void describe(auto& io, Is<EvictionOptions> auto& o) {
  io(o.thresholds, o.pressure_transition_period, o.max_pod_grace_period_seconds, o.local_storage_limits,
     o.monitoring_interval, o.cleanup_wait, o.memory_watch, o.blind_zone, o.blind_zone_ahead, o.observe, o.relief);
}

// The state of an engine.

void describe(auto& io, Is<Now> auto& now) {
  io(now.mono, now.wall);
}

void describe(auto& io, Is<eviction::Fraction> auto& f) {
  io(f.share);
}

void describe(auto& io, Is<eviction::Threshold> auto& t) {
  io(t.signal, t.value, t.grace_period, t.min_reclaim);
}

void describe(auto& io, Is<eviction::StorageLayout> auto& l) {
  io(l.dedicated_image_fs, l.split_container_fs);
}

void describe(auto& io, Is<eviction::Observation> auto& o) {
  io(o.available, o.capacity, o.time);
}

void describe(auto& io, Is<eviction::Observations> auto& o) {
  for (const eviction::Signal signal : eviction::kSignals) io(o[signal]);
}

template <typename Io>
void describe(Io& io, Is<eviction::ConditionSet> auto& set) {
  for (const eviction::Condition each : eviction::kConditions) {
    bool held = set.contains(each);
    io(held);
    if constexpr (kReads<Io>) {
      if (held) set.insert(each);
    }
  }
}

template <typename Io>
void describe(Io& io, Is<eviction::PassState> auto& s) {
  io(s.layout, s.thresholds);
  for (const eviction::Threshold& each : s.thresholds) {
    std::optional<Instant> since = s.grace.first_observed(each);
    io(since);
    if constexpr (kReads<Io>) {
      if (since) s.grace.restore(each, *since);
    }
  }
  for (const eviction::Condition each : eviction::kConditions) {
    std::optional<Instant> seen = s.condition_clock.last_seen(each);
    io(seen);
    if constexpr (kReads<Io>) {
      if (seen) s.condition_clock.restore(each, *seen);
    }
  }
  io(s.conditions, s.crossed_before, s.last);
}

void describe(auto& io, Is<eviction::EvictPod> auto& a) {
  io(a.uid, a.pod.ns, a.pod.name, a.grace_period_seconds, a.message, a.annotations, a.disruption_target,
     a.metric_label);
}

void describe(auto& io, Is<Victim> auto& v) {
  io(v.action, v.since, v.grace_end, v.killed, v.frees_memory, v.available_then, v.exceeded_grace);
}

/// State of FallRate and EvictionForecast.
struct RecordFields {
  static void of_fall(auto& io, auto& rate) {
    for (auto& each : rate.seconds_) io(each.number, each.fall_per_second);
    of_last(io, rate.last_);
  }

  static void of_forecast(auto& io, auto& forecast) {
    for (auto& trend : forecast.trends_) {
      for (auto& each : trend.ring) io(each.at, each.available);
      io(trend.count, trend.last);
    }
  }

 private:
  template <typename Io>
  static void of_last(Io& io, auto& last) {
    bool there = last.has_value();
    io(there);
    if (!there) return;
    if constexpr (kReads<Io>) last.emplace();
    io(last->available, last->at);
  }
};

void describe(auto& io, Is<FallRate> auto& rate) {
  RecordFields::of_fall(io, rate);
}

void describe(auto& io, Is<EvictionForecast> auto& forecast) {
  RecordFields::of_forecast(io, forecast);
}

void describe(auto& io, Is<Observe> auto& o) {
  io(o.id, o.depth);
}

void describe(auto& io, Is<eviction::PodRelief> auto& p) {
  io(p.since, p.freed, p.last_asked, p.last_freed, p.refaulted, p.returned, p.end, p.rests_until, p.rests);
}

void describe(auto& io, Is<ReliefMemory> auto& m) {
  io(m.state.pods, m.state.last_round, m.state.has_waited, m.wait_ends, m.expected, m.recorded_at);
}

void describe(auto& io, Is<EvictionSnapshot> auto& s) {
  io(s.state, s.fall, s.forecast, s.dying, s.given_up, s.last_summary, s.seen, s.reached_at_pass, s.last_pass,
     s.threshold_event_at, s.pass_wanted, s.nobody_to_evict, s.last_id, s.in_flight, s.wake_pending, s.plan_waits,
     s.reaction_watches, s.last_failed, s.crossed, s.relief);
}

// The inputs.

void describe(auto&, Is<EngineStarted> auto&) {}

void describe(auto&, Is<PodsChanged> auto&) {}

void describe(auto&, Is<ObserveEverything> auto&) {}

void describe(auto& io, Is<PodFinished> auto& p) {
  io(p.uid);
}

void describe(auto& io, Is<PressureWake> auto& w) {
  io(w.source);
}

void describe(auto& io, Is<Error> auto& e) {
  io(e.code, e.message, e.at);
}

template <typename Io>
void describe(Io& io, Is<Observed> auto& o) {
  bool good = o.summary.has_value();
  io(o.id, o.depth, o.layout, good);
  if (good) {
    io(*o.summary);
  } else if constexpr (kReads<Io>) {
    Error why;
    io(why);
    o.summary = std::unexpected(std::move(why));
  } else {
    io(o.summary.error());
  }
}

void describe(auto& io, Is<ReclaimOutcome> auto& o) {
  io(o.action, o.deleted, o.freed, o.problem);
}

void describe(auto& io, Is<Reclaimed> auto& r) {
  io(r.id, r.outcomes);
}

void describe(auto& io, Is<eviction::ReliefOutcome> auto& o) {
  io(o.uid, o.asked, o.freed, o.refaulted, o.problem);
}

void describe(auto& io, Is<Relieved> auto& r) {
  io(r.id, r.outcomes);
}

void describe(auto& io, Is<MemoryLeft> auto& m) {
  io(m.available, m.mem_available, m.swap_left);
}

void describe(auto& io, Is<Reacted> auto& r) {
  io(r.uid, r.emergency, r.escalated, r.node, r.pods, r.working_sets, r.containers, r.at, r.took);
}

template <typename Io>
void describe(Io& io, Is<JournalEntry> auto& entry) {
  if constexpr (kReads<Io>) {
    std::string line;
    io(line);
    auto read = parse_line(line);
    const auto* known = read ? std::get_if<JournalEntry>(&*read) : nullptr;
    if (known == nullptr) return io.fail();
    entry = *known;
  } else {
    io(to_line(entry));
  }
}

}  // namespace spillway::agent
