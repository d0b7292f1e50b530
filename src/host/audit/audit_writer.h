// The audit log as lines on a disk: a bounded queue and a thread that empties it.
// Thread: any, but for the making and the end, which are the loop's. Source: Kubernetes docs, "Auditing", log backend;
// spec "API server at scale", 10.2, 10.3.
#pragma once

#include "apiserver/ports/audit_log.h"
#include "base/time.h"
#include "host/audit/audit_backups.h"
#include "host/audit/audit_file.h"
#include "host/audit/audit_queue.h"
#include "runtime/loop.h"
#include "runtime/loop_thread.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

class AuditWriter final : public apiserver::AuditLog {
 public:
  struct Options {
    AuditQueue::Bounds bounds = {};
    /// For a full queue: false: new lines are dropped; true: the caller waits, which may be the loop.
    bool blocks = false;
    /// true: a line is synced to the disk before its event is acknowledged.
    bool syncs = false;
    std::size_t write_bytes_max = std::size_t{1} << 20U;  // limit of a single write
    AuditBackupLimits backups = {};
    /// Makes the line that reports `lost` lost lines. Any thread.
    std::function<std::string(std::uint64_t lost, WallTime at)> loss_line;
    telemetry::Log log;
    telemetry::Counter lost = {};
  };

  /// `loop`, on which the outcome of lines is reported, must outlive the writer.
  AuditWriter(runtime::Loop& loop, AuditFile file, Options options);
  /// Writes the queued lines.
  ~AuditWriter() override;
  AuditWriter(const AuditWriter&) = delete;
  AuditWriter& operator=(const AuditWriter&) = delete;

  void write(std::string line) override;
  void write(std::string line, std::move_only_function<void(Outcome)> done) override;

 private:
  static constexpr Duration kRetry = seconds(1);

  void enter(AuditEntry entry);
  void lose(std::uint64_t events);
  // Runs on the thread.
  void drain();
  Outcome write_out(const std::vector<AuditEntry>& batch);
  void say_lost();
  Outcome append(const std::string& lines);
  void retry_later();

  runtime::Loop& loop_;
  Options options_;
  AuditFile file_;                       // the thread's
  bool failing_ = false;                 // the thread's: the failure has been logged
  bool retrying_ = false;                // the thread's
  std::optional<AuditBackups> backups_;  // nullopt: standard output has none

  std::mutex mutex_;
  std::condition_variable room_;
  AuditQueue queue_;            // guarded by mutex_
  std::uint64_t lost_ = 0;      // guarded by mutex_: not yet reported in the log
  bool scheduled_ = false;      // guarded by mutex_: drain() will run
  runtime::LoopThread thread_;  // last: it uses the other members
};

}  // namespace spillway::host
