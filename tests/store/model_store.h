// The store contract at its simplest: a copy of everything at every revision. What the real ones are measured against.
// Thread: one at a time.
#pragma once

#include "store/store.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace spillway::store {

class ModelStore {
 public:
  WriteResult write(const Write& write) {
    State next = states_.back();
    const auto found = next.find(write.key);
    const bool exists = found != next.end();
    WriteResult result;
    if (exists) result.current = found->second;
    const Revision present = exists ? found->second.mod_revision : Revision();
    if ((write.expected && *write.expected != present) || (!exists && !write.value)) {
      result.revision = revision();
      return result;
    }
    result.committed = true;
    result.revision = Revision(states_.size());
    const Revision created = exists ? found->second.create_revision : result.revision;
    changes_.push_back(
        Change{write.key, result.revision, created, write.value, exists ? found->second.value : nullptr});
    if (write.value) {
      const std::uint64_t version = exists ? found->second.version + 1 : 1;
      next[write.key] = Entry{write.key, write.value, created, result.revision, version};
      result.current.reset();
    } else {
      next.erase(found);
    }
    states_.push_back(std::move(next));
    return result;
  }

  Result<RangeResult> range(const Range& range) const {
    RangeResult result;
    result.revision = range.at.value_or(revision());
    if (result.revision > revision()) return Error{ErrorCode::kTimeout, {}, {}};
    if (result.revision < compacted_) return Error{ErrorCode::kExpired, {}, {}};
    for (const auto& [key, entry] : states_[result.revision.number()]) {
      if (!key.starts_with(range.prefix) || (!range.start_after.empty() && key <= range.start_after)) continue;
      if (range.limit == 0 || result.entries.size() < range.limit) {
        result.entries.push_back(entry);
      } else {
        ++result.remaining;
      }
    }
    return result;
  }

  std::vector<Change> changes(const std::string& prefix, Revision after) const {
    std::vector<Change> out;
    for (const Change& change : changes_) {
      if (change.revision > after && change.key.starts_with(prefix)) out.push_back(change);
    }
    return out;
  }

  void compact(Revision revision) { compacted_ = std::max(compacted_, revision); }

  Revision revision() const { return Revision(states_.size() - 1); }

  Revision compacted() const { return compacted_; }

 private:
  using State = std::map<std::string, Entry>;

  std::vector<State> states_{State()};
  std::vector<Change> changes_;
  Revision compacted_;
};

}  // namespace spillway::store
