// An incident as data: a cluster, and the steps that break it and repair it. Written as YAML or JSON
// (examples/incidents); whoever reads the file hands over the document. Thread: any (a value). Bounds: 1,000 steps,
// repeats 1,000 times, 5,000 nodes.
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace spillway::sim {

/// Which nodes a step is about: all of them, narrowed from left to right.
struct NodeChoice {
  std::optional<std::string> zone;  // "zone-0"
  std::size_t skip = 0;             // the first of those
  std::size_t every = 1;            // and then each nth
  std::vector<std::size_t> only;    // in place of all that: these, from 0

  friend bool operator==(const NodeChoice&, const NodeChoice&) = default;
};

struct Wait {
  Duration time{};
};

/// Until the first node is marked Unknown.
struct AwaitUnknown {
  Duration most{};
};

struct OnNodes {
  enum class What { kPartition, kHeal, kCrash, kRestart };
  What what{};
  NodeChoice nodes;
};

/// One node after another is gone for `away`; the next goes `every` later.
struct RollingReboot {
  NodeChoice nodes;
  Duration away{};
  Duration every{};
};

struct OnControllers {
  enum class What { kCrash, kRestart };
  What what{};
};

/// The wall clock of everybody; the monotonic one goes on as it did.
struct JumpClock {
  Duration by{};
};

/// The controllers' watches whose path has this in it carry nothing any more; empty: all do again.
struct MuteWatch {
  std::string path;
};

struct Repeat;
using Step = std::variant<Wait, AwaitUnknown, OnNodes, RollingReboot, OnControllers, JumpClock, MuteWatch, Repeat>;

struct Repeat {
  std::int64_t times = 0;
  std::vector<Step> steps;
};

struct Incident {
  std::string name;
  std::string story;
  std::int32_t nodes = 30;
  std::int32_t zones = 3;
  std::int32_t pods_per_node = 2;
  std::vector<Step> steps;
};

/// kInvalid: an unknown key (with the nearest known one), a wrong type, a value out of range; `at` says where.
Result<Incident> parse_incident(const api::Json& document, const std::string& file);

}  // namespace spillway::sim
