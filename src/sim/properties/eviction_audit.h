// Checks the decisions and actions of agents against the real state of their machines: properties protected-pods,
// journal-first and evictions-resume. An independent, slow check: it uses nothing of the agents' ranking but the
// promised order, and reports a violation only where the difference is larger than what can change between a reading
// and a decision. Thread: one.
#pragma once

#include "api/object/pod.h"
#include "base/bytes.h"
#include "base/time.h"
#include "sim/properties/verdicts.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace spillway::sim {

class EvictionAudit {
 public:
  /// The growth of a pod that is allowed between the reading of the machine and the decision.
  static constexpr Bytes kMargin = mebibytes(32);
  /// The time in which no second victim may be chosen while a pod runs whose eviction has begun: since that was
  /// decided, or since an agent resumed it. The shortest grace, 2 s, and 3 s for the machine to notice.
  static constexpr Duration kOneAtATime = seconds(5);

  /// The reason why a pod is to go: its machine runs short of memory or of something else, or it is above a limit of
  /// its own.
  enum class Cause : std::uint8_t { kMemory, kOtherShortage, kOwnLimit };

  struct Running {
    const api::Pod* pod = nullptr;  // the stored pod
    Bytes used;
  };

  explicit EvictionAudit(Verdicts& verdicts) : verdicts_(verdicts) {}

  /// An agent has written into its journal that this pod is to go. `running`: all pods that run on its machine and
  /// are not deleted in the store, those whose eviction has begun among them.
  void on_decision(const std::string& uid, Cause cause, std::span<const Running> running, Now now);
  /// An agent restarted on a machine on which this pod runs.
  void on_return(const std::string& uid, Now now);
  /// A container of the pod starts.
  void on_start(const std::string& uid, Now now);
  void on_pod(const api::Pod& before, const api::Pod& after, Now now);

  bool is_begun(const std::string& uid) const { return begun_.contains(uid); }

 private:
  void compare(const Running& victim, const Running& other, Now now);
  void check_alone(const std::string& uid, const Running& other, Now now);

  Verdicts& verdicts_;
  std::map<std::string, Instant> begun_;  // by uid: since when the present agent has the pod
};

}  // namespace spillway::sim
