// The audit log of an API server: policy, auditor and the file it writes.
// Thread: loop.
#pragma once

#include "apiserver/audit/auditor.h"
#include "apps/process/process.h"
#include "base/error.h"
#include "cli/flags/command_line.h"
#include "host/audit/audit_writer.h"

#include <memory>

namespace spillway::apps {

class AuditPart {
 public:
  /// Null: no audit log is configured. kInvalid: the policy or a flag is wrong, or the file cannot be opened; the error
  /// names flag and file.
  static Result<std::unique_ptr<AuditPart>> open(Process& process, const cli::AuditArgs& args);

  /// The log; it lives as long as the part.
  const apiserver::Auditor& auditor() const { return auditor_; }

 private:
  AuditPart(Process& process, const cli::AuditArgs& args, apiserver::AuditPolicy policy, host::AuditFile file);

  host::AuditWriter writer_;
  apiserver::Auditor auditor_;
};

}  // namespace spillway::apps
