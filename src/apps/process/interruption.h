// SIGINT and SIGTERM as a question, for work that has no loop: it asks now and then, and stops by itself.
// Thread: main. At most one at a time.
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
