// Port: where the events of the audit log go, line by line. Thread: any, except where said.
#pragma once

#include "base/error.h"

#include <functional>
#include <string>

namespace spillway::apiserver {

class AuditLog {
 public:
  virtual ~AuditLog() = default;
  /// Takes one line, without its newline. What cannot be taken is lost, counted, and told in the log itself.
  virtual void write(std::string line) = 0;
  /// As write(). `done` is called later, on the loop: whether the line stands in the log, as safely as the log writes.
  virtual void write(std::string line, std::move_only_function<void(Outcome)> done) = 0;
};

}  // namespace spillway::apiserver
