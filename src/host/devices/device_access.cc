#include "host/devices/device_access.h"

#include "host/kernel/kernel_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <string>

namespace spillway::host {
namespace {

Outcome check_path(std::string_view what, const std::string& container_path, const std::string& host_path) {
  if (container_path != host_path) {
    return invalid(host_path, "the {} is to appear as {}, but a container of the process runtime sees the host's paths",
                   what, container_path);
  }
  struct stat status{};
  if (::stat(host_path.c_str(), &status) != 0) return errno_error(host_path, errno);
  return {};
}

}  // namespace

Outcome check_device_access(const agent::DeviceGrant& grant, DeviceView view) {
  if (!grant.cdi_devices.empty()) {
    return invalid(grant.cdi_devices.front(), "the process runtime does not know CDI devices");
  }
  if (view == DeviceView::kOwn) return {};
  for (const agent::DeviceNode& node : grant.nodes) {
    SPILLWAY_TRY_VOID(check_path("device", node.container_path, node.host_path));
  }
  for (const agent::DeviceMount& mount : grant.mounts) {
    SPILLWAY_TRY_VOID(check_path("mount", mount.container_path, mount.host_path));
  }
  return {};
}

}  // namespace spillway::host
