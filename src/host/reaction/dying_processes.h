// Processes that are about to be killed, held by their pidfds from before the signal, so that their memory can be freed
// the moment it is out. Never allocates. Thread: any (one at a time). Source: pidfd_open(2), process_mrelease(2).
#pragma once

#include "base/unique_fd.h"

#include <array>
#include <cstddef>
#include <span>
#include <utility>

namespace spillway::host {

class DyingProcesses {
 public:
  static constexpr std::size_t kCountMax = 256;

  /// Processes beyond kCountMax are not held.
  void add(UniqueFd pidfd) noexcept {
    if (pidfd && count_ < pidfds_.size()) pidfds_[count_++] = std::move(pidfd);
  }

  std::span<UniqueFd> held() noexcept { return std::span(pidfds_).first(count_); }

 private:
  std::array<UniqueFd, kCountMax> pidfds_;
  std::size_t count_ = 0;
};

}  // namespace spillway::host
