// A simulated machine: containers are entries in a table that use memory as their command says, and the kernel's OOM
// killer comes when the machine is full. Understands `stress --memory Q --rate Q/s`; anything else uses 10Mi and runs
// for ever. Thread: one.
#pragma once

#include "agent/contract/ports.h"
#include "base/bytes.h"
#include "base/rng.h"
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

  /// Events go to `deliver`, never from inside execute().
  SimHost(VirtualTime& time, Rng rng, Bytes memory, Deliver deliver);
  ~SimHost() override;

  void execute(agent::HostCommand command) override;

  agent::MachineInfo machine_info(const std::string& node) const;

  /// Pods with a process on this machine, by uid.
  std::map<std::string, api::PodKey> running() const;

  Bytes memory() const { return memory_; }

  /// Of its memory, not used now; never negative.
  Bytes available() const { return std::max(memory_ - usage(), Bytes{0}); }

  /// From now on the running containers of this pod use `target` together, in equal parts: at once, or growing by
  /// `rate_per_second` from what they use. Containers that start later do as their command says.
  void use_memory(const std::string& uid, Bytes target, Bytes rate_per_second);

  /// What the pod uses now; zero if it is not here.
  Bytes usage_of_pod(const std::string& uid) const;

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
  };

  void start(const agent::StartContainer& command);
  void exit(const std::string& uid, const std::string& name, std::int32_t code, std::int32_t signal, bool oom);
  void run_inside(const agent::RunInContainer& command);
  void stop_pod(const std::string& uid, Duration grace);
  api::Summary summarize(agent::ObserveDepth depth) const;
  Bytes usage_of(const Container& container) const;
  Bytes usage() const;
  /// Arms the moment at which the machine will be full.
  void expect_oom();
  void kill_largest();
  void send(Duration delay, agent::HostEvent event);

  VirtualTime& time_;
  Rng rng_;
  Bytes memory_;
  Deliver deliver_;
  std::map<std::string, PodEntry> pods_;
  std::optional<VirtualTime::EventId> oom_check_;
  std::uint64_t kernel_oom_kills_ = 0;
  std::int64_t last_pid_ = 1000;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace spillway::sim
