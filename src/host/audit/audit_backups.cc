#include "host/audit/audit_backups.h"

#include "api/text/time_text.h"
#include "base/file.h"
#include "host/logs/gzip_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kBackupMode = 0600;

/// "audit.log" as "audit-" and ".log".
struct NameParts {
  std::string begin;
  std::string end;
};

NameParts parts_of(std::string_view file) {
  const fs::path path(file);
  return {path.stem().string() + "-", path.extension().string()};
}

std::string time_text(WallTime at) {
  std::string text = api::format_micro_time(std::chrono::floor<milliseconds>(at));  // 2026-11-22T08:30:00.000000Z
  std::ranges::replace(text, ':', '-');
  return text.substr(0, text.size() - 4);
}

/// The time at which a file of this name was renamed; nullopt: it is no backup. The name may end with `also`.
std::optional<WallTime> time_of(std::string_view name, const NameParts& parts, std::string_view also) {
  if (!name.ends_with(also)) return std::nullopt;
  name.remove_suffix(also.size());
  if (!name.starts_with(parts.begin) || !name.ends_with(parts.end)) return std::nullopt;
  if (name.size() < parts.begin.size() + parts.end.size()) return std::nullopt;
  std::string text(name.substr(parts.begin.size(), name.size() - parts.begin.size() - parts.end.size()));
  const std::size_t clock = text.find('T');
  if (clock == std::string::npos) return std::nullopt;
  std::replace(text.begin() + static_cast<std::ptrdiff_t>(clock), text.end(), '-', ':');
  const Result<WallTime> time = api::parse_time(text + "Z");
  return time && time_text(*time) == name.substr(parts.begin.size(), text.size()) ? std::optional(*time) : std::nullopt;
}

}  // namespace

std::string audit_backup_name(std::string_view file, WallTime at) {
  const NameParts parts = parts_of(file);
  return parts.begin + time_text(at) + parts.end;
}

AuditBackupPlan plan_audit_backups(std::string_view file, std::vector<std::string> names,
                                   const AuditBackupLimits& limits, WallTime now) {
  AuditBackupPlan plan;
  const NameParts parts = parts_of(file);
  std::ranges::sort(names, std::greater());  // the newest first; "X.log.gz" before "X.log"
  int kept = 0;
  std::string packed;  // name of the last compressed file
  for (std::string& name : names) {
    if (time_of(name, parts, kUnfinishedEnd)) {
      plan.remove.push_back(std::move(name));
      continue;
    }
    const auto packed_at = time_of(name, parts, kGzipEnd);
    const auto plain_at = packed_at ? std::nullopt : time_of(name, parts, {});
    if (!packed_at && !plain_at) continue;
    const bool doubled = plain_at && packed == fmt::format("{}{}", name, kGzipEnd);
    const bool old = limits.age_max > Duration::zero() && now - *(packed_at ? packed_at : plain_at) > limits.age_max;
    const bool too_many = limits.files_max > 0 && kept >= limits.files_max;
    if (packed_at) packed = name;
    if (doubled || old || too_many) {
      plan.remove.push_back(std::move(name));
      continue;
    }
    ++kept;
    if (plain_at && limits.compress) plan.compress.push_back(std::move(name));
  }
  return plan;
}

struct AuditBackups::Work {
  std::string path;
  AuditBackupLimits limits;
  telemetry::Log log;
  std::atomic<bool> stopping = false;

  void run(WallTime now) {
    const fs::path folder = fs::path(path).parent_path();
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator each(folder.empty() ? "." : folder, error), end; !error && each != end;
         each.increment(error)) {
      names.push_back(each->path().filename().string());
    }
    if (error) return complain(errno_error(folder.string(), error.value()));
    const AuditBackupPlan plan = plan_audit_backups(fs::path(path).filename().string(), std::move(names), limits, now);
    for (const std::string& name : plan.remove) {
      const std::string gone = (folder / name).string();
      if (::unlink(gone.c_str()) != 0 && errno != ENOENT) complain(errno_error(gone, errno));
    }
    for (const std::string& name : plan.compress) {
      const Outcome packed = gzip_file((folder / name).string(), kBackupMode, [this] { return !stopping; });
      if (!packed) complain(packed.error());
    }
  }

  void complain(const Error& error) {
    log.warning("old audit logs cannot be minded", {{"path", path}, {"err", error.text()}});
  }
};

AuditBackups::AuditBackups(std::string path, AuditBackupLimits limits, telemetry::Log log)
    : work_(std::make_shared<Work>(std::move(path), limits, std::move(log))), thread_("audit-backups") {}

AuditBackups::~AuditBackups() {
  work_->stopping = true;
}

void AuditBackups::tidy() {
  runtime::Loop& loop = thread_.loop();
  loop.post([work = work_, &loop] {
    if (!work->stopping) work->run(loop.now().wall);
  });
}

}  // namespace spillway::host
