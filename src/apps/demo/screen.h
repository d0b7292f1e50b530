// The demo's terminal output: numbered chapters, facts with a mark, a live gauge. Colour and the moving gauge only on a
// terminal; a log gets whole lines. Thread: main.
#pragma once

#include "base/bytes.h"
#include "base/time.h"

#include <string>
#include <string_view>

namespace spillway::apps {

class Screen {
 public:
  Screen();

  void chapter(std::string_view title);
  void line(std::string_view text);
  /// A fact that was checked.
  void passed(std::string_view text);
  void failed(std::string_view text);
  /// "memory.available 187 MiB |#######    | threshold 64 MiB". Moves in place on a terminal.
  void gauge(Bytes available, Bytes capacity, Bytes threshold);
  void end_gauge();

  int failures() const { return failures_; }

 private:
  bool terminal_;
  bool coloured_;
  bool gauge_open_ = false;
  int chapter_ = 0;
  int failures_ = 0;
};

/// "25.4 MiB".
std::string mebibytes_text(Bytes bytes);
/// "3.2 s".
std::string seconds_text(Duration duration);

}  // namespace spillway::apps
