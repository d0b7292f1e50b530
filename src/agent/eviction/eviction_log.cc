#include "agent/eviction/eviction_log.h"

#include "policy/eviction/notifier.h"

namespace spillway::agent {

void EvictionLog::report_crossings(std::span<const eviction::Threshold> reached) {
  std::set<std::string> crossed;
  for (const eviction::Threshold& threshold : reached) {
    std::string text = eviction::describe(threshold);
    if (!crossed_.contains(text)) log_.info("threshold crossed", {{"threshold", text}});
    crossed.insert(std::move(text));
  }
  crossed_ = std::move(crossed);
}

void EvictionLog::report_reclaimed(const ReclaimOutcome& outcome) {
  const bool in_vain = outcome.deleted == 0 && outcome.freed.count() == 0;
  std::optional<std::string>& said = in_vain_[outcome.action];
  if (in_vain && said == outcome.problem) return;
  said = in_vain ? std::optional(outcome.problem) : std::nullopt;
  log_.info("node reclaimed", {{"what", to_string(outcome.action)},
                               {"deleted", outcome.deleted},
                               {"freed_bytes", outcome.freed.count()},
                               {"problem", outcome.problem}});
}

}  // namespace spillway::agent
