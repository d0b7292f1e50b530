#include "store/sqlite/backup.h"

#include "base/unique_fd.h"
#include "store/sqlite/database.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace spillway::store::sqlite {
namespace {

Error failed(const std::string& path, std::string_view what, int cause) {
  return Error{ErrorCode::kServiceUnavailable,
               fmt::format("{}: {}", what, std::error_code(cause, std::generic_category()).message()), path};
}

/// For its owner alone: objects hold secrets. SQLite fills an empty file.
Outcome make_empty(const std::string& path) {
  ::unlink(path.c_str());  // of a backup that was interrupted
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return failed(path, "cannot make the backup", errno);
  return {};
}

Outcome sync(const std::string& path, int flags) {
  const UniqueFd file(::open(path.c_str(), flags | O_CLOEXEC));
  if (!file) return failed(path, "cannot open to flush", errno);
  if (::fsync(file.get()) != 0) return failed(path, "cannot flush", errno);
  return {};
}

Result<Revision> copy(const std::string& from, const std::string& to) {
  SPILLWAY_TRY(source, Connection::open(from, Access::kReadOnly));
  SPILLWAY_TRY_VOID(source.exec("PRAGMA busy_timeout=5000"));
  SPILLWAY_TRY(vacuum, source.prepare("VACUUM INTO ?"));
  SPILLWAY_TRY_VOID(vacuum.run(std::string_view(to)));
  SPILLWAY_TRY(copied, Connection::open(to, Access::kReadWrite));
  SPILLWAY_TRY(revision, copied.number("SELECT revision FROM state"));
  const std::string advance = fmt::format(
      "BEGIN IMMEDIATE; DELETE FROM log; UPDATE state SET revision = {0}, compacted = {0}, history_bytes = 0; COMMIT;"
      "PRAGMA incremental_vacuum",
      static_cast<std::uint64_t>(revision) + kRevisionLead);
  SPILLWAY_TRY_VOID(copied.exec(advance.c_str()));
  return Revision(static_cast<std::uint64_t>(revision));
}

}  // namespace

Result<Revision> write_backup(const std::string& from, const std::string& to) {
  const std::filesystem::path target(to);
  std::error_code problem;
  if (std::filesystem::exists(target, problem)) {
    return Error{ErrorCode::kAlreadyExists, "there is a file already; a backup replaces nothing", to};
  }
  const std::string partial = to + ".partial";
  SPILLWAY_TRY_VOID(make_empty(partial));
  Result<Revision> revision = copy(from, partial);
  Outcome outcome = revision ? sync(partial, O_RDWR) : Outcome(revision.error());
  if (outcome && ::link(partial.c_str(), to.c_str()) != 0) outcome = failed(to, "cannot name the backup", errno);
  ::unlink(partial.c_str());
  const std::string directory = target.has_parent_path() ? target.parent_path().string() : ".";
  if (outcome) outcome = sync(directory, O_RDONLY | O_DIRECTORY);
  if (outcome) return revision;
  Error error = outcome.error();
  if (error.at.empty()) error.at = to;
  return error;
}

}  // namespace spillway::store::sqlite
