// The directories of provisioned volumes, as the provisioner asks the machine for them. Thread: loop.
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
  /// Removes it with all that is in it; it need not be there. kTooManyRequests, as of make: too many wait already.
  virtual void remove(const std::string& folder, const std::string& name, Done done) = 0;
};

}  // namespace spillway::controllers
