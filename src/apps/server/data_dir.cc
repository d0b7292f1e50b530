#include "apps/server/data_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace spillway::apps {

std::string resolve_data_dir(const std::string& given) {
  if (!given.empty()) return std::filesystem::absolute(given).lexically_normal().string();
  if (geteuid() == 0) return "/var/lib/spillway";
  const char* home = std::getenv("HOME");
  return (std::filesystem::path(home != nullptr ? home : ".") / ".local/share/spillway").string();
}

Outcome make_data_dir(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  struct stat found{};
  const bool made = !error && (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) && stat(path.c_str(), &found) == 0 &&
                    access(path.c_str(), W_OK) == 0;
  if (!made && !error) error = std::error_code(errno, std::generic_category());
  if (made && !S_ISDIR(found.st_mode)) error = std::make_error_code(std::errc::not_a_directory);
  if (error)
    return Error{ErrorCode::kForbidden, fmt::format("data directory cannot be written: {}", error.message()), path};
  if (found.st_uid != geteuid() && found.st_uid != 0) {
    return Error{ErrorCode::kForbidden, fmt::format("data directory belongs to user {}", found.st_uid), path};
  }
  if ((found.st_mode & S_IWOTH) != 0) {
    return Error{ErrorCode::kForbidden, "data directory may be written by all users; expected mode 0700", path};
  }
  return {};
}

std::string store_file(const std::string& data_dir) {
  return data_dir + "/spillway.db";
}

}  // namespace spillway::apps
