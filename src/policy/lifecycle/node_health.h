// Decides if a node is alive: compares its present heartbeat with the one before, and stamps changes with the time at
// which they were observed. Remote times are compared only with earlier values of the same field, never with a local
// clock; the one exception is the age of a node that never sent a heartbeat, which runs from its creation.
// Thread: any (pure functions). Source: Kubernetes docs, "Nodes", heartbeats; KEP-589; spec "Node lifecycle", S4, S5.2,
// S5.3; vectors lifecycle/node_health.
#pragma once

#include "api/object/lease.h"
#include "api/object/node.h"
#include "base/time.h"
#include "policy/lifecycle/profile.h"
#include "policy/reason.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::lifecycle {

/// Status of the Ready condition; a missing condition is nullopt where that differs from kUnknown.
enum class Readiness : std::uint8_t { kTrue, kFalse, kUnknown };

std::string_view to_string(Readiness readiness);
/// Any status that is not "True" or "False" is kUnknown.
Readiness readiness_of(const api::NodeCondition& condition);
/// The Ready condition of a node; nullopt: it has none.
std::optional<Readiness> readiness_of(const api::Node& node);

struct HealthConfig {
  Duration node_monitor_grace_period = seconds(50);
  Duration node_startup_grace_period = seconds(60);
};

/// A node's state that is kept between passes.
struct HealthRecord {
  /// The Ready condition as last recorded; nullopt: the recorded status had none.
  struct Ready {
    Readiness status = Readiness::kUnknown;
    std::optional<WallTime> heartbeat;
    std::optional<WallTime> transition;

    friend bool operator==(const Ready&, const Ready&) = default;
  };

  Instant probe;       // last sign of life
  Instant transition;  // last change of the Ready condition
  std::optional<Ready> ready;
  std::optional<WallTime> lease_renewed;  // time of the last lease that counted as a sign of life
  std::optional<WallTime> lease_seen;     // time of the lease in the last pass

  friend bool operator==(const HealthRecord&, const HealthRecord&) = default;
};

struct Assessment {
  std::optional<Readiness> observed;  // readiness before this pass; a missing condition counts as kUnknown
  std::optional<Readiness> current;   // after the planned write; nullopt: no Ready condition before and after
  bool posted = false;                // the node had a Ready condition
  bool silent = false;                // the node was silent for longer than its grace period
  Duration silence{};                 // since the last sign of life
  /// All conditions that must be written; nullopt: nothing to write.
  std::optional<std::vector<api::NodeCondition>> write;

  policy::Reason reason(const HealthConfig& config) const;
};

/// Assesses one node and updates its record. `lease`: its lease in the cache, or nullptr.
Assessment assess_node_health(const api::Node& node, const api::Lease* lease, std::optional<HealthRecord>& record,
                              const HealthConfig& config, const Profile& profile, Now now);

/// False: assessing the same node and lease a second time would count as a sign of life. A status that was just posted
/// makes the record forget its lease, and the next pass takes the lease for new.
bool is_settled(const HealthRecord& record, const api::Lease* lease, const Profile& profile);

/// The conditions of `assessment.write` are in the API server now: the record takes them over.
void record_written_conditions(const Assessment& assessment, HealthRecord& record, Now now);

}  // namespace spillway::lifecycle
