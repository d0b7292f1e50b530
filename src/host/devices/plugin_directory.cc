#include "host/devices/plugin_directory.h"

#include "base/file.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<PluginDirectory> PluginDirectory::open(const std::string& path, std::string_view socket) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (error) return errno_error(path, error.value());
  PluginDirectory directory(absolute.string());
  const std::string socket_path = directory.path_of(socket);
  if (socket_path.size() >= sizeof(sockaddr_un::sun_path)) {
    return invalid(socket_path, "device plugins cannot connect there: the path of a socket has at most {} bytes",
                   sizeof(sockaddr_un::sun_path) - 1);
  }
  fs::create_directories(absolute, error);
  if (error) return errno_error(directory.path_, error.value());
  if (::chmod(directory.path_.c_str(), 0750) != 0) return errno_error(directory.path_, errno);
  for (const fs::directory_entry& entry : fs::directory_iterator(absolute, error)) {
    if (entry.is_socket(error)) fs::remove(entry.path(), error);
  }
  return directory;
}

std::string PluginDirectory::path_of(std::string_view name) const {
  return (fs::path(path_) / name).string();
}

void PluginDirectory::remove_socket(std::string_view name) const {
  ::unlink(path_of(name).c_str());
}

std::optional<std::string> PluginDirectory::checkpoint() const {
  auto text = read_file(path_of(kCheckpointName));
  if (!text) return std::nullopt;
  return std::move(*text);
}

}  // namespace spillway::host
