#include "store/sqlite/upkeep/backup.h"

#include "store/sqlite/schema.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::store::sqlite {
namespace {

Result<std::uint64_t> count_of(Connection& connection, std::string_view sql) {
  SPILLWAY_TRY(number, connection.number(sql));
  return static_cast<std::uint64_t>(number);
}

Result<BackupReport> write_copy(Connection& source, const NewFile& file, const ShouldContinue& should_continue) {
  SPILLWAY_TRY_VOID(copy_database(source, file, should_continue));
  SPILLWAY_TRY(copied, Connection::open(file.path(), Access::kReadWrite));
  SPILLWAY_TRY(revision, count_of(copied, "SELECT revision FROM state"));
  SPILLWAY_TRY_VOID(advance(copied, Revision(revision + kRevisionLead), Revision(revision)));
  SPILLWAY_TRY(objects, count_of(copied, "SELECT count(*) FROM current"));
  return BackupReport{Revision(revision), objects, Bytes{0}};
}

}  // namespace

Result<Bytes> used_bytes(Connection& file) {
  SPILLWAY_TRY(page, file.number("PRAGMA page_size"));
  SPILLWAY_TRY(pages, file.number("PRAGMA page_count"));
  SPILLWAY_TRY(unused, file.number("PRAGMA freelist_count"));
  return Bytes{page * std::max<std::int64_t>(pages - unused, 1)};
}

Outcome copy_database(Connection& from, const NewFile& to, const ShouldContinue& should_continue) {
  SPILLWAY_TRY(whole, used_bytes(from));
  from.set_progress_handler([&should_continue, &to, whole] {
    const double share = static_cast<double>(to.size().count()) / static_cast<double>(whole.count());
    return should_continue(std::min(share, 1.0));
  });
  Outcome outcome;
  {
    SPILLWAY_TRY(vacuum, from.prepare("VACUUM INTO ?"));
    outcome = vacuum.run(std::string_view(to.path()));
  }
  from.set_progress_handler([] { return true; });
  return outcome;
}

Result<std::optional<Revision>> backup_revision(Connection& file) {
  SPILLWAY_TRY(marked, file.number("SELECT count(*) FROM sqlite_schema WHERE name = 'backup'"));
  if (marked == 0) return std::nullopt;
  SPILLWAY_TRY(of, count_of(file, "SELECT ifnull(max(revision), 0) FROM backup"));
  SPILLWAY_TRY(now, count_of(file, "SELECT revision FROM state"));
  if (now != of + kRevisionLead) return std::nullopt;  // put in place by hand, and written to
  return Revision(of);
}

Outcome advance(Connection& copy, Revision revision, std::optional<Revision> backup_of) {
  const std::string mark =
      backup_of ? fmt::format("{}; INSERT INTO backup VALUES({});", kBackupTable, backup_of->number()) : std::string();
  const std::string statements = fmt::format(
      "BEGIN IMMEDIATE; DELETE FROM log; DROP TABLE IF EXISTS backup; {1}"
      "UPDATE state SET revision = {0}, compacted = {0}, history_bytes = 0; COMMIT; PRAGMA incremental_vacuum",
      revision.number(), mark);
  return copy.exec(statements.c_str());
}

Result<BackupReport> write_backup(const std::string& from, const std::string& to, Existing existing,
                                  const ShouldContinue& should_continue) {
  SPILLWAY_TRY(source, open_to_examine(from));
  if (std::error_code problem; existing == Existing::kKept && std::filesystem::exists(to, problem)) {
    return Error{ErrorCode::kAlreadyExists, "there is a file already; --force replaces it", to};  // before the work
  }
  SPILLWAY_TRY(file, NewFile::make(to, "partial"));
  Result<BackupReport> report = write_copy(source, file, should_continue);
  if (!report) {
    Error error = report.error();
    if (error.at.empty()) error.at = to;
    return error;
  }
  report->bytes = file.size();
  SPILLWAY_TRY_VOID(file.commit(existing));
  return report;
}

}  // namespace spillway::store::sqlite
