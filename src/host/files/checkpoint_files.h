// Small files of a node's state, replaced as a whole on a thread of its own: a slow disk holds up no loop.
// Thread: loop. Bounds: one text per file waits; a newer one takes its place. Invariant: after the end of this object
// no text of it replaces a file any more, not even one that the thread still writes.
#pragma once

#include "base/error.h"
#include "base/file_draft.h"
#include "host/kernel/blocking_thread.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

class CheckpointFiles {
 public:
  /// Writes the draft of a file: FileDraft::write, but for tests of disks that hang. Called on the thread.
  using WriteDraft = std::function<Result<FileDraft>(const std::string& path, std::string_view text)>;

  CheckpointFiles(runtime::Loop& loop, std::string directory, telemetry::Log log,
                  WriteDraft write_draft = &FileDraft::write);
  /// Writes the checkpoints that wait, and the one that the thread did not finish within a second.
  ~CheckpointFiles();
  CheckpointFiles(const CheckpointFiles&) = delete;
  CheckpointFiles& operator=(const CheckpointFiles&) = delete;

  /// `file`: a name without directories. Failures are logged.
  void save(const std::string& file, std::string text);

  /// Runs `then` when no checkpoint is left to write (a failed one is logged and left): at once if there is none.
  void when_saved(runtime::Loop::Task then);

 private:
  struct Write;

  static Outcome carry_out(Write& write);

  void write_next();
  void on_written(const Outcome& written);
  void take_back();
  void report(const std::string& file, const Outcome& written) const;

  std::string directory_;
  telemetry::Log log_;
  WriteDraft write_draft_;
  std::map<std::string, std::string> waiting_;  // by file
  std::shared_ptr<Write> write_;                // the thread has it; null: none
  std::vector<runtime::Loop::Task> then_;       // run when nothing is left to write
  std::unique_ptr<BlockingThread> thread_;      // last: its results use the other members
};

}  // namespace spillway::host
