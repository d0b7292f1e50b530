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

 private:
  void write_next();
  void report(const std::string& file, const Outcome& written) const;

  std::string directory_;
  telemetry::Log log_;
  std::map<std::string, std::string> waiting_;  // by file
  std::unique_ptr<BlockingThread> thread_;      // last: its results use the other members
};

}  // namespace spillway::host
