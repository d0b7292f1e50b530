// Writes a database that no server uses anew, without unused pages and in the order of its keys.
// Thread: any that may wait for the disk. Source: SQLite docs, "VACUUM INTO".
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "store/sqlite/upkeep/backup.h"

#include <functional>
#include <string>

namespace spillway::store::sqlite {

struct DefragPlan {
  Bytes before;  // size of the present file
  Bytes needed;  // free space that is needed until it is done
  Bytes free;
};

struct DefragReport {
  Bytes before;
  Bytes after;
};

/// `begin` is called before anything is written. kConflict: a server uses the database. kServiceUnavailable: there is
/// not enough space. kInvalid: it is no database of ours, or damaged. When it fails, the file is as it was.
Result<DefragReport> defragment(const std::string& path, const std::function<void(const DefragPlan&)>& begin,
                                const ShouldContinue& should_continue);

}  // namespace spillway::store::sqlite
