// A copy of a database that may be in use: the present state at one revision, without history. A store that is started
// from it continues with a revision far ahead, so that no revision a client has seen is ever used again.
// Thread: any that may wait for the disk. Source: spec "API server contract", 22.2 (restore) and 22.4 (snapshots);
// SQLite docs, "VACUUM INTO".
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "store/sqlite/database.h"
#include "store/sqlite/upkeep/new_file.h"
#include "store/store.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace spillway::store::sqlite {

/// A copy's revision is ahead of the original's by this much: more than is written until the copy is needed.
inline constexpr std::uint64_t kRevisionLead = 1'000'000'000;

/// Called during the work; `share` of it is done, 0 to 1. False: stops, and removes what was made.
using ShouldContinue = std::function<bool(double share)>;

struct BackupReport {
  Revision revision;  // the copied revision
  std::uint64_t objects = 0;
  Bytes bytes;  // size of the copy
};

/// Copies the database `from`, which may be written meanwhile, to `to`. kAlreadyExists: `to` is there and must be kept.
/// kServiceUnavailable: no space. Otherwise as open_to_examine(), NewFile.
Result<BackupReport> write_backup(const std::string& from, const std::string& to, Existing existing,
                                  const ShouldContinue& should_continue);

// Steps shared by the other upkeep commands.

/// Copies everything, with its history, at one revision and without unused pages, into a file that is made.
Outcome copy_database(Connection& from, const NewFile& to, const ShouldContinue& should_continue);
/// The revision as of which this file was made by write_backup(), if it was not written since.
Result<std::optional<Revision>> backup_revision(Connection& file);
/// Removes the history of a copy and continues it at `revision`. `backup_of`: the value of backup_revision() from then
/// on.
Outcome advance(Connection& copy, Revision revision, std::optional<Revision> backup_of);
/// Bytes in the file that are used.
Result<Bytes> used_bytes(Connection& file);

}  // namespace spillway::store::sqlite
