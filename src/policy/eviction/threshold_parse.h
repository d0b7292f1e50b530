// Parses eviction settings into thresholds: the maps of KubeletConfiguration, the flag syntax, every error in
// upstream's words.
// Thread: any (pure). Maps are read in the order of signal names, so that of two bad entries always the same one is
// reported. Source: Kubernetes docs, "Kubelet Configuration (v1beta1)", eviction*; spec "Eviction manager", 3.
#pragma once

#include "base/error.h"
#include "policy/eviction/threshold.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::eviction {

/// signal → value, as written.
using SignalMap = std::map<std::string, std::string, std::less<>>;

/// memory.available 100Mi, nodefs.available 10%, nodefs.inodesFree 5%, imagefs.available 15%, imagefs.inodesFree 5%.
const SignalMap& default_hard_thresholds();

enum class EnforcePods { kNo, kYes };

struct ThresholdConfig {
  SignalMap hard;  // the caller puts the defaults in if the setting is absent; naming one signal drops all defaults
  SignalMap soft;
  SignalMap soft_grace_period;
  SignalMap minimum_reclaim;
  /// Adds an allocatableMemory.available threshold for each hard memory.available one (enforceNodeAllocatable: pods).
  EnforcePods enforce_pods = EnforcePods::kNo;
};

/// Hard thresholds, then soft ones, then the allocatable copies. kInvalid: the first bad entry, in upstream's words
/// (hard, soft, grace periods, minimum reclaims, missing grace periods).
Result<std::vector<Threshold>> parse_thresholds(const ThresholdConfig& config);

/// "10%" as 0.1f, "0x1p3%" as 0.08f. All trailing "%" are dropped; the rest is what Go's ParseFloat reads. kInvalid: no
/// number, or beyond the range of float.
Result<Fraction> parse_percentage(std::string_view text);

/// A threshold written as NaN is never met: worth a warning. Names of the signals concerned, in order.
std::vector<Signal> never_met(const std::vector<Threshold>& thresholds);

enum class PairSyntax { kLessThan, kEquals };  // "memory.available<100Mi", "memory.available=1m"

/// A repeatable flag of comma-separated pairs over a map that starts with defaults: the first use drops them, later
/// uses add, a repeated signal takes the last value. kInvalid: a piece without its operator.
class SignalFlag {
 public:
  SignalFlag(PairSyntax syntax, SignalMap defaults) : syntax_(syntax), entries_(std::move(defaults)) {}

  Outcome add(std::string_view text);

  const SignalMap& entries() const { return entries_; }

 private:
  PairSyntax syntax_;
  SignalMap entries_;
  bool given_ = false;
};

}  // namespace spillway::eviction
