// Ranges of keys at one revision, from the tables of one connection.
// Thread: the reader's. Invariant: every answer is read in one transaction, hence one state. Complexity: rows of the
// prefix, plus for an older revision the log rows since it, which are scanned once while pages of one list are read.
#pragma once

#include "store/sqlite/database.h"
#include "store/store.h"

#include <map>
#include <string>

namespace spillway::store::sqlite {

class Snapshot {
 public:
  /// An object without a connection: may only be assigned to.
  Snapshot() = default;

  /// The object that `connection` refers to must outlive the snapshot; the snapshot itself may be moved.
  static Result<Snapshot> open(Connection& connection);

  /// Errors as for Store::range(); kInternalError: the file cannot be read.
  Result<RangeResult> read(const Range& range);

 private:
  /// The first change of a key after the revision shown, as far as changes are kept: its log row holds the state that
  /// was shown, or a later one.
  struct FirstChange {
    Revision revision;
    bool existed;
    bool known;
  };

  /// The states at `at` of every key of a prefix that changed afterwards. Kept from one page of a list to the next.
  struct Overlay {
    std::string prefix;
    Revision at;
    Revision scanned;
    std::map<std::string, FirstChange, std::less<>> first_changes;
  };

  Result<RangeResult> read_in_transaction(const Range& range);
  Outcome read_present(const Range& range, std::string_view first_key, RangeResult& result);
  Outcome read_past(const Range& range, std::string_view first_key, RangeResult& result);
  Outcome extend_overlay(const Range& range, Revision at);
  Result<Entry> entry_before(const std::string& key, Revision change);

  Statement begin_, end_, state_, list_, changes_, log_row_;
  Overlay overlay_;
};

}  // namespace spillway::store::sqlite
