// Port: receives the events of the audit log, line by line. Thread: any, except where said.
#pragma once

#include "base/error.h"

#include <functional>
#include <string>

namespace spillway::apiserver {

class AuditLog {
 public:
  virtual ~AuditLog() = default;
  /// Writes one line, without its newline. A line that cannot be written is lost, counted, and reported in the log
  /// itself.
  virtual void write(std::string line) = 0;
  /// As write(). `done` is called later, on the loop, with the outcome: the line is in the log, as durably as the log
  /// writes.
  virtual void write(std::string line, std::move_only_function<void(Outcome)> done) = 0;
};

}  // namespace spillway::apiserver
