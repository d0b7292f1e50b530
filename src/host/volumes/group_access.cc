#include "host/volumes/group_access.h"

#include "base/unique_fd.h"
#include "host/kernel/kernel_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::host {
namespace {

constexpr mode_t kReadFiles = 0440;
constexpr mode_t kWriteFiles = 0660;
constexpr mode_t kEnterFolders = 0110;

/// The change of owner takes the setgid bit away, so the mode comes after it.
mode_t mode_for(const struct stat& status, GroupAccess access) {
  const mode_t mode = (status.st_mode & 07777) | (access == GroupAccess::kRead ? kReadFiles : kWriteFiles);
  return S_ISDIR(status.st_mode) ? mode | S_ISGID | kEnterFolders : mode;
}

void keep_first(Outcome& first, const Outcome& next) {
  if (first) first = next;
}

/// A writer may nest folders of a lasting volume without end, and each level takes a descriptor.
constexpr int kDepthMax = 100;

Outcome give(int directory, gid_t group, GroupAccess access, int depth);

/// A writer of the volume can replace an entry at any time, even by a device: only folders are ever opened, and the
/// change applies to the file that was checked.
Outcome give_entry(int directory, const char* name, gid_t group, GroupAccess access, int depth) {
  UniqueFd entry(::openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status = {};
  if (!entry || ::fstat(entry.get(), &status) != 0) return errno_error(name, errno);
  if (S_ISDIR(status.st_mode)) {
    const UniqueFd folder(::openat(entry.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return errno_error(name, errno);
    entry.reset();
    return give(folder.get(), group, access, depth + 1);
  }
  if (::fchownat(entry.get(), "", static_cast<uid_t>(-1), group, AT_EMPTY_PATH) != 0) return errno_error(name, errno);
  if (!S_ISREG(status.st_mode)) return {};
  const std::string path = fmt::format("/proc/self/fd/{}", entry.get());
  if (::chmod(path.c_str(), mode_for(status, access)) != 0) return errno_error(name, errno);
  return {};
}

Outcome give(int directory, gid_t group, GroupAccess access, int depth) {
  if (depth > kDepthMax) return errno_error("volume", ELOOP);
  struct stat status = {};
  if (::fstat(directory, &status) != 0) return errno_error("volume", errno);
  Outcome first;
  if (::fchown(directory, static_cast<uid_t>(-1), group) != 0 || ::fchmod(directory, mode_for(status, access)) != 0)
    first = errno_error("volume", errno);
  const int listed = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(listed < 0 ? nullptr : ::fdopendir(listed), ::closedir);
  if (!entries) return errno_error("volume", errno);
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") keep_first(first, give_entry(directory, entry->d_name, group, access, depth));
  }
  return first;
}

}  // namespace

Outcome give_to_group(int directory, gid_t group, GroupAccess access) {
  return give(directory, group, access, 0);
}

}  // namespace spillway::host
