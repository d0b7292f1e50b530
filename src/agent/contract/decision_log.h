// The decisions of an agent: the last ones in memory, every one that acts in the journal first, and the result of the
// last pass. Thread: loop. Bounds: kKeptMax decisions; the journal bounds itself.
#pragma once

#include "agent/contract/journal.h"
#include "api/json/json.h"

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::agent {

/// kShadow: decisions are reported and not carried out.
enum class Consequence { kActs, kShadow };

class DecisionLog {
 public:
  static constexpr std::size_t kKeptMax = 200;

  /// `journal` may be null; `history`: entries of earlier runs in the journal.
  DecisionLog(Journal* journal, std::span<const JournalEntry> history, Consequence consequence = Consequence::kActs);

  bool acts() const { return consequence_ == Consequence::kActs; }

  /// Writes the entry to the journal and keeps it. Returns when it is written. In a shadow an eviction is recorded as
  /// one that would have been, so that it is not finished after a crash.
  void record(JournalEntry entry);
  /// Adds facts about the result of the last decision about this UID.
  void add_aftermath(Aftermath aftermath);

  /// Oldest first.
  const std::deque<policy::Decision>& kept() const { return kept_; }

 private:
  void keep(policy::Decision decision);

  Journal* journal_;
  Consequence consequence_;
  std::deque<policy::Decision> kept_;
};

/// A node's answer about its decisions: {"kind":"DecisionList", "node", "now": the present state, "items": oldest
/// first}.
api::Json decision_list(const std::string& node, const std::optional<policy::Decision>& current,
                        const std::deque<policy::Decision>& decisions);

}  // namespace spillway::agent
