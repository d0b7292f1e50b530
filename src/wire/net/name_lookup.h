// Addresses of names, looked up by the system on a thread of its own, because it may take seconds.
// Thread: the caller's loop.
#pragma once

#include "base/error.h"
#include "runtime/loop.h"
#include "runtime/loop_thread.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace spillway::wire {

class NameLookup {
 public:
  /// Gets at least one numeric address, or kServiceUnavailable with the system's words.
  using Done = std::move_only_function<void(Result<std::vector<std::string>>)>;

  /// Answers arrive on `loop`, which must outlive the look-up. Destroying it waits for the name at hand.
  explicit NameLookup(runtime::Loop& loop) : loop_(loop) {}

  /// `done` is never called from inside.
  void resolve(std::string host, Done done);

 private:
  runtime::Loop& loop_;
  std::optional<runtime::LoopThread> thread_;  // started by the first name that is no address
};

}  // namespace spillway::wire
