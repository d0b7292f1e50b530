// One line on a terminal that says how far a piece of work is, and is gone when the work ends.
// Thread: main.
#pragma once

#include "base/time.h"

#include <string>

namespace spillway::apps {

class ProgressLine {
 public:
  enum class Shown { kOnTerminal, kNever };

  /// Written to standard error, if that is a terminal.
  ProgressLine(std::string what, Shown shown);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `share`: 0 to 1; 0 as long as it cannot be told. Called as often as one likes.
  void show(double share);

 private:
  std::string what_;
  bool shown_;
  Instant next_{};
};

}  // namespace spillway::apps
