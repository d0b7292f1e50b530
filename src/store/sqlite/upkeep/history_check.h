// Checks that the log of a database is consistent: every revision once, and for each key states that follow each other.
// Where keys keep no history, revisions may be missing, and the log has only the deletions of those keys.
// Thread: one at a time. Memory: one state per key of the log. Source: schema.h.
#pragma once

#include "store/sqlite/schema.h"
#include "store/sqlite/upkeep/findings.h"
#include "store/store.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace spillway::store::sqlite {

/// One row of table `log`, without the value.
struct LogRow {
  Revision revision;
  std::string key;
  Revision created;
  bool deleted = false;
  std::optional<Revision> before;  // nullopt: the key did not exist
  std::uint64_t version_before = 0;
};

/// One row of table `current`, without the value.
struct CurrentRow {
  std::string key;
  Revision created;
  Revision modified;
  std::uint64_t version = 0;
};

class HistoryCheck {
 public:
  /// `findings` must outlive it.
  HistoryCheck(Revision compacted, Revision head, Prefixes without_history, Findings& findings)
      : compacted_(compacted), head_(head), without_history_(std::move(without_history)), findings_(findings) {}

  /// Takes all rows of the log in the order of their revisions; then end_of_log(); then all current rows; then end().
  void add(const LogRow& row);
  void end_of_log();
  void add(const CurrentRow& row);
  void end();

 private:
  struct State {
    Revision created;
    Revision modified;
    std::uint64_t version = 0;
    bool deleted = false;
    bool present = false;  // among the current rows
  };

  void check_place(const LogRow& row);
  void check_creation(const LogRow& row, const State* last);
  void check_change(const LogRow& row, const State* last);
  void check_unlogged(const LogRow& row, const State* last);
  void check_unlogged(const CurrentRow& row, const State& logged);
  void missing(std::uint64_t first, std::uint64_t last);

  Revision compacted_;
  Revision head_;
  Prefixes without_history_;
  Findings& findings_;
  std::optional<Revision> first_;  // the first revision of the log
  Revision last_;
  std::map<std::string, State, std::less<>> states_;
};

}  // namespace spillway::store::sqlite
