#include "host/logs/logged_attempts.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigitsMax = 9;  // a number that fits with room to count on

/// The number of the next attempt after those with logs in the folder; 0: it has no log.
std::int32_t attempt_after(const fs::path& folder) {
  std::int32_t next = 0;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    std::error_code unknown;
    if (each->is_directory(unknown)) continue;
    if (const auto attempt = logged_attempt(each->path().filename().string())) next = std::max(next, *attempt + 1);
  }
  return next;
}

}  // namespace

std::optional<std::int32_t> logged_attempt(std::string_view file) {
  const std::size_t digits = std::min(file.find_first_not_of("0123456789"), file.size());
  if (digits == 0 || digits > kDigitsMax || !file.substr(digits).starts_with(".log")) return std::nullopt;
  std::int32_t attempt = 0;
  std::from_chars(file.data(), file.data() + digits, attempt);
  return attempt;
}

std::map<std::string, std::int32_t> attempts_after_logs(const std::string& pod_directory) {
  std::map<std::string, std::int32_t> found;
  std::error_code error;
  for (fs::directory_iterator each(pod_directory, error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().string();
    std::error_code unknown;
    if (name.starts_with('_') || !each->is_directory(unknown) || each->is_symlink(unknown)) continue;
    if (const std::int32_t next = attempt_after(each->path()); next > 0) found.emplace(name, next);
  }
  return found;
}

}  // namespace spillway::host
