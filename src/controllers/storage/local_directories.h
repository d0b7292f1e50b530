// Port: the machine's commands for directories of provisioned volumes. Thread: loop.
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <functional>
#include <string>

namespace spillway::controllers {

class LocalDirectories {
 public:
  /// Called once, in a step of the engine, never before the call has returned.
  using Done = std::function<void(const Outcome& outcome, Now now)>;

  virtual ~LocalDirectories() = default;

  /// Makes the directory of that name below the folder; an existing one is not changed.
  virtual void make(const std::string& folder, const std::string& name, Done done) = 0;
  /// Removes the directory with all its content; it need not exist. kTooManyRequests, as of make: too many calls wait
  /// already.
  virtual void remove(const std::string& folder, const std::string& name, Done done) = 0;
};

}  // namespace spillway::controllers
