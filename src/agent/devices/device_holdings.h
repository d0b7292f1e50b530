// Devices held by each container, and their checkpoint, which survives a restart of the agent. Thread: any (plain
// values). Invariant: a device that is held is not handed to another pod. Source: Kubernetes docs, "Device Plugins";
// spec "Pod admission", 5.
#pragma once

#include "agent/contract/device_ports.h"
#include "agent/devices/device_pool.h"
#include "api/json/json.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

/// The devices of one resource that one container holds.
struct Holding {
  enum class State {
    kAwaiting,    // held since before the restart; the plugin has not listed its devices yet
    kPreferring,  // waits for the plugin's preferred devices
    kAllocating,
    kReady,
  };

  DeviceIds ids;
  State state = State::kReady;
  DeviceGrant grant;       // once ready or awaiting
  std::uint64_t call = 0;  // id of the call in flight

  friend bool operator==(const Holding&, const Holding&) = default;
};

/// resource -> holding.
using ContainerHoldings = std::map<std::string, Holding, std::less<>>;
/// container -> its holdings.
using PodHoldings = std::map<std::string, ContainerHoldings, std::less<>>;
/// pod uid -> its holdings.
using Holdings = std::map<std::string, PodHoldings, std::less<>>;

DeviceIds held_by_all(const Holdings& holdings, std::string_view resource);

struct DeviceCheckpoint {
  Holdings holdings;  // ready: allocated by the plugin; awaiting: read back after a restart and not confirmed yet
  std::vector<std::string> resources;

  friend bool operator==(const DeviceCheckpoint&, const DeviceCheckpoint&) = default;
};

/// One JSON document with a checksum over its data. Holdings that are not ready are left out.
std::string to_text(const DeviceCheckpoint& checkpoint);
/// kInvalid: not written by to_text(), or damaged since.
Result<DeviceCheckpoint> parse_device_checkpoint(std::string_view text);

/// JSON for people: uid → container → resource → devices and state.
api::Json state_of(const Holdings& holdings);

/// All devices of a container: of several resources the later name wins, as in upstream.
DeviceGrant merged_grant(const ContainerHoldings& holdings);

}  // namespace spillway::agent
