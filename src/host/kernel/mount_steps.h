// Steps that make a tree of mounts, as values: made beforehand, carried out by a child between clone and exec, where
// only system calls are allowed.
// Thread: any (values); run_mount_steps() calls nothing but the kernel. Source: mount(2), move_mount(2),
// mount_setattr(2) (Linux 5.12).
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <linux/mount.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace spillway::host {

/// Files that are nothing but data.
inline constexpr unsigned long kPlainFiles = MS_NOSUID | MS_NODEV | MS_NOEXEC;

struct MountStep {
  enum class Kind {
    kFolder,      // makes the directory `target`; it may exist already
    kFile,        // makes the empty file `target`; it may exist already
    kLink,        // makes a symbolic link to `source`
    kMount,       // a new file system of `type` with `flags` and `options`
    kBind,        // `source` with everything that is mounted below it
    kMove,        // the detached mount `fd`
    kPlace,       // as kFolder; directories on the way and `target` itself are made; no link is followed on the way
    kShift,       // moves the mount from `source` to `target`
    kProtect,     // adds `attributes` to the mount at `target`; mounts below it keep theirs
    kProtectAll,  // as kProtect, for all mounts below as well
    kUnprotect,   // removes these attributes from the mount at `target`
  };

  Kind kind = Kind::kFolder;
  std::string target;
  std::string source = {};
  std::string type = {};
  std::string options = {};
  unsigned long flags = 0;       // MS_*
  std::uint64_t attributes = 0;  // MOUNT_ATTR_*
  int fd = -1;                   // borrowed
  bool is_file = false;          // kPlace: not a directory

  friend bool operator==(const MountStep&, const MountStep&) = default;
};

struct StepFailure {
  std::size_t step = 0;
  int error = 0;  // errno
};

/// nullopt: all are done. Else the first that failed.
std::optional<StepFailure> run_mount_steps(std::span<const MountStep> steps) noexcept;

/// "tmpfs on /dev/shm: Operation not permitted".
std::string describe(const MountStep& step, int error);

/// A copy of the mount at `path`, without those below it, that is mounted nowhere. kForbidden: no right to
/// (CAP_SYS_ADMIN).
Result<UniqueFd> open_detached(const std::string& path);

}  // namespace spillway::host
