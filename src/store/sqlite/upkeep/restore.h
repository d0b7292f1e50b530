// Puts a copy of a database in place of a store that no server uses. Its revision continues far ahead of the copy's and
// of the replaced store's, with no history: clients that watched before have to list again.
// Thread: any that may wait for the disk. Source: spec "API server contract", 22.2 (restore).
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "store/sqlite/upkeep/backup.h"
#include "store/store.h"

#include <cstdint>
#include <string>

namespace spillway::store::sqlite {

struct RestoreReport {
  Revision revision;      // as of which the objects are
  Revision continues_at;  // the first write gets the next one
  std::uint64_t objects = 0;
  Bytes bytes;
  std::string kept;  // the new path of the former store; empty: there was none
};

/// Checks, before the copy is read at length, if restore_database() would begin: returns its kConflict, or its
/// kAlreadyExists for a store that is there when `replaces` is false. The situation may change afterwards.
Outcome may_restore(const std::string& to, bool replaces);

/// `to`: the database of a directory that exists. `keep_as`: the name for the store that is there; empty: it must not
/// be there. kConflict: a server uses it. kAlreadyExists: there is one, or something of the name `keep_as`. Errors of
/// `from`, which should have been checked: as open_to_examine(). When it fails, what was there is still there.
Result<RestoreReport> restore_database(const std::string& from, const std::string& to, const std::string& keep_as,
                                       const ShouldContinue& should_continue);

// Steps shared by all that create a store.

/// The last revision of a store that no server uses; its journal is moved into the file if the file is whole enough for
/// that. A store that cannot be read has no revision.
Revision checkpoint(const std::string& store);
/// The old store under another name as well: a reader of the directory finds one under the old name at any time.
Outcome keep(const std::string& store, const std::string& as);

}  // namespace spillway::store::sqlite
