#include "store/sqlite/upkeep/history_check.h"

#include <algorithm>

namespace spillway::store::sqlite {

void HistoryCheck::missing(std::uint64_t first, std::uint64_t last) {
  if (!without_history_.empty()) return;
  findings_.add("history: revisions {} to {} are missing, expected every one after {}, the compacted one", first, last,
                compacted_.number());
}

void HistoryCheck::check_place(const LogRow& row) {
  if (row.revision > head_) {
    findings_.add("history: {} changed at revision {}, expected none beyond {}, the store's own", row.key,
                  row.revision.number(), head_.number());
    return;
  }
  // Compacted rows may be deleted, or about to be.
  const std::uint64_t expected = std::max(first_ ? last_.number() : 0, compacted_.number()) + 1;
  if (row.revision.number() > expected) missing(expected, row.revision.number() - 1);
}

void HistoryCheck::check_creation(const LogRow& row, const State* last) {
  const std::uint64_t at = row.revision.number();
  if (row.deleted) findings_.add("history: revision {} deletes {}, expected it to exist before", at, row.key);
  if (row.created != row.revision) {
    findings_.add("history: revision {} creates {}, expected that as its create revision, not {}", at, row.key,
                  row.created.number());
  }
  if (last != nullptr && !last->deleted) {
    findings_.add("history: revision {} creates {}, expected an update of what revision {} wrote", at, row.key,
                  last->modified.number());
  }
}

void HistoryCheck::check_change(const LogRow& row, const State* last) {
  const std::uint64_t at = row.revision.number();
  if (*row.before >= row.revision || row.created > *row.before) {
    findings_.add("history: revision {} of {} replaces revision {} (created at {}), expected growing revisions", at,
                  row.key, row.before->number(), row.created.number());
  }
  if (last == nullptr) {
    if (*row.before >= first_.value_or(row.revision)) {
      findings_.add("history: revision {} of {} replaces revision {}, expected that among the changes", at, row.key,
                    row.before->number());
    }
    return;
  }
  if (last->deleted) {
    findings_.add("history: revision {} changes {}, expected a creation: revision {} deleted it", at, row.key,
                  last->modified.number());
    return;
  }
  if (*row.before != last->modified || row.version_before != last->version || row.created != last->created) {
    findings_.add("history: revision {} of {} replaces revision {}, version {}, created at {}; expected {}, {}, {}", at,
                  row.key, row.before->number(), row.version_before, row.created.number(), last->modified.number(),
                  last->version, last->created.number());
  }
}

/// Checks a key without history: changes between two rows are not recorded, but the second must be later.
void HistoryCheck::check_unlogged(const LogRow& row, const State* last) {
  const Revision earlier = last == nullptr ? Revision() : last->modified;
  const bool created_since = row.created > earlier;
  const bool follows = !row.before || (*row.before < row.revision && row.created <= *row.before &&
                                       (created_since || (!last->deleted && *row.before >= earlier)));
  if (follows) return;
  findings_.add("history: revision {} of {} replaces revision {} (created at {}), expected growing revisions",
                row.revision.number(), row.key, row.before->number(), row.created.number());
}

void HistoryCheck::check_unlogged(const CurrentRow& row, const State& logged) {
  if (row.created > logged.modified || (!logged.deleted && row.modified >= logged.modified)) return;
  findings_.add("{}: created at revision {}, changed at {}; expected it later than revision {}, the last one recorded",
                row.key, row.created.number(), row.modified.number(), logged.modified.number());
}

void HistoryCheck::add(const LogRow& row) {
  check_place(row);
  if (!first_) first_ = row.revision;
  const auto found = states_.find(row.key);
  const State* last = found == states_.end() ? nullptr : &found->second;
  if (is_below(row.key, without_history_)) {
    check_unlogged(row, last);
  } else {
    row.before ? check_change(row, last) : check_creation(row, last);
  }
  last_ = row.revision;
  states_[row.key] = State{row.created, row.revision, row.before ? row.version_before + 1 : 1, row.deleted, false};
}

void HistoryCheck::end_of_log() {
  const std::uint64_t logged_to = std::max(first_ ? last_.number() : 0, compacted_.number());
  if (logged_to < head_.number()) missing(logged_to + 1, head_.number());
}

void HistoryCheck::add(const CurrentRow& row) {
  if (row.modified > head_) {
    findings_.add("{}: changed at revision {}, expected none beyond {}, the store's own", row.key,
                  row.modified.number(), head_.number());
  }
  const std::uint64_t changes = row.modified.number() - row.created.number() + 1;
  if (row.created.number() == 0 || row.created > row.modified || row.version == 0 || row.version > changes) {
    findings_.add(
        "{}: created at revision {}, changed at {}, version {}; expected growing revisions and a version of "
        "at most one per revision",
        row.key, row.created.number(), row.modified.number(), row.version);
  }
  const auto found = states_.find(row.key);
  const bool unlogged = is_below(row.key, without_history_);
  if (found == states_.end()) {
    if (!unlogged && first_ && row.modified >= *first_ && row.modified <= head_) {
      findings_.add("{}: changed at revision {}, expected that in the history", row.key, row.modified.number());
    }
    return;
  }
  State& logged = found->second;
  logged.present = true;
  if (unlogged) return check_unlogged(row, logged);
  if (logged.deleted) {
    findings_.add("{}: is there, expected it to be gone: revision {} deleted it", row.key, logged.modified.number());
  } else if (logged.modified != row.modified || logged.created != row.created || logged.version != row.version) {
    findings_.add("{}: changed at revision {}, version {}, created at {}; expected {}, {}, {} by the history", row.key,
                  row.modified.number(), row.version, row.created.number(), logged.modified.number(), logged.version,
                  logged.created.number());
  }
}

void HistoryCheck::end() {
  for (const auto& [key, state] : states_) {
    if (state.deleted || state.present) continue;
    findings_.add("{}: is missing, expected as revision {} wrote it", key, state.modified.number());
  }
}

}  // namespace spillway::store::sqlite
