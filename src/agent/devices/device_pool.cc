#include "agent/devices/device_pool.h"

#include "api/text/resource_names.h"

#include <algorithm>
#include <chrono>

namespace spillway::agent {

Outcome check_registration(std::string_view version, std::string_view resource, std::string_view endpoint) {
  if (version != kDevicePluginVersion) {
    return invalid({}, "requested API version \"{}\" is not supported by kubelet. Supported version is \"{}\"", version,
                   kDevicePluginVersion);
  }
  if (!api::is_extended_resource(resource)) return invalid({}, "the ResourceName \"{}\" is invalid", resource);
  if (endpoint.empty() || endpoint == "." || endpoint == ".." || endpoint.contains('/') || endpoint.contains('\0')) {
    return invalid({}, "the Endpoint \"{}\" is invalid: expected the name of a socket in the directory of kubelet.sock",
                   endpoint);
  }
  return {};
}

DeviceIds DevicePool::Resource::healthy() const {
  DeviceIds ids;
  for (const auto& [id, device] : devices) {
    if (device.healthy) ids.insert(id);
  }
  return ids;
}

void DevicePool::remember(const std::string& resource, Instant now) {
  if (resources_.size() < kPluginsMax) resources_[resource].away_since = now;
}

Outcome DevicePool::on_registered(const PluginRegistered& event) {
  if (!resources_.contains(event.resource) && resources_.size() >= kPluginsMax) {
    return make_error(ErrorCode::kTooManyRequests, "{} device plugins are registered already", kPluginsMax);
  }
  Resource& resource = resources_[event.resource];
  resource.plugin = event.plugin;
  resource.options = event.options;
  resource.away_since.reset();
  given_up_.erase(event.resource);
  return {};
}

std::optional<std::string> DevicePool::on_listed(const PluginListed& event) {
  for (auto& [name, resource] : resources_) {
    if (resource.plugin != event.plugin) continue;
    resource.devices.clear();
    for (const Device& device : event.devices) resource.devices.insert_or_assign(device.id, device);
    resource.away_since.reset();
    resource.listed = true;
    return name;
  }
  return std::nullopt;
}

std::optional<std::string> DevicePool::on_gone(PluginId plugin, Instant now) {
  for (auto& [name, resource] : resources_) {
    if (resource.plugin != plugin) continue;
    for (auto& [id, device] : resource.devices) device.healthy = false;
    if (!resource.away_since) resource.away_since = now;
    return name;
  }
  return std::nullopt;
}

std::vector<std::string> DevicePool::give_up(Instant now) {
  std::vector<std::string> names;
  for (auto it = resources_.begin(); it != resources_.end();) {
    if (it->second.away_since && now - *it->second.away_since >= kPluginGrace) {
      names.push_back(it->first);
      given_up_.insert(it->first);
      it = resources_.erase(it);
    } else {
      ++it;
    }
  }
  while (given_up_.size() > kPluginsMax) given_up_.erase(given_up_.begin());
  return names;
}

std::optional<Instant> DevicePool::next_due() const {
  std::optional<Instant> due;
  for (const auto& [name, resource] : resources_) {
    if (resource.away_since) due = std::min(*resource.away_since + kPluginGrace, due.value_or(Instant::max()));
  }
  return due;
}

const DevicePool::Resource* DevicePool::find(std::string_view resource) const {
  const auto it = resources_.find(resource);
  return it == resources_.end() ? nullptr : &it->second;
}

std::vector<std::string> DevicePool::names() const {
  std::vector<std::string> all;
  for (const auto& [name, resource] : resources_) all.push_back(name);
  return all;
}

api::Json DevicePool::state(Now now) const {
  api::Json state = api::Json::object();
  for (const auto& [name, resource] : resources_) {
    const std::optional<Instant> away = resource.away_since;
    state[name] = api::Json::object(
        {{"awaySeconds", away ? api::Json(std::chrono::duration<double>(now.mono - *away).count()) : api::Json()},
         {"devices", static_cast<std::uint64_t>(resource.devices.size())},
         {"healthy", static_cast<std::uint64_t>(resource.healthy().size())},
         {"listed", resource.listed}});
  }
  return state;
}

DeviceResources DevicePool::offered() const {
  DeviceResources all;
  all.removed.assign(given_up_.begin(), given_up_.end());
  for (const auto& [name, resource] : resources_) {
    all.capacity.insert_or_assign(name, api::Quantity::of_units(static_cast<std::int64_t>(resource.devices.size())));
    all.allocatable.insert_or_assign(name,
                                     api::Quantity::of_units(static_cast<std::int64_t>(resource.healthy().size())));
  }
  return all;
}

}  // namespace spillway::agent
