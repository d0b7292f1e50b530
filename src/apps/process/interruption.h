// Records SIGINT and SIGTERM for work without a loop, which checks for them now and then and stops. Thread: main. At
// most one at a time.
#pragma once

namespace spillway::apps {

class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// The received signal; 0: none so far. The second one ends the process at once.
  static int signal();
};

}  // namespace spillway::apps
