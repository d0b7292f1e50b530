// The resources that device plugins offer: their devices, the healthy ones among them, and the time since a plugin
// disconnected. Thread: loop. Invariants: a device of a plugin that is away is not healthy; a resource whose plugin
// stays away longer than kPluginGrace counts zero and is unknown again. Bounds: kPluginsMax resources. Source:
// Kubernetes docs, "Device Plugins"; spec "Pod admission", 5; "Node agent", 4.
#pragma once

#include "agent/contract/device_ports.h"
#include "agent/contract/device_resources.h"
#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/time.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

/// A plugin may be disconnected this long before its resource is removed.
inline constexpr Duration kPluginGrace = minutes(5);

using DeviceIds = std::set<std::string, std::less<>>;

/// kInvalid in upstream's words: another version, a name that is no extended resource, an endpoint that is no file
/// name.
Outcome check_registration(std::string_view version, std::string_view resource, std::string_view endpoint);

class DevicePool {
 public:
  struct Resource {
    PluginId plugin = 0;  // 0: restored from before the restart only
    PluginOptions options;
    std::map<std::string, Device, std::less<>> devices;
    std::optional<Instant> away_since;  // absent: the plugin is there
    bool listed = false;                // since the restart

    DeviceIds healthy() const;
  };

  /// Restores the resource from the checkpoint: it counts zero until its plugin registers again.
  void remember(const std::string& resource, Instant now);
  /// kTooManyRequests: more resources than can be.
  Outcome on_registered(const PluginRegistered& event);
  /// The resource, if the plugin is the current one of it.
  std::optional<std::string> on_listed(const PluginListed& event);
  std::optional<std::string> on_gone(PluginId plugin, Instant now);
  /// Gives up what has been away too long; those resources.
  std::vector<std::string> give_up(Instant now);
  std::optional<Instant> next_due() const;

  /// nullptr: no plugin ever offered it.
  const Resource* find(std::string_view resource) const;
  std::vector<std::string> names() const;

  /// State for people and /debug/spillway: no contract.
  api::Json state(Now now) const;

  /// capacity: all devices; allocatable: the healthy ones; removed: what was given up.
  DeviceResources offered() const;

 private:
  std::map<std::string, Resource, std::less<>> resources_;
  std::set<std::string, std::less<>> given_up_;
};

}  // namespace spillway::agent
