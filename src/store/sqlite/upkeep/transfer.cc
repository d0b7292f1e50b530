#include "store/sqlite/upkeep/transfer.h"

#include "store/sqlite/schema.h"
#include "store/sqlite/upkeep/restore.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace spillway::store::sqlite {
namespace {

constexpr std::string_view kRoot = "/registry/";

bool has_file(const std::string& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0;
}

Range page(const std::string& start_after, std::size_t limit) {
  return {.prefix = std::string(kRoot), .start_after = start_after, .limit = limit, .at = {}};
}

}  // namespace

Result<std::unique_ptr<StoreReader>> StoreReader::open(const std::string& store) {
  if (!has_file(store)) return Error{ErrorCode::kNotFound, "there is no store", store};
  SPILLWAY_TRY(lock, DirectoryLock::take_for(store));
  SPILLWAY_TRY(connection, open_to_examine(store));
  std::unique_ptr<StoreReader> reader(
      new StoreReader(std::move(lock), std::move(connection)));  // NOLINT: private constructor
  SPILLWAY_TRY(snapshot, Snapshot::open(reader->connection_));
  reader->snapshot_ = std::move(snapshot);
  return reader;
}

Result<RangeResult> StoreReader::read(const std::string& start_after, std::size_t limit) {
  return snapshot_.read(page(start_after, limit));
}

Result<std::unique_ptr<StoreMaker>> StoreMaker::make(const std::string& store, const std::string& keep_as) {
  SPILLWAY_TRY(lock, DirectoryLock::take_for(store));
  if (has_file(store) && keep_as.empty()) {
    return Error{ErrorCode::kAlreadyExists, "there is a store already; --overwrite keeps it beside the new one", store};
  }
  if (!keep_as.empty() && has_file(keep_as)) return Error{ErrorCode::kAlreadyExists, "is there already", keep_as};
  SPILLWAY_TRY(file, NewFile::make(store, "copying"));
  std::unique_ptr<StoreMaker> maker(
      new StoreMaker(store, keep_as, std::move(lock), std::move(file)));  // NOLINT: private constructor
  SPILLWAY_TRY(connection, open_for_writing(maker->file_.path(), {}));
  SPILLWAY_TRY(ledger, Ledger::open(std::move(connection)));
  maker->ledger_ = std::move(ledger);
  return maker;
}

Outcome StoreMaker::add(const std::vector<Entry>& entries) {
  std::vector<Change> changes;
  SPILLWAY_TRY_VOID(ledger_->begin());
  for (const Entry& entry : entries) {
    SPILLWAY_TRY(written, ledger_->apply({.key = entry.key, .value = entry.value, .expected = Revision()}, changes));
    if (!written.committed) return Error{ErrorCode::kConflict, "was read twice", entry.key};
  }
  return ledger_->commit();
}

Result<RangeResult> StoreMaker::read(const std::string& start_after, std::size_t limit) {
  SPILLWAY_TRY(snapshot, Snapshot::open(ledger_->connection()));
  return snapshot.read(page(start_after, limit));
}

Result<Revision> StoreMaker::finish(Revision seen) {
  const bool replaces = has_file(store_);
  const Revision replaced = replaces ? checkpoint(store_) : Revision();
  const Revision continues_at(std::max(seen.number(), replaced.number()) + kRevisionLead);
  ledger_.reset();
  {
    SPILLWAY_TRY(made, Connection::open(file_.path(), Access::kReadWrite));
    SPILLWAY_TRY_VOID(made.exec("PRAGMA wal_checkpoint(TRUNCATE)"));
    SPILLWAY_TRY_VOID(advance(made, continues_at, std::nullopt));
    SPILLWAY_TRY_VOID(made.exec("PRAGMA wal_checkpoint(TRUNCATE)"));
  }
  if (replaces) SPILLWAY_TRY_VOID(keep(store_, keep_as_));
  SPILLWAY_TRY_VOID(drop_journal(file_.path()));
  SPILLWAY_TRY_VOID(drop_journal(store_));
  SPILLWAY_TRY_VOID(file_.commit(Existing::kReplaced));
  return continues_at;
}

}  // namespace spillway::store::sqlite
