// The agent's journal as a file: one line per decision, appended with one write(2) and no fsync, so that an eviction
// never waits for a disk. Bounded: at `bytes_max` the file becomes FILE.1, replacing the one before. A line that a
// crash has cut off is ended when the file is opened again, so that it costs no other line. Thread: loop.
#pragma once

#include "agent/contract/journal.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "telemetry/log.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace spillway::host {

class JournalFile final : public agent::Journal {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{8} * 1024 * 1024;

  /// Opens or creates `path`. kInternalError: the path and the system's words.
  static Result<std::unique_ptr<JournalFile>> open(std::string path, telemetry::Log log,
                                                   std::size_t bytes_max = kBytesMax);

  void append(const agent::JournalLine& line) override;

  /// A descriptor that appends to the same file, for the thread that writes its intents there.
  Result<UniqueFd> duplicate() const;

  /// The entries of this file and the one before it, oldest first. A line that was cut off by a crash is skipped, and
  /// so is an intent whose entry follows.
  Result<std::vector<agent::JournalEntry>> read() const;

 private:
  JournalFile(std::string path, telemetry::Log log, std::size_t bytes_max)
      : path_(std::move(path)), log_(std::move(log)), bytes_max_(bytes_max) {}

  Outcome reopen();

  std::string path_;
  telemetry::Log log_;
  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  UniqueFd file_;
};

/// The entries of the journal at `path` and of the file before it, oldest first; for readers outside the agent.
/// kNotFound: there is no such file. kInternalError: the path and the system's words.
Result<std::vector<agent::JournalEntry>> read_journal_files(const std::string& path);

}  // namespace spillway::host
