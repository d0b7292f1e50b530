// A simulated machine: containers are entries in a table that use memory as their command says, and the kernel's OOM
// killer comes when the machine is full. Understands `stress --memory Q --rate Q/s`; anything else uses 10Mi and runs
// for ever. Its one disk and its processes run short as pods are told to use them; nobody is killed for that. A pod
// that was stopped gives its part of the disk back. Thread: one.
#pragma once

#include "agent/contract/ports.h"
#include "base/bytes.h"
#include "base/rng.h"
#include "sim/growth.h"
#include "sim/time/virtual_time.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace spillway::sim {

class SimHost final : public agent::Host {
 public:
  /// Shared, because an observation is large and passes through many hands.
  using Deliver = std::function<void(std::shared_ptr<const agent::HostEvent>)>;

  struct Size {
    Bytes memory;
    Bytes disk = gibibytes(100);
  };

  static constexpr std::int64_t kPidsMax = 32'768;

  /// Events go to `deliver`, never from inside execute().
  SimHost(VirtualTime& time, Rng rng, Size size, Deliver deliver);
  ~SimHost() override;

  void execute(agent::HostCommand command) override;

  agent::MachineInfo machine_info(const std::string& node) const;

  /// Pods with a process on this machine, by uid.
  std::map<std::string, api::PodKey> running() const;

  Bytes memory() const { return size_.memory; }

  /// Of its memory, not used now; never negative.
  Bytes available() const { return std::max(size_.memory - usage(), Bytes{0}); }

  /// From now on the running containers of this pod use `target` together, in equal parts: at once, or growing by
  /// `rate_per_second` from what they use. Containers that start later do as their command says.
  void use_memory(const std::string& uid, Bytes target, Bytes rate_per_second);

  /// What the pod uses now; zero if it is not here.
  Bytes usage_of_pod(const std::string& uid) const;

  /// From now on the pod has `target` on the disk, likewise.
  void use_disk(const std::string& uid, Bytes target, Bytes rate_per_second);
  Bytes disk_of_pod(const std::string& uid) const;

  /// From now on the pod has `target` processes, likewise, until none of its containers runs.
  void fork_processes(const std::string& uid, std::int64_t target, std::int64_t rate_per_second);
  std::int64_t processes_of_pod(const std::string& uid) const;

  std::uint64_t kernel_oom_kills() const { return kernel_oom_kills_; }

 private:
  struct Container {
    std::int32_t attempt = 0;
    Bytes usage_max = mebibytes(10);
    Bytes rate_per_second;  // zero: everything at once
    Bytes usage_before;     // where the growth began
    Instant grows_since;
    WallTime started_wall;
    bool running = false;
  };

  struct PodEntry {
    api::PodKey key;
    std::map<std::string, Container> containers;
    Growth disk;       // bytes
    Growth processes;  // beside one of each container

    std::int64_t running() const;
    std::int64_t processes_at(Instant now) const;
  };

  void start(const agent::StartContainer& command);
  void exit(const std::string& uid, const std::string& name, std::int32_t code, std::int32_t signal, bool oom);
  void run_inside(const agent::RunInContainer& command);
  void stop_pod(const std::string& uid, Duration grace);
  api::Summary summarize(agent::ObserveDepth depth) const;
  api::PodStats stats_of(const std::string& uid, const PodEntry& pod) const;
  void add_disk_and_processes(api::NodeStats& node) const;
  Bytes usage_of(const Container& container) const;
  Bytes usage() const;
  /// Arms the moment at which the machine will be full.
  void expect_oom();
  void kill_largest();
  void send(Duration delay, agent::HostEvent event);

  VirtualTime& time_;
  Rng rng_;
  Size size_;
  Deliver deliver_;
  std::map<std::string, PodEntry> pods_;
  std::optional<VirtualTime::EventId> oom_check_;
  std::uint64_t kernel_oom_kills_ = 0;
  std::int64_t last_pid_ = 1000;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace spillway::sim
