// A journal in memory that outlives its agent, as the file of a real one does.
// Thread: one. Bounds: as many entries as it is made with.
#pragma once

#include "agent/contract/journal.h"

#include <cstddef>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::sim {

class SimJournal final : public agent::Journal {
 public:
  using Reader = std::function<void(const agent::JournalLine&)>;

  /// `reader` gets every line. `entries_max`: the newest entries are kept; 0: all are.
  explicit SimJournal(Reader reader, std::size_t entries_max = 0)
      : reader_(std::move(reader)), entries_max_(entries_max) {}

  void append(const agent::JournalLine& line) override {
    if (reader_) reader_(line);
    const auto* const entry = std::get_if<agent::JournalEntry>(&line);
    if (entry == nullptr) return;
    if (entries_max_ > 0 && entries_.size() == entries_max_) entries_.erase(entries_.begin());
    entries_.push_back(*entry);
  }

  const std::vector<agent::JournalEntry>& entries() const { return entries_; }

 private:
  Reader reader_;
  std::size_t entries_max_;
  std::vector<agent::JournalEntry> entries_;
};

}  // namespace spillway::sim
