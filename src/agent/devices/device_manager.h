// Hands devices of device plugins to containers: chooses them when a pod is admitted, has the plugin allocate them
// before the first container starts, keeps the holders of devices across a restart, and frees the devices when the pod
// has ended.
// Thread: loop. Invariants: a device is held by one pod at a time; no container of a pod starts before all devices of
// the pod are allocated; a call to a plugin is answered once or its holding is gone. Bounds: kPluginsMax resources,
// calls under way ≤ holdings. The plugin's answer delays no other pod: a pod is admitted on the choice, and rejected
// with upstream's words if the plugin then refuses. Source: Kubernetes docs, "Device Plugins"; spec "Pod admission", 5.
#pragma once

#include "agent/contract/context.h"
#include "agent/contract/device_ports.h"
#include "agent/contract/held_resources.h"
#include "agent/devices/device_holdings.h"
#include "agent/devices/device_pool.h"
#include "api/json/json.h"
#include "policy/admission/topology_admit.h"
#include "telemetry/metrics.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

class DeviceManager final : public admission::HintProvider {
 public:
  using Prepared = std::function<void(const Result<DeviceGrant>& grant, Now now)>;

  /// `checkpoint`: what SaveDevices wrote last. One that is damaged is logged and counts as none.
  /// `metrics` may be null.
  DeviceManager(AgentContext& context, const std::optional<std::string>& checkpoint, telemetry::Registry* metrics);

  void start(Now now);
  void on_event(const DeviceEvent& event, Now now);
  std::vector<DeviceCommand> take_commands();

  /// State for people and /debug/spillway: no contract.
  api::Json state(Now now) const;

  // The devices on offer.

  DeviceResources offered() const { return pool_.offered(); }

  /// `listener`: capacity or allocatable may have changed.
  void when_changed(std::function<void(Now now)> listener) { on_changed_ = std::move(listener); }

  // Admission.

  std::optional<admission::ResourceHints> container_hints(const api::Pod& pod,
                                                          const api::Container& container) override;
  std::optional<admission::ResourceHints> pod_hints(const api::Pod& pod) override;
  /// Chooses devices for every limit on a registered resource. Messages are upstream's.
  std::optional<admission::AllocationFailure> allocate(const api::Pod& pod, const api::Container& container,
                                                       const admission::TopologyHint& hint) override;

  /// Devices handed out on the whole node, for each resource of which this pod holds some.
  std::map<std::string, std::int64_t, std::less<>> in_use(const api::Pod& pod) const;

  /// The devices of one container, ordered by resource and id.
  std::vector<HeldDevice> held_by(std::string_view uid, std::string_view container) const;
  /// All healthy devices, held or not.
  std::vector<HeldDevice> healthy() const;

  /// `listener` is called if the plugin did not allocate the devices of an admitted pod, so that the pod is rejected.
  void when_failed(
      std::function<void(const std::string& uid, const admission::AllocationFailure& why, Now now)> listener) {
    on_failed_ = std::move(listener);
  }

  // Running.

  /// Calls `done` once everything the pod holds is allocated and this container's plugins are ready for its start; at
  /// once for a container without devices. Not called at all if the pod fails or is released before.
  void prepare(const std::string& uid, const std::string& container, Prepared done, Now now);
  /// Frees the devices of a pod that has ended.
  void release(const std::string& uid);
  /// Frees the devices of all pods but these.
  void keep_only(const std::set<std::string, std::less<>>& uids);

 private:
  struct Waiter {
    std::string container;
    Prepared done;
    std::vector<std::string> to_prepare;  // resources whose plugin requires PreStartContainer, last first
    bool begun = false;
    std::uint64_t call = 0;
  };

  std::optional<admission::AllocationFailure> take(const api::Pod& pod, const api::Container& container,
                                                   const std::string& resource, std::int64_t count,
                                                   const admission::TopologyHint& hint);
  HeldDevice described(const std::string& resource, const std::string& id) const;
  std::optional<std::string> check_held(const Holding& held, const std::string& uid, std::string_view container,
                                        const std::string& resource, std::int64_t count) const;
  DeviceIds reusable(const api::Pod& pod, const api::Container& container, std::string_view resource) const;
  void ask_to_allocate(const std::string& resource, Holding& holding);
  Holding* find_call(std::uint64_t call, std::string& uid, std::string& resource);
  void on_preferred(const DevicesPreferred& event, Now now);
  void on_allocated(const DevicesAllocated& event, Now now);
  void on_prepared(const DevicesPrepared& event, Now now);
  void on_listed(const PluginListed& event, Now now);
  void resume(const std::string& resource, Now now);
  void serve_waiters(const std::string& uid, Now now);
  void fail(const std::string& uid, std::string message, Now now);
  void arm(Now now);
  void give_up(Now now);
  void save();

  AgentContext& context_;
  telemetry::Registry* metrics_;
  DevicePool pool_;
  Holdings holdings_;
  std::map<std::string, std::vector<Waiter>, std::less<>> waiters_;  // by uid
  std::vector<std::string> remembered_;                              // resources of the checkpoint
  std::vector<DeviceCommand> commands_;
  std::function<void(Now)> on_changed_;
  std::function<void(const std::string&, const admission::AllocationFailure&, Now)> on_failed_;
  std::optional<client::ApiClient::TimerId> timer_;
  std::uint64_t last_call_ = 0;
};

}  // namespace spillway::agent
