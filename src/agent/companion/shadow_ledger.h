// Compares a shadow's evictions with the kubelet's: every eviction of either side ends in one outcome. The two sides
// belong together if they fall within a window of each other; there is one eviction of ours open at a time.
// Thread: loop. Bounds: one open prediction; kubelet's evictions of the last window.
#pragma once

#include "api/object/meta.h"
#include "base/time.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

/// kAgreed: the same pod. kDifferentVictim: the kubelet evicted another one instead. kKubeletOnly: it evicted one when
/// we would have evicted none. kCompanionOnly: it evicted none.
enum class ShadowOutcomeKind { kAgreed, kDifferentVictim, kKubeletOnly, kCompanionOnly };

/// "agreed", "different-victim", "kubelet-only", "companion-only".
std::string_view to_string(ShadowOutcomeKind kind);

struct ShadowEviction {
  std::string uid;
  api::PodKey pod;
  std::string signal;  // ours: the signal; the kubelet's: the resource it named
  Now at;
};

struct ShadowOutcome {
  ShadowOutcomeKind kind{};
  std::optional<ShadowEviction> ours;
  std::optional<ShadowEviction> kubelets;

  /// The delay of the kubelet's eviction after the shadow's; negative: it was earlier.
  std::optional<Duration> kubelet_after() const;
};

class ShadowLedger {
 public:
  explicit ShadowLedger(Duration window) : window_(window) {}

  /// True while a predicted eviction waits for the kubelet's act.
  bool is_open() const { return open_.has_value(); }

  std::vector<ShadowOutcome> predict(ShadowEviction eviction);
  std::vector<ShadowOutcome> observe(ShadowEviction kubelets);
  /// Outcomes of the evictions for which the window has ended.
  std::vector<ShadowOutcome> expire(Instant now);
  /// The time to call expire(); nullopt: no eviction waits.
  std::optional<Instant> next_due() const;

 private:
  static constexpr std::size_t kUnmatchedMax = 200;

  Duration window_;
  std::optional<ShadowEviction> open_;
  std::vector<ShadowEviction> unmatched_;  // the kubelet's, oldest first
};

}  // namespace spillway::agent
