// A copy of a database in use, fit to be put in its place: the present state at one revision, without history, and with
// a revision far ahead, so that no revision a client has seen is ever given out again.
// Thread: any that may wait for the disk. Source: spec "API server contract", 22.2 (restore) and 22.4 (snapshots);
// SQLite docs, "VACUUM INTO".
#pragma once

#include "base/error.h"
#include "store/store.h"

#include <cstdint>
#include <string>

namespace spillway::store::sqlite {

/// How far the revision of a copy is ahead of what was copied: more than is written until somebody needs the copy.
inline constexpr std::uint64_t kRevisionLead = 1'000'000'000;

/// Copies the database `from` to the new file `to`, which appears when it is complete and on the disk. The revision
/// that was copied. kAlreadyExists: `to` is there. kServiceUnavailable: no space. `from` may be written meanwhile.
Result<Revision> write_backup(const std::string& from, const std::string& to);

}  // namespace spillway::store::sqlite
