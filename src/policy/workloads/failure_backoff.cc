#include "policy/workloads/failure_backoff.h"

#include <algorithm>

namespace spillway::workloads {

void FailureBackoff::failed(const std::string& node, Instant now) {
  const auto [entry, first] = nodes_.try_emplace(node);
  const bool forgotten = first || now - entry->second.failed_at > kForgottenAfter;
  entry->second = {forgotten ? kMin : std::min(2 * entry->second.wait, kMax), now};
}

std::optional<Instant> FailureBackoff::not_before(const std::string& node, Instant now) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return std::nullopt;
  const Instant due = found->second.failed_at + found->second.wait;
  return now < due ? std::optional(due) : std::nullopt;
}

void FailureBackoff::tidy(Instant now) {
  std::erase_if(nodes_, [now](const auto& entry) { return now - entry.second.failed_at > kForgottenAfter; });
}

}  // namespace spillway::workloads
