// Keeps renamed audit logs: deletes the oldest and compresses the others, on a thread of its own. Thread: loop of the
// owner, except where said. Source: Kubernetes docs, "Auditing", log backend.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "runtime/loop_thread.h"
#include "telemetry/log.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

struct AuditBackupLimits {
  int files_max = 0;      // 0: all are kept
  Duration age_max = {};  // 0: for ever
  bool compress = false;
};

/// "audit.log" → "audit-2026-11-22T08-30-00.000.log", in UTC.
std::string audit_backup_name(std::string_view file, WallTime at);

struct AuditBackupPlan {
  std::vector<std::string> remove;
  std::vector<std::string> compress;

  friend bool operator==(const AuditBackupPlan&, const AuditBackupPlan&) = default;
};

/// `file`: "audit.log". `names`: all files of its folder; others than its backups are left alone. Thread: any (pure).
AuditBackupPlan plan_audit_backups(std::string_view file, std::vector<std::string> names,
                                   const AuditBackupLimits& limits, WallTime now);

class AuditBackups {
 public:
  AuditBackups(std::string path, AuditBackupLimits limits, telemetry::Log log);
  /// A file whose compression is interrupted stays uncompressed.
  ~AuditBackups();
  AuditBackups(const AuditBackups&) = delete;
  AuditBackups& operator=(const AuditBackups&) = delete;

  /// Requests a check of the backups. Thread: any.
  void tidy();

 private:
  struct Work;

  std::shared_ptr<Work> work_;
  runtime::LoopThread thread_;
};

}  // namespace spillway::host
