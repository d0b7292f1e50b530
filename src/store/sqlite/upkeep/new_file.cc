#include "store/sqlite/upkeep/new_file.h"

#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace spillway::store::sqlite {
namespace {

constexpr int kAttempts = 10;

Error prefixed(Error error, std::string_view doing) {
  error.message = fmt::format("{}: {}", doing, error.message);
  return error;
}

/// True if the open file is still the one of that name: another maker may have ended, and taken its file away, between
/// open() and flock().
bool is_file_of(int file, const std::string& path) {
  struct stat open_one{};
  struct stat named{};
  return ::fstat(file, &open_one) == 0 && ::lstat(path.c_str(), &named) == 0 && open_one.st_dev == named.st_dev &&
         open_one.st_ino == named.st_ino;
}

Outcome take_over(int file, const std::string& path) {
  struct stat found{};
  if (::fstat(file, &found) != 0) return errno_error(path, errno);
  if (!S_ISREG(found.st_mode)) return Error{ErrorCode::kForbidden, "is not a regular file", path};
  if (found.st_uid != ::geteuid()) {
    return Error{ErrorCode::kForbidden, fmt::format("belongs to user {}", found.st_uid), path};
  }
  if (::fchmod(file, 0600) != 0 || ::ftruncate(file, 0) != 0) return errno_error(path, errno);
  return {};
}

/// Renames a file unless the new name is taken. No hard link is needed where the file system supports the call, which
/// file systems without hard links often do.
int rename_if_absent(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  if (::link(from.c_str(), to.c_str()) != 0) return -1;
  return ::unlink(from.c_str());
}

}  // namespace

Result<NewFile> NewFile::make(const std::string& path, std::string_view suffix) {
  const std::string partial = fmt::format("{}.{}", path, suffix);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    UniqueFd file(::open(partial.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (!file) return prefixed(errno_error(partial, errno), "cannot be made");
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      return Error{ErrorCode::kConflict, "another process is writing this file", partial};
    }
    if (!is_file_of(file.get(), partial)) continue;
    SPILLWAY_TRY_VOID(take_over(file.get(), partial));
    SPILLWAY_TRY_VOID(drop_journal(partial));  // the journal of the maker before
    return NewFile(path, partial, std::move(file));
  }
  return Error{ErrorCode::kConflict, "other processes make and remove this file all the time", partial};
}

NewFile::~NewFile() {
  if (!lock_ || !is_file_of(lock_.get(), partial_)) return;
  ::unlink(partial_.c_str());
  ignored(drop_journal(partial_), "the next one to make the file drops it");
}

Bytes NewFile::size() const {
  struct stat found{};
  return ::fstat(lock_.get(), &found) == 0 ? Bytes{found.st_size} : Bytes{0};
}

Outcome NewFile::commit(Existing existing) {
  if (!is_file_of(lock_.get(), partial_))
    return Error{ErrorCode::kConflict, "was replaced by another process", partial_};
  if (::fsync(lock_.get()) != 0) return prefixed(errno_error(partial_, errno), "cannot be flushed");
  const int renamed = existing == Existing::kReplaced ? std::rename(partial_.c_str(), path_.c_str())
                                                      : rename_if_absent(partial_, path_);
  if (renamed != 0 && errno == EEXIST) {
    return Error{ErrorCode::kAlreadyExists, "there is a file already; --force replaces it", path_};
  }
  if (renamed != 0) return prefixed(errno_error(path_, errno), "cannot be named");
  return sync_directory_of(path_);
}

Outcome sync_directory_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  const UniqueFd open_one(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open_one || ::fsync(open_one.get()) != 0) return prefixed(errno_error(directory, errno), "cannot be flushed");
  return {};
}

Outcome drop_journal(const std::string& database) {
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    const std::string path = database + suffix;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return errno_error(path, errno);
  }
  return sync_directory_of(database);
}

}  // namespace spillway::store::sqlite
