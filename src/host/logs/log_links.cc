#include "host/logs/log_links.h"

#include "base/file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

void remove_log_link(const fs::path& link) {
  std::error_code error;
  if (fs::is_symlink(link, error)) fs::remove(link, error);
}

}  // namespace

Outcome make_log_link(const std::string& folder, const std::string& name, const std::string& log) {
  SPILLWAY_TRY_VOID(make_directories(folder));
  const fs::path link = fs::path(folder) / name;
  std::error_code error;
  remove_log_link(link);
  fs::create_symlink(log, link, error);
  if (error == std::errc::file_exists) return make_error(ErrorCode::kConflict, "{} is no link", link.string());
  return error ? Outcome(errno_error(link.string(), error.value())) : Outcome();
}

void remove_log_links(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) remove_log_link(fs::path(folder) / name);
}

void remove_dangling_log_links(const std::string& folder, std::string_view logs_directory,
                               const std::function<bool(const std::string& name)>& is_kept) {
  std::vector<fs::path> dangling;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    std::error_code unreadable;
    const std::string log = fs::read_symlink(each->path(), unreadable).string();
    if (unreadable || !log.starts_with(fmt::format("{}/", logs_directory))) continue;
    if (!fs::exists(log, unreadable) && !is_kept(each->path().filename().string())) dangling.push_back(each->path());
  }
  for (const fs::path& link : dangling) remove_log_link(link);
}

}  // namespace spillway::host
