// memory.high of all pods together, written on a thread of its own: the kernel lets a writer wait whose limit has been
// passed in the meantime. No limit at the start and at the end. Thread: set() from one thread, which never waits; the
// rest the loop. Source: agent/eviction/memory_brake.h; kernel document "cgroup-v2.rst", memory.high.
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "host/cgroup/cgroup.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

namespace spillway::host {

class MemoryBrake {
 public:
  /// kNotFound: version 1 has no memory.high. Other errors name the file.
  static Result<std::unique_ptr<MemoryBrake>> create(const CgroupDir& pods);
  ~MemoryBrake();
  MemoryBrake(const MemoryBrake&) = delete;
  MemoryBrake& operator=(const MemoryBrake&) = delete;

  /// nullopt: no limit. Moves of less than a mebibyte are left out.
  void set(std::optional<Bytes> limit) noexcept;

  /// The limit of the last set(), but for small changes.
  std::optional<Bytes> limit() const noexcept {
    const std::int64_t wanted = wanted_.load();
    return wanted == kNoLimit ? std::nullopt : std::optional(Bytes{wanted});
  }

 private:
  static constexpr std::int64_t kNoLimit = -1;

  explicit MemoryBrake(UniqueFd file);

  void run() noexcept;
  void write(std::int64_t limit) const noexcept;

  UniqueFd file_;
  UniqueFd wake_;
  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> wanted_{kNoLimit};
  std::thread thread_;
};

}  // namespace spillway::host
