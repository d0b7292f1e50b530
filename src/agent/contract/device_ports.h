// Commands of the agent to device plugins, and their events. The commands are data: host/ carries them over gRPC.
// Thread: loop (plain values). Every AllocateDevices, PreferDevices and PrepareDevices is answered exactly once, with
// an error if the plugin is gone. Source: Kubernetes docs, "Device Plugins", API v1beta1.
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spillway::agent {

struct Device {
  std::string id;
  bool healthy = false;
  std::vector<std::int64_t> numa_nodes;  // empty: unknown

  friend bool operator==(const Device&, const Device&) = default;
};

struct DeviceMount {
  std::string container_path;
  std::string host_path;
  bool read_only = false;

  friend bool operator==(const DeviceMount&, const DeviceMount&) = default;
};

struct DeviceNode {
  std::string container_path;
  std::string host_path;
  std::string permissions;  // a subset of r, w, m

  friend bool operator==(const DeviceNode&, const DeviceNode&) = default;
};

/// The changes to a container that its devices require.
struct DeviceGrant {
  std::map<std::string, std::string, std::less<>> env;
  std::vector<DeviceMount> mounts;
  std::vector<DeviceNode> nodes;
  std::map<std::string, std::string, std::less<>> annotations;
  std::vector<std::string> cdi_devices;  // qualified names, "vendor.com/class=name"

  friend bool operator==(const DeviceGrant&, const DeviceGrant&) = default;
};

struct PluginOptions {
  bool pre_start_required = false;
  bool preferred_allocation_available = false;

  friend bool operator==(const PluginOptions&, const PluginOptions&) = default;
};

/// One registration of a plugin; a plugin that registers again is another one.
using PluginId = std::uint64_t;

// Commands.

struct AllocateDevices {
  std::uint64_t call = 0;
  PluginId plugin = 0;
  std::vector<std::string> ids;
};

struct PreferDevices {
  std::uint64_t call = 0;
  PluginId plugin = 0;
  std::vector<std::string> available;
  std::vector<std::string> must_include;
  std::int32_t size = 0;
};

/// PreStartContainer.
struct PrepareDevices {
  std::uint64_t call = 0;
  PluginId plugin = 0;
  std::vector<std::string> ids;
};

/// Replaces the checkpoint as a whole.
struct SaveDevices {
  std::string text;
};

using DeviceCommand = std::variant<AllocateDevices, PreferDevices, PrepareDevices, SaveDevices>;

// Events.

struct PluginRegistered {
  PluginId plugin = 0;
  std::string resource;
  PluginOptions options;
};

/// All devices of the plugin, as ListAndWatch sent them.
struct PluginListed {
  PluginId plugin = 0;
  std::vector<Device> devices;
};

/// ListAndWatch ended: the plugin has disconnected.
struct PluginGone {
  PluginId plugin = 0;
};

struct DevicesAllocated {
  std::uint64_t call = 0;
  Result<DeviceGrant> grant;
  Duration took{};  // from the question to the answer
};

struct DevicesPreferred {
  std::uint64_t call = 0;
  Result<std::vector<std::string>> ids;
};

struct DevicesPrepared {
  std::uint64_t call = 0;
  Outcome outcome;
};

using DeviceEvent =
    std::variant<PluginRegistered, PluginListed, PluginGone, DevicesAllocated, DevicesPreferred, DevicesPrepared>;

inline constexpr std::string_view kDevicePluginVersion = "v1beta1";
inline constexpr std::size_t kPluginsMax = 64;
inline constexpr std::size_t kDevicesPerPluginMax = 65'536;

}  // namespace spillway::agent
