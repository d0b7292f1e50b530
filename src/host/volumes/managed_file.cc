#include "host/volumes/managed_file.h"

#include "host/kernel/kernel_file.h"
#include "host/kernel/mount_steps.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {

namespace fs = std::filesystem;

std::string message_file(const std::string& folder) {
  return folder + "/termination message";  // a name that no other file of a container has
}

Result<OpenedMount> open_managed_file(const std::string& folder, const agent::ManagedFile& file,
                                      std::uint32_t first_id) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return errno_error(folder, error.value());
  const std::string path = file.is_message
                               ? message_file(folder)
                               : fmt::format("{}/{}", folder, fs::path(file.container_path).filename().string());
  std::string text = file.content;
  if (!file.machine_file.empty()) {
    SPILLWAY_TRY(machine, read_file(file.machine_file));
    text += machine;
  }
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd) return errno_error(path, errno);
  SPILLWAY_TRY_VOID(write_all(fd.get(), text + file.more, path));
  const mode_t mode = file.is_message ? 0666 : 0644;
  if (::fchown(fd.get(), first_id, first_id) != 0 || ::fchmod(fd.get(), mode) != 0) return errno_error(path, errno);
  SPILLWAY_TRY(tree, open_detached(path));
  return OpenedMount{std::move(tree), false, file.container_path};
}

}  // namespace spillway::host
