// A process that makes something in namespaces of its own and then holds them, doing nothing, until this object is
// destroyed.
// Thread: loop. Waits for its setup (some system calls), and for its end. Source: clone(2), namespaces(7).
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace spillway::host {

class NamespaceChild {
 public:
  /// The step that failed, numbered by the caller.
  struct Failure {
    int what = 0;
    int error = 0;  // errno
    std::size_t index = 0;
  };

  /// Runs in the child, which shares nothing but a copy of this process's memory: system calls only. True: it worked.
  using Work = std::function<bool(Failure& failure)>;

  /// `clone_flags`: CLONE_NEW*. The error of clone(2) itself has no text but the kernel's; a failure of `work` is what
  /// `describe` makes of it.
  static Result<NamespaceChild> start(std::uint64_t clone_flags, const Work& work,
                                      const std::function<Error(const Failure&)>& describe);
  NamespaceChild(NamespaceChild&&) noexcept = default;
  NamespaceChild& operator=(NamespaceChild&&) = delete;
  ~NamespaceChild();

  /// `name`: as in /proc/PID/ns.
  Result<UniqueFd> open(const char* name) const;
  /// The root directory as the child sees it.
  Result<UniqueFd> root() const;
  /// Maps user and group ids 0 and up of its user namespace to `count` ids of ours from `first` on.
  Outcome map_ids(std::uint32_t first, std::uint32_t count) const;

 private:
  NamespaceChild(long pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  long pid_;
  UniqueFd pidfd_;
};

}  // namespace spillway::host
