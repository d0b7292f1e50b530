#include "host/kernel/mount_steps.h"

#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace spillway::host {
namespace {

constexpr std::size_t kNameMax = 255;

bool ok_or(long result, int harmless) noexcept {
  return result >= 0 || errno == harmless;
}

bool make_empty_file(const char* path) noexcept {
  const long fd = ::syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_RDONLY | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  ::syscall(SYS_close, fd);
  return true;
}

/// The component that `path` begins with, in `name`; null: it is too long. Else what follows it.
const char* take_component(const char* path, std::array<char, kNameMax + 1>& name) noexcept {
  while (*path == '/') ++path;
  std::size_t size = 0;
  while (*path != '\0' && *path != '/') {
    if (size == kNameMax) return nullptr;
    name[size++] = *path++;
  }
  name[size] = '\0';
  while (*path == '/') ++path;
  return path;
}

bool place(const MountStep& step) noexcept {
  long at = ::syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  std::array<char, kNameMax + 1> name = {};
  for (const char* rest = step.target.c_str(); at >= 0 && *rest != '\0';) {
    rest = take_component(rest, name);
    if (rest == nullptr) {
      errno = ENAMETOOLONG;
      return false;
    }
    if (name[0] == '\0') break;
    const bool is_file = *rest == '\0' && step.is_file;
    long next = ::syscall(SYS_openat, at, name.data(), O_PATH | O_NOFOLLOW | O_CLOEXEC | (is_file ? 0 : O_DIRECTORY));
    if (next < 0 && errno == ENOENT) {
      if (is_file) {
        const long made = ::syscall(SYS_openat, at, name.data(), O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0644);
        if (made < 0) return false;
        ::syscall(SYS_close, made);
      } else if (::syscall(SYS_mkdirat, at, name.data(), 0755) != 0) {
        return false;
      }
      next = ::syscall(SYS_openat, at, name.data(), O_PATH | O_NOFOLLOW | O_CLOEXEC | (is_file ? 0 : O_DIRECTORY));
    }
    ::syscall(SYS_close, at);
    at = next;
  }
  if (at < 0) return false;
  const bool moved =
      ::syscall(SYS_move_mount, step.fd, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
  const int error = errno;
  ::syscall(SYS_close, at);
  errno = error;
  return moved;
}

bool change_attributes(const MountStep& step, unsigned flags) noexcept {
  mount_attr wanted = {};
  if (step.kind == MountStep::Kind::kUnprotect) {
    wanted.attr_clr = step.attributes;
  } else {
    wanted.attr_set = step.attributes;
    wanted.propagation = MS_PRIVATE;
  }
  return ::syscall(SYS_mount_setattr, AT_FDCWD, step.target.c_str(), flags, &wanted, sizeof wanted) == 0;
}

bool run_step(const MountStep& step) noexcept {
  const char* target = step.target.c_str();
  switch (step.kind) {
    case MountStep::Kind::kFolder:
      return ok_or(::syscall(SYS_mkdirat, AT_FDCWD, target, 0755), EEXIST);
    case MountStep::Kind::kFile:
      return make_empty_file(target);
    case MountStep::Kind::kLink:
      return ok_or(::syscall(SYS_symlinkat, step.source.c_str(), AT_FDCWD, target), EEXIST);
    case MountStep::Kind::kMount:
      return ::syscall(SYS_mount, step.source.c_str(), target, step.type.c_str(), step.flags, step.options.c_str()) ==
             0;
    case MountStep::Kind::kBind:
      return ::syscall(SYS_mount, step.source.c_str(), target, nullptr, MS_BIND | MS_REC, nullptr) == 0;
    case MountStep::Kind::kMove:
      return ::syscall(SYS_move_mount, step.fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) == 0;
    case MountStep::Kind::kPlace:
      return place(step);
    case MountStep::Kind::kShift:
      return ::syscall(SYS_mount, step.source.c_str(), target, nullptr, MS_MOVE, nullptr) == 0;
    case MountStep::Kind::kProtect:
    case MountStep::Kind::kUnprotect:
      return change_attributes(step, 0);
    case MountStep::Kind::kProtectAll:
      return change_attributes(step, AT_RECURSIVE);
  }
  return false;
}

}  // namespace

std::optional<StepFailure> run_mount_steps(std::span<const MountStep> steps) noexcept {
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (!run_step(steps[i])) return StepFailure{i, errno};
  return std::nullopt;
}

std::string describe(const MountStep& step, int error) {
  const std::string why = errno_error("", error).message;
  switch (step.kind) {
    case MountStep::Kind::kFolder:
    case MountStep::Kind::kFile:
    case MountStep::Kind::kLink:
      return fmt::format("cannot make {}: {}", step.target, why);
    case MountStep::Kind::kMount:
      return fmt::format("cannot mount {} on {}: {}", step.type, step.target, why);
    case MountStep::Kind::kBind:
      return fmt::format("cannot mount {} on {}: {}", step.source, step.target, why);
    case MountStep::Kind::kMove:
    case MountStep::Kind::kPlace:
    case MountStep::Kind::kShift:
      return fmt::format("cannot mount {} on {}: {}", step.source.empty() ? "a tree" : step.source, step.target, why);
    case MountStep::Kind::kProtect:
    case MountStep::Kind::kProtectAll:
    case MountStep::Kind::kUnprotect:
      return fmt::format("cannot protect the mount {}: {}", step.target, why);
  }
  return why;
}

Result<UniqueFd> open_detached(const std::string& path) {
  UniqueFd fd(static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!fd) return errno_error(path, errno);
  return fd;
}

}  // namespace spillway::host
