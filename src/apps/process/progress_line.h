// One line on a terminal with the progress of a piece of work, removed when the work ends.
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

  /// `share`: 0 to 1; 0 as long as it is unknown. May be called at any rate.
  void show(double share);

 private:
  std::string what_;
  bool shown_;
  Instant next_{};
};

}  // namespace spillway::apps
