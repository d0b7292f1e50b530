#include "apps/server/audit_part.h"

#include "apiserver/audit/policy_file.h"
#include "runtime/clock.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace spillway::apps {
namespace {

constexpr std::int64_t kMegabyte = std::int64_t{1} << 20U;
constexpr std::int64_t kDefaultMegabytes = 100;
constexpr std::string_view kStrict = "blocking-strict";

Error of_flag(std::string_view flag, const Error& error) {
  return invalid(flag, "{}", error.text());
}

host::AuditWriter::Options writer_options(Process& process, const cli::AuditArgs& args) {
  host::AuditWriter::Options options;
  options.blocks = args.mode != "batch";
  options.syncs = args.mode == kStrict;
  if (args.truncates) {
    options.write_bytes_max = std::min(options.write_bytes_max, static_cast<std::size_t>(args.truncated_batch_bytes));
  }
  options.backups = {
      .files_max = args.max_backups, .age_max = std::chrono::days(args.max_age_days), .compress = args.compress};
  options.loss_line = apiserver::audit_loss_line;
  options.log = process.log();
  options.lost = process.metrics().counter(apiserver::kAuditErrors, apiserver::kAuditErrorsHelp, {{"plugin", "log"}});
  return options;
}

apiserver::Auditor::Wait wait_of(const std::string& mode) {
  if (mode == "batch") return apiserver::Auditor::Wait::kNever;
  return mode == kStrict ? apiserver::Auditor::Wait::kKept : apiserver::Auditor::Wait::kWritten;
}

}  // namespace

Result<std::unique_ptr<AuditPart>> AuditPart::open(Process& process, const cli::AuditArgs& args) {
  apiserver::AuditPolicy policy = apiserver::default_audit_policy();
  if (!args.policy_file.empty()) {
    auto read = apiserver::read_audit_policy(args.policy_file);
    if (!read) return of_flag("--audit-policy-file", read.error());
    policy = *std::move(read);
  }
  if (args.truncates && args.truncated_event_bytes > args.truncated_batch_bytes) {
    return invalid("--audit-log-truncate-max-event-size", "must not exceed --audit-log-truncate-max-batch-size");
  }
  if (args.log_path.empty()) {
    if (!args.policy_file.empty()) {
      process.log().warning("no audit log is kept: there is a policy, but no path",
                            {{"flag", "--audit-log-path"}, {"policy", args.policy_file}});
    }
    return std::unique_ptr<AuditPart>();
  }
  const std::int64_t megabytes = args.max_size_mb == 0 ? kDefaultMegabytes : args.max_size_mb;
  auto file = host::AuditFile::open({.path = args.log_path, .bytes_max = megabytes * kMegabyte});
  if (!file) return of_flag("--audit-log-path", file.error());
  return std::unique_ptr<AuditPart>(
      new AuditPart(process, args, std::move(policy), *std::move(file)));  // NOLINT: private constructor
}

AuditPart::AuditPart(Process& process, const cli::AuditArgs& args, apiserver::AuditPolicy policy, host::AuditFile file)
    : writer_(process.loop(), std::move(file), writer_options(process, args)),
      auditor_({.policy = std::move(policy),
                .log = &writer_,
                .clock = [] { return runtime::RealClock::read().wall; },
                .wait = wait_of(args.mode),
                .event_bytes_max = args.truncates ? static_cast<std::size_t>(args.truncated_event_bytes)
                                                  : apiserver::Auditor::kEventBytesMax,
                .metrics = &process.metrics()}) {}

}  // namespace spillway::apps
