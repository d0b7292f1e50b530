#include "agent/cri/runtime_driver.h"

namespace spillway::agent {
namespace {

using cgroups::CgroupDriver;

// The enumeration CgroupDriver of the CRI.
constexpr std::int64_t kSystemd = 0;
constexpr std::int64_t kCgroupfs = 1;

}  // namespace

std::optional<CgroupDriver> driver_in_config(const api::Json& answer) {
  const api::Json* linux_part = answer.find("linux");
  if (linux_part == nullptr) return std::nullopt;
  const api::Json* driver = linux_part->find("cgroup_driver");
  const std::int64_t number = driver == nullptr ? kSystemd : driver->if_int64().value_or(-1);
  if (number == kSystemd) return CgroupDriver::kSystemd;
  return number == kCgroupfs ? std::optional(CgroupDriver::kCgroupfs) : std::nullopt;
}

std::optional<CgroupDriver> driver_in_status(std::string_view config) {
  const auto document = api::parse_json(config);
  const api::Json* containerd = document ? document->find("containerd") : nullptr;
  if (containerd == nullptr) return std::nullopt;
  const std::string_view name = containerd->string_at({"defaultRuntimeName"});
  const api::Json* runtime = containerd->at({"runtimes", name});
  if (runtime == nullptr) return std::nullopt;
  const api::Json* systemd = runtime->at({"options", "SystemdCgroup"});
  const bool is_systemd = systemd != nullptr && systemd->if_bool().value_or(false);
  return is_systemd ? CgroupDriver::kSystemd : CgroupDriver::kCgroupfs;
}

}  // namespace spillway::agent
