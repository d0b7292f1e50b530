#include "store/sqlite/upkeep/restore.h"

#include "base/file.h"
#include "store/sqlite/directory_lock.h"
#include "store/sqlite/schema.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace spillway::store::sqlite {
namespace {

bool is_there(const std::string& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0;
}

Result<Revision> head_of(Connection& file) {
  SPILLWAY_TRY(revision, file.number("SELECT revision FROM state"));
  return Revision(static_cast<std::uint64_t>(revision));
}

Outcome link_to(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  Error error = errno_error(to, errno);
  error.message = fmt::format("the store that is there cannot be kept under this name: {}", error.message);
  return error;
}

Result<RestoreReport> make_copy(const std::string& from, const NewFile& file, Revision replaced,
                                const ShouldContinue& should_continue) {
  RestoreReport report;
  {
    SPILLWAY_TRY(source, open_to_examine(from));
    SPILLWAY_TRY_VOID(copy_database(source, file, should_continue));
  }
  SPILLWAY_TRY(copied, Connection::open(file.path(), Access::kReadWrite));
  SPILLWAY_TRY(head, head_of(copied));
  SPILLWAY_TRY(backup_of, backup_revision(copied));
  // A backup is ahead already; another file may be as old as it likes.
  const std::uint64_t ahead = head.number() + (backup_of ? 0 : kRevisionLead);
  const std::uint64_t beyond_replaced = replaced.number() == 0 ? 0 : replaced.number() + kRevisionLead;
  report.revision = backup_of.value_or(head);
  report.continues_at = Revision(std::max(ahead, beyond_replaced));
  SPILLWAY_TRY_VOID(advance(copied, report.continues_at, std::nullopt));
  SPILLWAY_TRY(objects, copied.number("SELECT count(*) FROM current"));
  report.objects = static_cast<std::uint64_t>(objects);
  return report;
}

}  // namespace

Revision checkpoint(const std::string& store) {
  auto file = Connection::open(store, Access::kReadWrite);
  if (!file) return {};
  ignored(file->exec("PRAGMA busy_timeout=5000; PRAGMA wal_checkpoint(TRUNCATE)"), "the journal is kept with the file");
  const auto known = open_to_examine(store);
  const auto head = head_of(*file);
  return known && head ? *head : Revision();
}

Outcome keep(const std::string& store, const std::string& as) {
  SPILLWAY_TRY_VOID(link_to(store, as));
  struct stat journal{};
  const std::string wal = store + "-wal";
  Outcome outcome;
  if (::stat(wal.c_str(), &journal) == 0 && journal.st_size > 0) outcome = link_to(wal, as + "-wal");
  if (outcome) outcome = sync_directory_of(store);
  if (!outcome) ::unlink(as.c_str());
  return outcome;
}

Outcome may_restore(const std::string& to, bool replaces) {
  if (!is_there(std::filesystem::path(to).parent_path().string())) return {};
  SPILLWAY_TRY_VOID(DirectoryLock::take_for(to));
  if (is_there(to) && !replaces)
    return Error{ErrorCode::kAlreadyExists, "there is a store already; --force keeps it beside the new one", to};
  return {};
}

Result<RestoreReport> restore_database(const std::string& from, const std::string& to, const std::string& keep_as,
                                       const ShouldContinue& should_continue) {
  SPILLWAY_TRY(lock, DirectoryLock::take_for(to));
  const bool replaces = is_there(to);
  if (replaces && keep_as.empty())
    return Error{ErrorCode::kAlreadyExists, "there is a store already; --force keeps it beside the new one", to};
  if (replaces && is_there(keep_as)) return Error{ErrorCode::kAlreadyExists, "is there already", keep_as};
  SPILLWAY_TRY(file, NewFile::make(to, "restoring"));
  Result<RestoreReport> report = make_copy(from, file, replaces ? checkpoint(to) : Revision(), should_continue);
  if (!report) {
    Error error = report.error();
    if (error.at.empty()) error.at = to;
    return error;
  }
  report->bytes = file.size();
  if (replaces) {
    SPILLWAY_TRY_VOID(keep(to, keep_as));
    report->kept = keep_as;
  }
  SPILLWAY_TRY_VOID(drop_journal(to));
  SPILLWAY_TRY_VOID(file.commit(Existing::kReplaced));
  return report;
}

}  // namespace spillway::store::sqlite
