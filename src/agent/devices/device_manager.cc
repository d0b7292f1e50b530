#include "agent/devices/device_manager.h"

#include "policy/admission/init_containers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

namespace spillway::agent {
namespace {

using admission::AllocationFailure;
using admission::NumaSet;
using admission::ResourceHints;
using admission::TopologyHint;

AllocationFailure because(std::string message) {
  return {std::nullopt, std::move(message)};
}

NumaSet nodes_of(const Device& device) {
  NumaSet nodes = 0;
  for (const std::int64_t node : device.numa_nodes) {
    if (node >= 0 && node < 64) nodes |= NumaSet{1} << node;
  }
  return nodes;
}

std::vector<std::string> listed(const DeviceIds& ids) {
  return {ids.begin(), ids.end()};
}

/// `count` of the ids, those near the wanted NUMA nodes first, else in the order of their names.
DeviceIds choose(const DeviceIds& from, std::int64_t count, const DevicePool::Resource& resource,
                 const TopologyHint& hint) {
  DeviceIds chosen;
  for (const bool near : {true, false}) {
    for (const std::string& id : from) {
      if (std::cmp_greater_equal(chosen.size(), count)) return chosen;
      const auto device = resource.devices.find(id);
      const bool is_near =
          !hint.nodes || (device != resource.devices.end() && (nodes_of(device->second) & *hint.nodes) != 0);
      if (is_near == near) chosen.insert(id);
    }
  }
  return chosen;
}

}  // namespace

DeviceManager::DeviceManager(AgentContext& context, const std::optional<std::string>& checkpoint,
                             telemetry::Registry* metrics)
    : context_(context), metrics_(metrics) {
  if (!checkpoint) return;
  auto parsed = parse_device_checkpoint(*checkpoint);
  if (!parsed) {
    context_.log.error("devices allocated before the restart are unknown", {{"error", parsed.error().text()}});
    return;
  }
  holdings_ = std::move(parsed->holdings);
  remembered_ = std::move(parsed->resources);
}

void DeviceManager::start(Now now) {
  for (const std::string& resource : remembered_) pool_.remember(resource, now.mono);
  arm(now);
}

api::Json DeviceManager::state(Now now) const {
  std::uint64_t waiting = 0;
  for (const auto& [uid, waiters] : waiters_) waiting += waiters.size();
  return api::Json::object(
      {{"containersWaiting", waiting}, {"held", state_of(holdings_)}, {"resources", pool_.state(now)}});
}

std::vector<DeviceCommand> DeviceManager::take_commands() {
  return std::exchange(commands_, {});
}

void DeviceManager::on_event(const DeviceEvent& event, Now now) {
  struct Visitor {
    DeviceManager& manager;
    Now now;

    void operator()(const PluginRegistered& e) const {
      if (const Outcome taken = manager.pool_.on_registered(e); !taken) {
        manager.context_.log.warning("device plugin rejected", {{"error", taken.error().text()}});
        return;
      }
      manager.context_.log.info("device plugin registered", {{"resource", e.resource}});
      if (manager.metrics_ != nullptr) {
        manager.metrics_
            ->counter("kubelet_device_plugin_registration_total",
                      "Cumulative number of device plugin registrations. Broken down by resource name.",
                      {{"resource_name", e.resource}})
            .add();
      }
      manager.save();
      manager.arm(now);
    }

    void operator()(const PluginListed& e) const { manager.on_listed(e, now); }

    void operator()(const PluginGone& e) const {
      const auto resource = manager.pool_.on_gone(e.plugin, now.mono);
      if (!resource) return;
      manager.context_.log.warning("device plugin disconnected", {{"resource", *resource}});
      if (manager.on_changed_) manager.on_changed_(now);
      manager.arm(now);
    }

    void operator()(const DevicesAllocated& e) const { manager.on_allocated(e, now); }

    void operator()(const DevicesPreferred& e) const { manager.on_preferred(e, now); }

    void operator()(const DevicesPrepared& e) const { manager.on_prepared(e, now); }
  };

  std::visit(Visitor{*this, now}, event);
}

void DeviceManager::arm(Now) {
  if (timer_) context_.api.cancel(*std::exchange(timer_, std::nullopt));
  const auto due = pool_.next_due();
  if (!due) return;
  timer_ = context_.api.at(*due, [this](Now later) {
    timer_.reset();
    give_up(later);
  });
}

void DeviceManager::give_up(Now now) {
  const std::vector<std::string> resources = pool_.give_up(now.mono);
  for (const std::string& resource : resources) {
    context_.log.warning("device plugin did not register again, its resource is removed", {{"resource", resource}});
    std::vector<std::string> uids;
    for (const auto& [uid, pod] : holdings_) {
      const bool awaits = std::ranges::any_of(pod, [&](const auto& container) {
        const auto held = container.second.find(resource);
        return held != container.second.end() && held->second.state == Holding::State::kAwaiting;
      });
      if (awaits && waiters_.contains(uid)) uids.push_back(uid);
    }
    for (const std::string& uid : uids) {
      fail(uid, fmt::format("no healthy devices present; cannot allocate unhealthy devices {}", resource), now);
    }
  }
  if (!resources.empty()) {
    save();
    if (on_changed_) on_changed_(now);
  }
  arm(now);
}

void DeviceManager::save() {
  std::erase_if(commands_, [](const DeviceCommand& each) { return std::holds_alternative<SaveDevices>(each); });
  commands_.emplace_back(SaveDevices{to_text({.holdings = holdings_, .resources = pool_.names()})});
}

void DeviceManager::on_listed(const PluginListed& event, Now now) {
  const auto resource = pool_.on_listed(event);
  if (!resource) return;
  if (on_changed_) on_changed_(now);
  resume(*resource, now);
  arm(now);
}

/// The plugin has registered again after a restart: healthy devices return to the containers that held them.
void DeviceManager::resume(const std::string& resource, Now now) {
  const DeviceIds healthy = pool_.find(resource)->healthy();
  std::vector<std::string> ready;
  std::vector<std::string> unhealthy;
  for (auto& [uid, pod] : holdings_) {
    for (auto& [container, resources] : pod) {
      const auto held = resources.find(resource);
      if (held == resources.end() || held->second.state != Holding::State::kAwaiting) continue;
      if (std::ranges::includes(healthy, held->second.ids)) {
        held->second.state = Holding::State::kReady;
        ready.push_back(uid);
      } else if (waiters_.contains(uid)) {
        unhealthy.push_back(uid);
      }
    }
  }
  for (const std::string& uid : unhealthy) {
    fail(uid,
         fmt::format("previously allocated devices are no longer healthy; cannot allocate unhealthy devices {}",
                     resource),
         now);
  }
  for (const std::string& uid : ready) serve_waiters(uid, now);
}

std::optional<ResourceHints> DeviceManager::container_hints(const api::Pod& pod, const api::Container& container) {
  ResourceHints hints;
  for (const auto& [name, limit] : container.resources.limits) {
    const DevicePool::Resource* resource = pool_.find(name);
    if (resource == nullptr || limit.value() <= 0) continue;
    NumaSet known = 0;
    for (const auto& [id, device] : resource->devices) known |= nodes_of(device);
    // devices without known NUMA nodes give no hints
    if (known == 0 || std::popcount(known) > admission::kNumaNodesMax) continue;
    const DeviceIds held = held_by_all(holdings_, name);
    const DeviceIds reuse = reusable(pod, container, name);
    auto& list = hints[name].emplace();
    int narrowest = 65;
    for (NumaSet nodes = known; nodes != 0; nodes = (nodes - 1) & known) {
      std::int64_t total = 0;
      std::int64_t free = 0;
      for (const auto& [id, device] : resource->devices) {
        if ((nodes_of(device) & nodes) == 0) continue;
        ++total;
        if (device.healthy && (!held.contains(id) || reuse.contains(id))) ++free;
      }
      if (total >= limit.value()) narrowest = std::min(narrowest, std::popcount(nodes));
      if (free >= limit.value()) list.push_back({nodes, false});
    }
    std::ranges::sort(list, {}, [](const TopologyHint& hint) { return *hint.nodes; });
    for (TopologyHint& hint : list) hint.preferred = std::popcount(*hint.nodes) == narrowest;
  }
  if (hints.empty()) return std::nullopt;
  return hints;
}

std::optional<ResourceHints> DeviceManager::pod_hints(const api::Pod& pod) {
  api::Container all;
  for (const api::Container& container : pod.spec.containers) {
    for (const auto& [name, limit] : container.resources.limits) all.resources.limits[name] += limit;
  }
  for (const api::Container& container : pod.spec.init_containers) {
    for (const auto& [name, limit] : container.resources.limits) {
      if (all.resources.limits[name] < limit) all.resources.limits[name] = limit;
    }
  }
  return container_hints(pod, all);
}

std::optional<AllocationFailure> DeviceManager::allocate(const api::Pod& pod, const api::Container& container,
                                                         const TopologyHint& hint) {
  for (const auto& [resource, limit] : container.resources.limits) {
    if (limit.value() <= 0) continue;
    const auto of_pod = holdings_.find(pod.metadata.uid);
    const bool held = of_pod != holdings_.end() && of_pod->second.contains(container.name) &&
                      of_pod->second.at(container.name).contains(resource);
    if (!held && pool_.find(resource) == nullptr) continue;  // not a device
    if (const auto failure = take(pod, container, resource, limit.value(), hint)) return failure;
  }
  return std::nullopt;
}

std::optional<std::string> DeviceManager::check_held(const Holding& held, const std::string& uid,
                                                     std::string_view container, const std::string& resource,
                                                     std::int64_t count) const {
  if (!std::cmp_equal(held.ids.size(), count)) {
    return fmt::format("pod \"{}\" container \"{}\" changed request for resource \"{}\" from {} to {}", uid, container,
                       resource, held.ids.size(), count);
  }
  const DevicePool::Resource* known = pool_.find(resource);
  if (known == nullptr) return fmt::format("cannot allocate unregistered device {}", resource);
  if (held.state == Holding::State::kAwaiting && !known->listed) return std::nullopt;  // the plugin may register again
  const DeviceIds healthy = known->healthy();
  if (healthy.empty()) {
    return fmt::format("no healthy devices present; cannot allocate unhealthy devices {}", resource);
  }
  if (!std::ranges::includes(healthy, held.ids)) {
    return fmt::format("previously allocated devices are no longer healthy; cannot allocate unhealthy devices {}",
                       resource);
  }
  return std::nullopt;
}

DeviceIds DeviceManager::reusable(const api::Pod& pod, const api::Container& container,
                                  std::string_view resource) const {
  DeviceIds offered;
  const auto of_pod = holdings_.find(pod.metadata.uid);
  if (of_pod == holdings_.end()) return offered;
  DeviceIds kept;
  for (const auto& [name, resources] : of_pod->second) {
    const auto held = resources.find(resource);
    if (held == resources.end() || name == container.name) continue;
    DeviceIds& into = admission::is_plain_init(pod, name) ? offered : kept;
    into.insert(held->second.ids.begin(), held->second.ids.end());
  }
  for (const std::string& id : kept) offered.erase(id);
  return offered;
}

std::optional<AllocationFailure> DeviceManager::take(const api::Pod& pod, const api::Container& container,
                                                     const std::string& resource, std::int64_t count,
                                                     const TopologyHint& hint) {
  const std::string& uid = pod.metadata.uid;
  if (const auto of_pod = holdings_.find(uid); of_pod != holdings_.end()) {
    const auto of_container = of_pod->second.find(container.name);
    if (of_container != of_pod->second.end()) {
      if (const auto held = of_container->second.find(resource); held != of_container->second.end()) {
        if (auto wrong = check_held(held->second, uid, container.name, resource, count)) {
          return because(std::move(*wrong));
        }
        const DevicePool::Resource* known = pool_.find(resource);
        if (held->second.state == Holding::State::kAwaiting && known->listed) {
          held->second.state = Holding::State::kReady;
        }
        return std::nullopt;
      }
    }
  }
  const DevicePool::Resource& known = *pool_.find(resource);
  const DeviceIds healthy = known.healthy();
  if (healthy.empty()) {
    return because(fmt::format("no healthy devices present; cannot allocate unhealthy devices {}", resource));
  }
  DeviceIds again;
  std::ranges::set_intersection(reusable(pod, container, resource), healthy, std::inserter(again, again.end()));
  Holding holding;
  holding.ids = choose(again, count, known, hint);
  const std::int64_t needed = count - static_cast<std::int64_t>(holding.ids.size());
  DeviceIds free;
  std::ranges::set_difference(healthy, held_by_all(holdings_, resource), std::inserter(free, free.end()));
  if (std::cmp_less(free.size(), needed)) {
    return because(fmt::format("requested number of devices unavailable for {}. Requested: {}, Available: {}", resource,
                               needed, free.size()));
  }
  const DeviceIds reused = holding.ids;
  holding.ids.merge(choose(free, needed, known, hint));
  if (known.options.preferred_allocation_available && needed > 0 && std::cmp_greater(free.size(), needed)) {
    DeviceIds available = free;
    available.insert(reused.begin(), reused.end());
    holding.state = Holding::State::kPreferring;
    holding.call = ++last_call_;
    commands_.emplace_back(PreferDevices{.call = holding.call,
                                         .plugin = known.plugin,
                                         .available = listed(available),
                                         .must_include = listed(reused),
                                         .size = static_cast<std::int32_t>(count)});
  } else {
    ask_to_allocate(resource, holding);
  }
  holdings_[uid][container.name][resource] = std::move(holding);
  return std::nullopt;
}

void DeviceManager::ask_to_allocate(const std::string& resource, Holding& holding) {
  holding.state = Holding::State::kAllocating;
  holding.call = ++last_call_;
  const DevicePool::Resource* known = pool_.find(resource);
  commands_.emplace_back(AllocateDevices{
      .call = holding.call, .plugin = known == nullptr ? 0 : known->plugin, .ids = listed(holding.ids)});
}

Holding* DeviceManager::find_call(std::uint64_t call, std::string& uid, std::string& resource) {
  for (auto& [each_uid, pod] : holdings_) {
    for (auto& [container, resources] : pod) {
      for (auto& [name, holding] : resources) {
        if (holding.call != call) continue;
        uid = each_uid;
        resource = name;
        return &holding;
      }
    }
  }
  return nullptr;
}

void DeviceManager::on_preferred(const DevicesPreferred& event, Now now) {
  std::string uid;
  std::string resource;
  Holding* holding = find_call(event.call, uid, resource);
  if (holding == nullptr || holding->state != Holding::State::kPreferring) return;
  if (!event.ids) {
    return fail(uid,
                fmt::format("device plugin GetPreferredAllocation rpc failed with err: {}", event.ids.error().message),
                now);
  }
  // The reserved devices stay free for this container; the plugin's present preference may be taken by others.
  const DeviceIds reserved = std::exchange(holding->ids, {});
  DeviceIds usable;
  if (const DevicePool::Resource* known = pool_.find(resource)) {
    std::ranges::set_difference(known->healthy(), held_by_all(holdings_, resource),
                                std::inserter(usable, usable.end()));
  }
  usable.insert(reserved.begin(), reserved.end());
  std::vector<std::string> wishes = *event.ids;
  wishes.insert(wishes.end(), reserved.begin(), reserved.end());
  for (const std::string& id : wishes) {
    if (holding->ids.size() < reserved.size() && usable.contains(id)) holding->ids.insert(id);
  }
  ask_to_allocate(resource, *holding);
}

void DeviceManager::on_allocated(const DevicesAllocated& event, Now now) {
  std::string uid;
  std::string resource;
  Holding* holding = find_call(event.call, uid, resource);
  if (holding == nullptr || holding->state != Holding::State::kAllocating) return;
  if (metrics_ != nullptr) {
    metrics_
        ->histogram("kubelet_device_plugin_alloc_duration_seconds",
                    "Duration in seconds to serve a device plugin Allocation request. Broken down by resource name.",
                    {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}, {{"resource_name", resource}})
        .observe(std::chrono::duration<double>(event.took).count());
  }
  if (!event.grant) return fail(uid, event.grant.error().message, now);
  holding->grant = *event.grant;
  holding->state = Holding::State::kReady;
  context_.log.info(
      "devices allocated",
      {{"pod_uid", uid}, {"resource", resource}, {"devices", fmt::format("{}", fmt::join(holding->ids, ","))}});
  save();
  serve_waiters(uid, now);
}

void DeviceManager::fail(const std::string& uid, std::string message, Now now) {
  release(uid);
  if (on_failed_) on_failed_(uid, because(std::move(message)), now);
}

std::map<std::string, std::int64_t, std::less<>> DeviceManager::in_use(const api::Pod& pod) const {
  std::map<std::string, std::int64_t, std::less<>> counts;
  const auto of_pod = holdings_.find(pod.metadata.uid);
  if (of_pod == holdings_.end()) return counts;
  for (const auto& [container, resources] : of_pod->second) {
    for (const auto& [resource, holding] : resources) {
      counts[resource] = static_cast<std::int64_t>(held_by_all(holdings_, resource).size());
    }
  }
  return counts;
}

HeldDevice DeviceManager::described(const std::string& resource, const std::string& id) const {
  HeldDevice made{.resource = resource, .id = id, .numa_nodes = {}};
  const DevicePool::Resource* known = pool_.find(resource);
  if (known == nullptr) return made;
  if (const auto device = known->devices.find(id); device != known->devices.end())
    made.numa_nodes = device->second.numa_nodes;
  return made;
}

std::vector<HeldDevice> DeviceManager::held_by(std::string_view uid, std::string_view container) const {
  std::vector<HeldDevice> devices;
  const auto pod = holdings_.find(uid);
  if (pod == holdings_.end()) return devices;
  const auto held = pod->second.find(container);
  if (held == pod->second.end()) return devices;
  for (const auto& [resource, holding] : held->second)
    for (const std::string& id : holding.ids) devices.push_back(described(resource, id));
  return devices;
}

std::vector<HeldDevice> DeviceManager::healthy() const {
  std::vector<HeldDevice> devices;
  for (const std::string& resource : pool_.names())
    for (const std::string& id : pool_.find(resource)->healthy()) devices.push_back(described(resource, id));
  return devices;
}

void DeviceManager::prepare(const std::string& uid, const std::string& container, Prepared done, Now now) {
  if (!holdings_.contains(uid)) return done(DeviceGrant{}, now);
  waiters_[uid].push_back(
      {.container = container, .done = std::move(done), .to_prepare = {}, .begun = false, .call = 0});
  serve_waiters(uid, now);
}

void DeviceManager::serve_waiters(const std::string& uid, Now now) {
  const auto of_pod = holdings_.find(uid);
  const auto waiting = waiters_.find(uid);
  if (of_pod == holdings_.end() || waiting == waiters_.end()) return;
  for (const auto& [container, resources] : of_pod->second) {
    for (const auto& [resource, holding] : resources) {
      if (holding.state != Holding::State::kReady) return;
    }
  }
  std::vector<std::pair<Prepared, DeviceGrant>> served;
  std::erase_if(waiting->second, [&](Waiter& waiter) {
    const auto held = of_pod->second.find(waiter.container);
    if (held != of_pod->second.end() && !std::exchange(waiter.begun, true)) {
      for (const auto& [resource, holding] : held->second) {
        const DevicePool::Resource* known = pool_.find(resource);
        if (known != nullptr && known->options.pre_start_required) waiter.to_prepare.push_back(resource);
      }
    }
    if (waiter.call != 0) return false;
    if (!waiter.to_prepare.empty()) {
      const std::string resource = waiter.to_prepare.back();
      const DevicePool::Resource* known = pool_.find(resource);
      waiter.to_prepare.pop_back();
      waiter.call = ++last_call_;
      commands_.emplace_back(PrepareDevices{.call = waiter.call,
                                            .plugin = known == nullptr ? 0 : known->plugin,
                                            .ids = listed(held->second.at(resource).ids)});
      return false;
    }
    served.emplace_back(std::move(waiter.done),
                        held == of_pod->second.end() ? DeviceGrant{} : merged_grant(held->second));
    return true;
  });
  if (waiting->second.empty()) waiters_.erase(waiting);
  for (auto& [done, grant] : served) done(grant, now);
}

void DeviceManager::on_prepared(const DevicesPrepared& event, Now now) {
  for (auto& [uid, waiters] : waiters_) {
    const auto found = std::ranges::find(waiters, event.call, &Waiter::call);
    if (found == waiters.end()) continue;
    found->call = 0;
    if (event.outcome) return serve_waiters(std::string(uid), now);
    const Prepared done = std::move(found->done);
    waiters.erase(found);
    if (waiters.empty()) waiters_.erase(uid);
    return done(make_error(event.outcome.error().code, "device plugin PreStartContainer rpc failed with err: {}",
                           event.outcome.error().message),
                now);
  }
}

void DeviceManager::release(const std::string& uid) {
  waiters_.erase(uid);
  if (holdings_.erase(uid) > 0) save();
}

void DeviceManager::keep_only(const std::set<std::string, std::less<>>& uids) {
  if (std::erase_if(holdings_, [&](const auto& pod) { return !uids.contains(pod.first); }) > 0) save();
  std::erase_if(waiters_, [&](const auto& waiter) { return !uids.contains(waiter.first); });
}

}  // namespace spillway::agent
