#include "agent/companion/shadow_ledger.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {

std::string_view to_string(ShadowOutcomeKind kind) {
  switch (kind) {
    case ShadowOutcomeKind::kAgreed:
      return "agreed";
    case ShadowOutcomeKind::kDifferentVictim:
      return "different-victim";
    case ShadowOutcomeKind::kKubeletOnly:
      return "kubelet-only";
    case ShadowOutcomeKind::kCompanionOnly:
      return "companion-only";
  }
  return "";
}

std::optional<Duration> ShadowOutcome::kubelet_after() const {
  if (!ours || !kubelets) return std::nullopt;
  return kubelets->at.mono - ours->at.mono;
}

std::vector<ShadowOutcome> ShadowLedger::predict(ShadowEviction eviction) {
  const auto same = std::ranges::find(unmatched_, eviction.uid, &ShadowEviction::uid);
  if (same != unmatched_.end()) {
    ShadowOutcome outcome{ShadowOutcomeKind::kAgreed, std::move(eviction), std::move(*same)};
    unmatched_.erase(same);
    return {std::move(outcome)};
  }
  std::vector<ShadowOutcome> outcomes;
  if (open_) outcomes.push_back({ShadowOutcomeKind::kCompanionOnly, std::move(open_), std::nullopt});
  open_ = std::move(eviction);
  return outcomes;
}

std::vector<ShadowOutcome> ShadowLedger::observe(ShadowEviction kubelets) {
  if (open_) {
    const auto kind = open_->uid == kubelets.uid ? ShadowOutcomeKind::kAgreed : ShadowOutcomeKind::kDifferentVictim;
    return {{kind, std::exchange(open_, std::nullopt), std::move(kubelets)}};
  }
  std::vector<ShadowOutcome> outcomes;
  if (unmatched_.size() == kUnmatchedMax) {
    outcomes.push_back({ShadowOutcomeKind::kKubeletOnly, std::nullopt, std::move(unmatched_.front())});
    unmatched_.erase(unmatched_.begin());
  }
  unmatched_.push_back(std::move(kubelets));
  return outcomes;
}

std::vector<ShadowOutcome> ShadowLedger::expire(Instant now) {
  std::vector<ShadowOutcome> outcomes;
  while (!unmatched_.empty() && unmatched_.front().at.mono + window_ <= now) {
    outcomes.push_back({ShadowOutcomeKind::kKubeletOnly, std::nullopt, std::move(unmatched_.front())});
    unmatched_.erase(unmatched_.begin());
  }
  if (open_ && open_->at.mono + window_ <= now) {
    outcomes.push_back({ShadowOutcomeKind::kCompanionOnly, std::exchange(open_, std::nullopt), std::nullopt});
  }
  return outcomes;
}

std::optional<Instant> ShadowLedger::next_due() const {
  std::optional<Instant> due;
  if (open_) due = open_->at.mono + window_;
  if (!unmatched_.empty()) {
    const Instant oldest = unmatched_.front().at.mono + window_;
    due = due ? std::min(*due, oldest) : oldest;
  }
  return due;
}

}  // namespace spillway::agent
