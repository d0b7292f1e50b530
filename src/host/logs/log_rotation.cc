#include "host/logs/log_rotation.h"

#include "host/kernel/kernel_file.h"
#include "host/logs/gzip_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kCompressedMode = 0640;

std::string with_end(const std::string& name, std::string_view end) {
  return fmt::format("{}{}", name, end);
}

Result<std::vector<std::string>> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error))
    names.push_back(each->path().filename().string());
  if (error) return errno_error(folder.string(), error.value());
  return names;
}

}  // namespace

RotationPlan plan_rotation(std::string_view log, std::vector<std::string> names, int files_max) {
  RotationPlan plan;
  std::vector<std::string> parts;
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (name.size() <= log.size() + 1 || !name.starts_with(log) || name[log.size()] != '.') continue;
    const bool doubled = std::ranges::binary_search(names, with_end(name, kGzipEnd));
    (name.ends_with(kUnfinishedEnd) || doubled ? plan.remove : parts).push_back(name);
  }
  const std::size_t kept = static_cast<std::size_t>(std::max(files_max - 2, 0));
  const std::size_t dropped = parts.size() - std::min(parts.size(), kept);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i < dropped) {
      plan.remove.push_back(parts[i]);
    } else if (!parts[i].ends_with(kGzipEnd)) {
      plan.compress.push_back(parts[i]);
    }
  }
  return plan;
}

std::string rotated_name(std::string_view log, WallTime at) {
  const auto day = std::chrono::floor<std::chrono::days>(at.time_since_epoch());
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::duration_cast<std::chrono::days>(day)}};
  const std::chrono::hh_mm_ss clock{at.time_since_epoch() - day};
  return fmt::format("{}.{:04}{:02}{:02}-{:02}{:02}{:02}", log, static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

Result<LogTurn> turn_log(const std::string& path, const LogLimits& limits, WallTime now) {
  struct stat seen = {};
  if (::lstat(path.c_str(), &seen) != 0) {
    if (errno == ENOENT) return LogTurn{.what = LogTurn::What::kMissing, .older = {}};
    return errno_error(path, errno);
  }
  if (seen.st_size < limits.file_max.count()) return LogTurn{};
  const fs::path file(path);
  SPILLWAY_TRY(names, names_in(file.parent_path()));
  const RotationPlan plan = plan_rotation(file.filename().string(), std::move(names), limits.files_max);
  for (const std::string& each : plan.remove) {
    const std::string gone = (file.parent_path() / each).string();
    if (::unlink(gone.c_str()) != 0 && errno != ENOENT) return errno_error(gone, errno);
  }
  for (const std::string& each : plan.compress) {
    SPILLWAY_TRY_VOID(gzip_file((file.parent_path() / each).string(), kCompressedMode));
  }
  std::string older = (file.parent_path() / rotated_name(file.filename().string(), now)).string();
  if (::rename(path.c_str(), older.c_str()) != 0) return errno_error(path, errno);
  return LogTurn{.what = LogTurn::What::kRenamed, .older = std::move(older)};
}

Outcome turn_back(const std::string& path, const std::string& older) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error))) return {};
  if (::rename(older.c_str(), path.c_str()) != 0) return errno_error(older, errno);
  return {};
}

}  // namespace spillway::host
