#include "host/audit/audit_file.h"

#include "base/file.h"
#include "host/audit/audit_backups.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = 0600;
constexpr int kNamesTried = 1'000;  // a millisecond apart

Result<UniqueFd> open_file(const std::string& path, struct stat& found) {
  // Opened without waiting: opening a pipe without a reader would never return.
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kMode));
  if (!fd && errno == ELOOP) return invalid(path, "is a symbolic link");
  if (!fd || ::fstat(fd.get(), &found) != 0) return invalid(path, "{}", errno_error({}, errno).message);
  if (!S_ISREG(found.st_mode)) return invalid(path, "is no ordinary file");
  if (found.st_uid != ::geteuid()) return invalid(path, "belongs to user {}", found.st_uid);
  if (::fchmod(fd.get(), kMode) != 0) return invalid(path, "{}", errno_error({}, errno).message);
  return fd;
}

bool is_taken(const std::string& path) {
  struct stat found = {};
  return ::lstat(path.c_str(), &found) == 0 || errno != ENOENT;
}

}  // namespace

std::string audit_backup_path(std::string_view path, WallTime at) {
  const fs::path file(path);
  return (file.parent_path() / audit_backup_name(file.filename().string(), at)).string();
}

Result<AuditFile> AuditFile::open(Options options) {
  if (options.path == "-") {
    UniqueFd fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
    if (!fd) return invalid("standard output", "{}", errno_error({}, errno).message);
    return AuditFile(std::move(options), std::move(fd), 0);
  }
  struct stat found = {};
  SPILLWAY_TRY(fd, open_file(options.path, found));
  SPILLWAY_TRY_VOID(sync_folder_of(options.path));
  return AuditFile(std::move(options), std::move(fd), found.st_size);
}

Result<AuditFile::Appended> AuditFile::append(std::string_view lines, WallTime now) {
  Appended appended;
  const auto bytes = static_cast<std::int64_t>(lines.size());
  if (!is_stdout() && size_ > 0 && size_ + bytes > options_.bytes_max) {
    auto renamed = rename_away(now);
    if (renamed) appended.renamed = *std::move(renamed);
    if (!renamed) appended.not_renamed = renamed.error();
  }
  Outcome written;
  if (torn_) written = write_all(fd_.get(), "\n", options_.path);
  if (written) written = write_all(fd_.get(), lines, options_.path);
  if (!written) {
    // Truncates the file to remove the partial line, where that is possible.
    torn_ = is_stdout() || ::ftruncate(fd_.get(), size_) != 0;
    return written.error();
  }
  torn_ = false;
  size_ += bytes;
  return appended;
}

Outcome AuditFile::sync() {
  if (is_stdout() || ::fdatasync(fd_.get()) == 0) return {};
  return errno_error(options_.path, errno);
}

Result<std::string> AuditFile::rename_away(WallTime now) {
  std::string older = audit_backup_path(options_.path, now);
  for (int i = 0; i < kNamesTried && is_taken(older); ++i) {
    now += milliseconds(1);
    older = audit_backup_path(options_.path, now);
  }
  if (is_taken(older)) return Error{ErrorCode::kAlreadyExists, "no free name is left for the old log", older};
  if (::rename(options_.path.c_str(), older.c_str()) != 0) return errno_error(options_.path, errno);
  struct stat found = {};
  auto fresh = open_file(options_.path, found);
  if (!fresh) {
    ::rename(older.c_str(), options_.path.c_str());  // the open file stays in use
    return fresh.error();
  }
  ignored(sync_folder_of(options_.path), "the line that follows is synced, and fails if the disk is gone");
  fd_ = *std::move(fresh);
  size_ = found.st_size;
  torn_ = false;
  return older;
}

}  // namespace spillway::host
