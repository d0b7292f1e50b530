// The records of a controller's recording: the inputs of the node lifecycle, and its decisions. A segment begins with
// ControllerState and one NodeKnown for each node; nodes have numbers within it, in the order in which they are named.
// Heartbeats are bundled, so that one costs a few bytes.
// Thread: any (pure). Bounds: a decoded value has no more elements than its record has bytes.
// Source: docs/adr/0030-controller-recordings.md.
#pragma once

#include "api/object/meta.h"
#include "base/error.h"
#include "base/time.h"
#include "policy/lifecycle/brakes.h"
#include "policy/lifecycle/node_monitor.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::controllers {

/// The controller's configuration.
struct RecordedController {
  std::string compat;  // "v1.29"; empty: Spillway's own behaviour
  lifecycle::EvictionMode mode{};
  Duration node_monitor_period{};
  lifecycle::MonitorConfig monitor;
  lifecycle::BrakeConfig brakes;

  lifecycle::Profile profile() const;
};

/// `profile`: one of the values of profile().
RecordedController recorded_controller(const lifecycle::Profile& profile, Duration node_monitor_period,
                                       const lifecycle::MonitorConfig& monitor, lifecycle::BrakeConfig brakes);

struct ControllerState {
  std::uint64_t run = 0;      // start of the leader's run, in microseconds
  std::uint64_t segment = 0;  // within the run, from 0
  bool after_gap = false;     // records were lost before it
  Now at{};                   // time of a pass
  RecordedController controller;
};

/// The parts of a node's object that the lifecycle depends on: its conditions and its zone labels.
struct NodeSaid {
  struct Condition {
    std::string type;
    std::string status;
    std::string reason;

    friend bool operator==(const Condition&, const Condition&) = default;
  };

  std::string name;
  api::StringMap labels;
  std::vector<Condition> conditions;

  friend bool operator==(const NodeSaid&, const NodeSaid&) = default;
};

struct NodeKnown {
  NodeSaid said;
  bool marked = false;  // a controller has set its conditions to Unknown
  std::string taint;    // key of its NoExecute taint of silence; empty: none
  bool leased = false;
  Instant last_sign;  // time of the node's last heartbeat
};

/// The node is new, or has changed.
struct NodeChanged {
  Now at{};
  NodeSaid said;
};

struct NodeGone {
  Now at{};
  std::string name;
};

/// Signs of life.
struct SignsOfLife {
  struct One {
    std::uint32_t node = 0;  // number
    bool lease = false;      // true: the lease was renewed; false: the status
    Duration after{};        // `at`
  };

  Now at{};
  std::vector<One> signs;
};

struct LifecycleDecided {
  Now at{};
  std::string subject;
  std::string what;
  std::string reasons;
};

using LifecycleRecord = std::variant<ControllerState, NodeKnown, NodeChanged, NodeGone, SignsOfLife, LifecycleDecided>;

std::string encode_record(const LifecycleRecord& record);
/// kInvalid: not written by encode().
Result<LifecycleRecord> decode_lifecycle_record(std::string_view record);

}  // namespace spillway::controllers
