// The tables as one writer sees them: conditional writes that get the next revision, inside a transaction.
// Thread: the writer's. Invariants: revisions have no gaps; log holds exactly the revisions (compacted, head], but for
// those that created or changed a key without history, and the rest of what trim() has not deleted yet; rollback()
// restores the state before begin().
#pragma once

#include "base/bytes.h"
#include "store/sqlite/database.h"
#include "store/sqlite/schema.h"
#include "store/store.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::store::sqlite {

/// The row of table `state`, and where the log begins.
struct LedgerState {
  Revision head;
  Revision compacted;
  Bytes live_bytes;     // keys and values of `current`
  Bytes history_bytes;  // bytes of `log`, rows that trim() will delete included
  Revision log_first;   // no row of `log` is older
};

class Ledger {
 public:
  static Result<std::unique_ptr<Ledger>> open(Connection connection);

  const LedgerState& state() const { return state_; }

  Connection& connection() { return connection_; }

  Outcome begin();
  /// Appends to `changes` when the write commits. After an error the transaction must be rolled back.
  Result<WriteResult> apply(const Write& write, std::vector<Change>& changes);
  /// States before `revision` (≤ head) become unreadable; trim() deletes them.
  void compact(Revision revision);
  /// Deletes at most `rows` rows of history that is compacted; how many.
  Result<std::uint64_t> trim(std::uint64_t rows);

  /// Revisions that are compacted and whose rows of `log` are not deleted; some may have none.
  std::uint64_t rows_to_trim() const;

  Outcome commit();
  void rollback();

 private:
  explicit Ledger(Connection connection) : connection_(std::move(connection)) {}

  Outcome prepare();
  Outcome load();
  Result<std::optional<Entry>> find(const std::string& key);
  Outcome store_entry(const Write& write, const std::optional<Entry>& before, Revision revision);
  Outcome append_log(const Write& write, const std::optional<Entry>& before, Revision revision);

  Connection connection_;  // outlives the statements
  LedgerState state_;
  LedgerState before_;
  Prefixes without_history_;
  Statement begin_, commit_, rollback_;
  Statement find_, insert_, update_, erase_, log_, log_bytes_, trim_, save_;
};

}  // namespace spillway::store::sqlite
