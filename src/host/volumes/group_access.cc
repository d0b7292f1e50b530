#include "host/volumes/group_access.h"

#include "base/unique_fd.h"
#include "host/kernel/kernel_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::host {
namespace {

constexpr mode_t kReadFiles = 0440;
constexpr mode_t kWriteFiles = 0660;
constexpr mode_t kEnterFolders = 0110;

/// The change of owner clears the setgid bit, so the mode is set after it.
mode_t mode_for(const struct stat& status, GroupAccess access) {
  const mode_t mode = (status.st_mode & 07777) | (access == GroupAccess::kRead ? kReadFiles : kWriteFiles);
  return S_ISDIR(status.st_mode) ? mode | S_ISGID | kEnterFolders : mode;
}

void keep_first(Outcome& first, const Outcome& next) {
  if (first) first = next;
}

/// A writer may nest folders of a lasting volume without end, and each level takes a descriptor.
constexpr int kDepthMax = 100;

/// Changes one open file or folder; `fd` may be opened with O_PATH.
using Change = std::function<Outcome(int fd, const struct stat& status)>;

Outcome change_tree(int directory, const Change& change, int depth);

/// A writer of the volume can replace an entry at any time, even by a device: only folders are ever opened, and the
/// change applies to the file that was checked.
Outcome change_entry(int directory, const char* name, const Change& change, int depth) {
  UniqueFd entry(::openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status = {};
  if (!entry || ::fstat(entry.get(), &status) != 0) return errno_error(name, errno);
  if (S_ISDIR(status.st_mode)) {
    const UniqueFd folder(::openat(entry.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return errno_error(name, errno);
    entry.reset();
    return change_tree(folder.get(), change, depth + 1);
  }
  return change(entry.get(), status);
}

Outcome change_tree(int directory, const Change& change, int depth) {
  if (depth > kDepthMax) return errno_error("volume", ELOOP);
  struct stat status = {};
  if (::fstat(directory, &status) != 0) return errno_error("volume", errno);
  Outcome first = change(directory, status);
  const int listed = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(listed < 0 ? nullptr : ::fdopendir(listed), ::closedir);
  if (!entries) return errno_error("volume", errno);
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") keep_first(first, change_entry(directory, entry->d_name, change, depth));
  }
  return first;
}

Outcome change_owner(int fd, uid_t user, gid_t group) {
  return ::fchownat(fd, "", user, group, AT_EMPTY_PATH) == 0 ? Outcome() : errno_error("volume", errno);
}

/// Ids of a pod, as the machine has them: the upper half is the pod's.
constexpr std::uint32_t kIdOfPod = 0xffff;

}  // namespace

Outcome give_to_group(int directory, gid_t group, GroupAccess access) {
  const auto give = [&](int fd, const struct stat& status) -> Outcome {
    SPILLWAY_TRY_VOID(change_owner(fd, static_cast<uid_t>(-1), group));
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return {};
    const std::string path = fmt::format("/proc/self/fd/{}", fd);
    return ::chmod(path.c_str(), mode_for(status, access)) == 0 ? Outcome() : errno_error("volume", errno);
  };
  return change_tree(directory, give, 0);
}

Outcome give_to_pod_ids(int directory, std::uint32_t first_id) {
  const auto give = [&](int fd, const struct stat& status) -> Outcome {
    const uid_t user = first_id | (status.st_uid & kIdOfPod);
    const gid_t group = first_id | (status.st_gid & kIdOfPod);
    if (user == status.st_uid && group == status.st_gid) return {};
    return change_owner(fd, user, group);
  };
  return change_tree(directory, give, 0);
}

}  // namespace spillway::host
