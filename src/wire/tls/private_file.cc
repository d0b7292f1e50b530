#include "wire/tls/private_file.h"

#include "base/unique_fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace spillway::wire {

namespace {

constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;
constexpr mode_t kOpenToOthers = S_IWGRP | S_IRWXO;

/// True for owners that may hold secrets: this process's user, and root, which may read everything anyway.
bool is_ours(const struct stat& found) {
  return found.st_uid == ::geteuid() || found.st_uid == 0;
}

}  // namespace

Result<std::string> read_private_file(const std::string& path) {
  // Opened without blocking: a pipe in its place must not block the process.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0 && errno == ELOOP) return invalid(path, "is a symbolic link, expected a file");
  struct stat found{};
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0) return errno_error(path, errno);
  if (!S_ISREG(found.st_mode)) return invalid(path, "expected a file");
  if (!is_ours(found)) return invalid(path, "belongs to user {}, expected {} or root", found.st_uid, ::geteuid());
  if ((found.st_mode & kOpenToOthers) != 0) {
    return invalid(path, "is open to others (mode {:04o}), expected 0600", found.st_mode & 07777U);
  }
  return read_open_file(file.get(), path);
}

Outcome make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return errno_error(path, errno);
  const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.get() < 0 && (errno == ELOOP || errno == ENOTDIR)) return invalid(path, "expected a folder, not a link");
  struct stat found{};
  if (folder.get() < 0 || ::fstat(folder.get(), &found) != 0) return errno_error(path, errno);
  if (!is_ours(found)) return invalid(path, "belongs to user {}, expected {} or root", found.st_uid, ::geteuid());
  if ((found.st_mode & kWritableByOthers) != 0) {
    return invalid(path, "others may write into it (mode {:04o}), expected 0700", found.st_mode & 07777U);
  }
  return {};
}

}  // namespace spillway::wire
