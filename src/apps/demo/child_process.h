// A spillway of our own as a child process: its output in a file, suspended and resumed, never left behind.
// Thread: any (one at a time).
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"

#include <sys/types.h>

#include <string>
#include <vector>

namespace spillway::apps {

class ChildProcess {
 public:
  /// Runs this very program with other arguments; output goes to `log`. It gets SIGTERM when this process dies.
  static Result<ChildProcess> start(const std::vector<std::string>& arguments, const std::string& log);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  /// Kills the process if it still runs.
  ~ChildProcess();

  bool running();
  /// Sends SIGSTOP or SIGCONT: a stopped process is silent and still exists.
  void suspend();
  void resume();
  /// Sends SIGTERM, and SIGKILL after `patience`. Returns when the process has ended.
  void stop(Duration patience);

  pid_t pid() const { return pid_; }

  const std::string& log() const { return log_; }

 private:
  ChildProcess(pid_t pid, UniqueFd handle, std::string log);

  bool wait(Duration patience);
  void signal(int number);

  pid_t pid_ = -1;
  UniqueFd handle_;
  std::string log_;
};

}  // namespace spillway::apps
