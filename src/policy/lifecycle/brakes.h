// Brakes over what the node lifecycle does to a cluster: whether one act (a node marked not ready or tainted, a pod
// or node deleted) may happen now, and if not, which brake holds it, with the numbers compared, and when to ask again.
// All of them are off unless configured. An act that is held is not forgotten: its owner asks again and re-validates it
// first.
//
// In this order: manual hold; doubt about ourselves (the clock jumped, our own watch is old, most heartbeats are late
// at once); cool-down after such a storm; limits over acts within a window, over everything, per zone, per owner.
// Thread: any (a value). Bounds: as many instants per scope as its limit allows acts; scopes without recent acts are
// forgotten. Source: spec "Node lifecycle", S19.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "policy/reason.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace spillway::lifecycle {

enum class ActKind { kMarkNotReady, kTaint, kDeletePod, kDeleteNode };

std::string_view to_string(ActKind kind);

/// At most `acts` within any `window`.
struct ActLimit {
  std::int32_t acts = 0;
  Duration window{};

  friend bool operator==(const ActLimit&, const ActLimit&) = default;
};

struct ActLimits {
  std::optional<ActLimit> global;
  std::optional<ActLimit> per_zone;
  std::optional<ActLimit> per_owner;  // for pods only, by the controller that owns them

  friend bool operator==(const ActLimits&, const ActLimits&) = default;
};

/// "20/1m", "zone=5/1m", "owner=1/30s", or several, comma-separated. kInvalid: what is wrong.
Result<ActLimits> parse_act_limits(std::string_view text);

struct BrakeConfig {
  ActLimits mark_not_ready;
  ActLimits taint;
  ActLimits delete_pod;
  ActLimits delete_node;  // deletions of nodes whose machine does not exist
  /// A larger share of the nodes not yet marked is late at once: nothing happens for up to `stall_max`.
  std::optional<double> stall_share;
  Duration stall_max = minutes(2);
  /// The watches of nodes or leases had no news for longer than this.
  std::optional<Duration> watch_age_max;
  /// Wall and monotonic clock disagree by more than this over a pass, or this process was stopped for longer.
  std::optional<Duration> clock_jump_max;
  Duration clock_hold = seconds(50);  // the pause of all acts after that
  // time for which acts are held after a stall, or after all zones were down; 0: none
  Duration cool_down{};

  friend bool operator==(const BrakeConfig&, const BrakeConfig&) = default;
};

struct Act {
  ActKind kind{};
  std::string zone;   // key
  std::string owner;  // api::controller_text(): "ReplicaSet/default/web"; empty: none
};

/// The acts that an operator has stopped by hand, and why.
struct ManualHold {
  std::optional<std::string> everything;
  std::map<std::string, std::string, std::less<>> zones;  // by name as people read it: "r1::a"

  bool empty() const { return !everything && zones.empty(); }

  friend bool operator==(const ManualHold&, const ManualHold&) = default;
};

class Brakes {
 public:
  struct Answer {
    std::optional<policy::Reason> held;  // nullopt: the act may be carried out, and was counted
    Instant ask_again{};                 // if held
  };

  explicit Brakes(BrakeConfig config) : config_(std::move(config)) {}

  /// Asks for permission for an act. A permitted act is counted against the limits.
  Answer ask(const Act& act, Now now);

  /// Empty: resume.
  void set_manual_hold(ManualHold hold) { manual_hold_ = std::move(hold); }

  const ManualHold& manual_hold() const { return manual_hold_; }

  /// Called once per pass, before any decision. `expected_gap`: the longest time between passes.
  void on_clock(Now now, Duration expected_gap);

  void on_watch_age(std::optional<Duration> age) { watch_age_ = age; }

  /// `nodes`: those not marked silent yet; `late`: how many of them are late by more than half their grace.
  void on_heartbeats(std::int64_t nodes, std::int64_t late, Now now);

  /// All zones were down, and at least one has recovered.
  void on_storm_over(Now now) { cool_from(now); }

  /// The brake that would hold every act now; nullopt: none does.
  std::optional<policy::Reason> hold(Now now) const;
  /// The brake that holds acts in this zone. `zone`: its key.
  std::optional<policy::Reason> hold_in(std::string_view zone, Now now) const;

 private:
  using Scope = std::tuple<ActKind, char, std::string>;  // 'g', 'z' or 'o', and its name

  struct Limited {
    Scope scope;
    ActLimit limit;
  };

  const ActLimits& limits_of(ActKind kind) const;
  std::vector<Limited> limits_on(const Act& act) const;
  bool stalls(Instant now) const;
  void cool_from(Now now);

  BrakeConfig config_;
  ManualHold manual_hold_;
  std::optional<Duration> watch_age_;
  std::optional<Now> last_clock_;
  Duration clock_error_{};
  Instant clock_hold_until_{};
  std::optional<Instant> stall_since_;
  std::int64_t nodes_ = 0;
  std::int64_t late_ = 0;
  Instant cool_until_{};
  std::map<Scope, std::deque<Instant>> acts_;
};

}  // namespace spillway::lifecycle
