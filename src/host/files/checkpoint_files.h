// Small files of a node's state, replaced as a whole on a thread of its own: a slow disk holds up no loop.
// Thread: loop. Bounds: one text per file waits; a newer one takes its place.
#pragma once

#include "base/error.h"
#include "host/kernel/blocking_thread.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spillway::host {

class CheckpointFiles {
 public:
  CheckpointFiles(runtime::Loop& loop, std::string directory, telemetry::Log log);
  /// Writes the checkpoints that wait.
  ~CheckpointFiles();
  CheckpointFiles(const CheckpointFiles&) = delete;
  CheckpointFiles& operator=(const CheckpointFiles&) = delete;

  /// `file`: a name without directories. Failures are logged.
  void save(const std::string& file, std::string text);

  /// Runs `then` when no checkpoint is left to write (a failed one is logged and left): at once if there is none.
  void when_saved(runtime::Loop::Task then);

 private:
  void write_next();
  void on_written(const std::string& file, const Outcome& written);
  void report(const std::string& file, const Outcome& written) const;

  std::string directory_;
  telemetry::Log log_;
  std::map<std::string, std::string> waiting_;  // by file
  bool writing_ = false;                        // the thread has a file
  std::vector<runtime::Loop::Task> then_;       // run when nothing is left to write
  std::unique_ptr<BlockingThread> thread_;      // last: its results use the other members
};

}  // namespace spillway::host
