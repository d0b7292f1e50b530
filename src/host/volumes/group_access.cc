#include "host/volumes/group_access.h"

#include "base/unique_fd.h"
#include "host/kernel/kernel_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

namespace spillway::host {
namespace {

constexpr mode_t kReadFiles = 0440;
constexpr mode_t kWriteFiles = 0660;
constexpr mode_t kEnterFolders = 0110;

/// `fd` is open for reading. The change of owner takes the setgid bit away, so the mode comes after it.
Outcome change(int fd, std::string_view name, const struct stat& status, gid_t group, GroupAccess access) {
  if (::fchown(fd, static_cast<uid_t>(-1), group) != 0) return errno_error(name, errno);
  mode_t mode = (status.st_mode & 07777) | (access == GroupAccess::kRead ? kReadFiles : kWriteFiles);
  if (S_ISDIR(status.st_mode)) mode |= S_ISGID | kEnterFolders;
  if (::fchmod(fd, mode) != 0) return errno_error(name, errno);
  return {};
}

void keep_first(Outcome& first, const Outcome& next) {
  if (first) first = next;
}

Outcome give(int directory, gid_t group, GroupAccess access);

Outcome give_entry(int directory, const char* name, gid_t group, GroupAccess access) {
  struct stat status = {};
  if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return errno_error(name, errno);
  if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode)) {
    if (::fchownat(directory, name, static_cast<uid_t>(-1), group, AT_SYMLINK_NOFOLLOW) != 0)
      return errno_error(name, errno);
    return {};
  }
  const int kind = S_ISDIR(status.st_mode) ? O_DIRECTORY : O_NONBLOCK;
  const UniqueFd fd(::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
  if (!fd || ::fstat(fd.get(), &status) != 0) return errno_error(name, errno);
  if (S_ISDIR(status.st_mode)) return give(fd.get(), group, access);
  return change(fd.get(), name, status, group, access);
}

Outcome give(int directory, gid_t group, GroupAccess access) {
  struct stat status = {};
  if (::fstat(directory, &status) != 0) return errno_error("volume", errno);
  Outcome first = change(directory, "volume", status, group, access);
  const int listed = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(listed < 0 ? nullptr : ::fdopendir(listed), ::closedir);
  if (!entries) return errno_error("volume", errno);
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") keep_first(first, give_entry(directory, entry->d_name, group, access));
  }
  return first;
}

}  // namespace

Outcome give_to_group(int directory, gid_t group, GroupAccess access) {
  return give(directory, group, access);
}

}  // namespace spillway::host
