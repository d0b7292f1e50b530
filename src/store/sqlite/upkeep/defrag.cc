#include "store/sqlite/upkeep/defrag.h"

#include "base/file.h"
#include "store/sqlite/directory_lock.h"
#include "store/sqlite/reserve.h"
#include "store/sqlite/schema.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace spillway::store::sqlite {
namespace {

/// Besides the copy itself: file systems need some to name things, and estimates are estimates.
constexpr Bytes kSpare = kibibytes(256);

Result<Bytes> size_of_file(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return errno_error(path, errno);
  return Bytes{found.st_size};
}

/// Moves everything into the file and empties the journal, so that another file may take its place.
Outcome empty_journal(const std::string& path) {
  SPILLWAY_TRY(file, Connection::open(path, Access::kReadWrite));
  SPILLWAY_TRY_VOID(file.exec("PRAGMA busy_timeout=5000"));
  SPILLWAY_TRY(busy, file.number("PRAGMA wal_checkpoint(TRUNCATE)"));
  if (busy != 0) return Error{ErrorCode::kConflict, "another process reads it", path};
  return {};
}

Outcome check_whole(const std::string& path) {
  SPILLWAY_TRY(file, Connection::open(path, Access::kReadOnly));
  SPILLWAY_TRY(check, file.prepare("PRAGMA integrity_check(1)"));
  Rows rows = check.query();
  SPILLWAY_TRY(found, rows.next());
  if (found && rows.bytes(0) == "ok") return {};
  return invalid(path, "is damaged ({}); see `spillway store check`", found ? rows.bytes(0) : "no answer");
}

Error at_path(Error error, const std::string& path) {
  if (error.at.empty()) error.at = path;
  return error;
}

}  // namespace

Result<DefragReport> defragment(const std::string& path, const std::function<void(const DefragPlan&)>& begin,
                                const ShouldContinue& should_continue) {
  SPILLWAY_TRY_VOID(size_of_file(path));
  SPILLWAY_TRY(lock, DirectoryLock::take_for(path));
  SPILLWAY_TRY_VOID(open_to_examine(path));
  if (const Outcome emptied = empty_journal(path); !emptied) return at_path(emptied.error(), path);
  SPILLWAY_TRY(before, size_of_file(path));
  {
    SPILLWAY_TRY(source, open_to_examine(path));
    const auto used = used_bytes(source);
    if (!used) return at_path(used.error(), path);
    const DefragPlan plan{before, *used + kSpare, free_space(path)};
    begin(plan);
    if (plan.free < plan.needed) {
      return Error{ErrorCode::kServiceUnavailable, "there is not enough free space to write it anew", path};
    }
  }
  SPILLWAY_TRY(file, NewFile::make(path, "defrag"));
  {
    SPILLWAY_TRY(source, open_to_examine(path));
    if (const Outcome copied = copy_database(source, file, should_continue); !copied)
      return at_path(copied.error(), path);
  }
  SPILLWAY_TRY_VOID(check_whole(file.path()));
  SPILLWAY_TRY_VOID(empty_journal(path));
  SPILLWAY_TRY_VOID(drop_journal(path));
  const Bytes after = file.size();
  SPILLWAY_TRY_VOID(file.commit(Existing::kReplaced));
  return DefragReport{before, after};
}

}  // namespace spillway::store::sqlite
