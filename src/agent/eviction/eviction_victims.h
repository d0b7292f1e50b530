// Pods that are being evicted, and how long the next pass waits for them. A hard threshold does not wait for the long
// grace of a soft eviction, nor for a pod that does not die.
// Thread: loop. Bounded by the pods of the node. Source: spec "Eviction manager", 8, 10, 17 (kubernetes issue 124081).
#pragma once

#include "base/time.h"
#include "policy/eviction/decide.h"

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::agent {

/// Kinds of signals whose hard thresholds are reached.
enum class HardMet { kNone, kDisksOnly, kOthers };

HardMet hard_met(std::span<const eviction::Threshold> thresholds, const eviction::Observations& seen);

struct Victim {
  eviction::EvictPod action;
  Instant since;
  Instant grace_end;
  bool killed = false;        // without grace
  bool frees_memory = false;  // soon: evicted for memory, with no more than the grace of a hard threshold
  std::optional<std::int64_t> available_then;  // value of the signal that caused the eviction, or of memory if none did
  bool exceeded_grace = false;                 // the report about its late end has been written

  eviction::Signal signal() const;
  /// The end of the runtime's time to end the pod: 10 s or half as long again as its grace, whichever is more.
  Instant kill_deadline() const;
};

class Victims {
 public:
  /// `cleanup_wait`: how long to wait beyond the kill.
  explicit Victims(Duration cleanup_wait) : cleanup_wait_(cleanup_wait) {}

  void add(Victim victim);
  /// The pod has no process left. nullopt: it was none of ours, or given up already.
  std::optional<Victim> finish(const std::string& uid);

  bool empty() const { return dying_.empty(); }

  bool any_frees_memory() const;

  std::vector<Victim>& dying() { return dying_; }

  const std::vector<Victim>& dying() const { return dying_; }

  /// True if the next pass may begin although victims are left: each of them is three seconds overdue, and nothing has
  /// become free since it was chosen. A disk is freed only after its pod has ended: if nothing else is short, the wait
  /// for a pod that fills a disk is as long as for any pod.
  bool give_way(HardMet reached, const eviction::Observations& seen, Instant now) const;

  /// Victims whose runtime has exceeded their grace, each once.
  std::vector<Victim> take_exceeded(Instant now);
  /// Stops waiting for pods that still exist long after they were killed. Returns their number.
  std::size_t give_up(Instant now);

  const std::set<std::string, std::less<>>& given_up() const { return given_up_; }

  void restore(std::vector<Victim> dying, std::set<std::string, std::less<>> given_up) {
    dying_ = std::move(dying);
    given_up_ = std::move(given_up);
  }

  /// True for a pod that was chosen before and has not ended: choosing it again would free nothing.
  bool is_known(const std::string& uid) const;

 private:
  Duration cleanup_wait_;
  std::vector<Victim> dying_;
  std::set<std::string, std::less<>> given_up_;
};

}  // namespace spillway::agent
