// A simulated machine: containers are entries in a table that use memory by their command, and the kernel's OOM killer
// acts when the machine is full. Understands `stress --memory Q --rate Q/s`; anything else uses 10Mi and runs for ever,
// unless exit_after() is called. With swap, memory that does not fit is swapped out, the same share of each container,
// and a listener for stalls is woken when the machine stalls. Pods may fill page cache, which the kernel gives up
// before it kills, and the agent may reclaim. Its only disk and its processes run short as pods use them by order of
// the scenario, and as unused images are on the disk; no process is killed for that. A stopped pod frees its part of
// the disk. Containers may take all of their grace to end, or not end at all. Its wall clock may be wrong. Thread: one.
#pragma once

#include "agent/contract/ports.h"
#include "base/alive.h"
#include "base/bytes.h"
#include "base/rng.h"
#include "sim/growth.h"
#include "sim/page_cache.h"
#include "sim/time/virtual_time.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::sim {

class SimHost final : public agent::Host {
 public:
  /// Shared, because an observation is large and passes through many hands.
  using Deliver = std::function<void(std::shared_ptr<const agent::HostEvent>)>;

  struct Size {
    Bytes memory;
    Bytes disk = gibibytes(100);
    Bytes swap = {};
  };

  /// The reaction of a pod's containers to SIGTERM.
  enum class Ending {
    kPrompt,   // within a tenth of a second
    kAtGrace,  // ignores the signal: killed at the end of the grace
    kNever,    // survives SIGKILL, too, like a process that waits for a dead disk
  };

  static constexpr std::int64_t kPidsMax = 32'768;

  /// Events go to `deliver`, never from inside execute().
  SimHost(VirtualTime& time, Rng rng, Size size, Deliver deliver);
  ~SimHost() override;

  void execute(agent::HostCommand command) override;

  /// The process of the agent has ended and another one has begun, while the pods kept running: events on their way to
  /// the old process are lost, and the new one receives the present pods (MachineInfo::keeps_pods).
  void attach(Deliver deliver);

  agent::MachineInfo machine_info(const std::string& node) const;

  /// Pods with a process on this machine, by uid.
  std::map<std::string, api::PodKey> running() const;

  Bytes memory() const { return size_.memory; }

  /// The memory that is not used now; never negative.
  Bytes available() const { return std::max(size_.memory - usage(), Bytes{0}); }

  Bytes swap() const { return size_.swap; }

  /// Makes the running containers of this pod use `target` together, in equal parts: at once, or growing by
  /// `rate_per_second` from their present use. Containers that start later follow their command.
  void use_memory(const std::string& uid, Bytes target, Bytes rate_per_second);

  /// The memory that the pod uses now; zero if it is not here.
  Bytes usage_of_pod(const std::string& uid) const;

  /// Makes the pod fill page cache up to `target`, until none of its containers runs: at once, within `over`, or by
  /// `rate_per_second`.
  struct FileReading {
    Bytes target;
    Duration over{};
    Bytes rate_per_second = {};
    PageCache::Reading reading = PageCache::Reading::kOnce;
  };

  void read_files(const std::string& uid, const FileReading& files);

  /// Makes the pod have `target` on the disk, likewise.
  void use_disk(const std::string& uid, Bytes target, Bytes rate_per_second);
  Bytes disk_of_pod(const std::string& uid) const;

  /// Makes the pod have `target` processes, likewise, until none of its containers runs.
  void fork_processes(const std::string& uid, std::int64_t target, std::int64_t rate_per_second);
  std::int64_t processes_of_pod(const std::string& uid) const;

  /// The memory of the pod that is not swapped out.
  Bytes resident_of_pod(const std::string& uid) const { return in_memory(usage_of_pod(uid)); }

  /// Sets the reaction until the pod's last container has ended. Containers that were stopped meanwhile end once they
  /// can.
  void set_ending(const std::string& uid, Ending ending);

  /// Containers end promptly again.
  void let_all_end() {
    for (const auto& [uid, pod] : pods_) set_ending(uid, Ending::kPrompt);
  }

  /// Adds images that no container uses to the disk; they are removed when the agent requests that, unless
  /// `undeletable`.
  void keep_images(Bytes bytes, bool undeletable);

  /// Makes its disk slow: containers start, volumes are made, pods are gone and disks are measured this much later.
  /// Memory is measured as before.
  void slow_disk(Duration by) { disk_delay_ = by; }

  /// Makes the container that runs now end with `code` after this time; one that starts later is not affected.
  void exit_after(const std::string& uid, const std::string& container, Duration after, std::int32_t code);

  /// Sets how often it is checked if the machine is full while the memory of a pod grows. Between two checks a pod may
  /// use more than there is.
  void check_memory_every(Duration interval) { oom_check_interval_ = interval; }

  /// Gives pods with a network of their own the addresses PREFIX2 to PREFIX254 ("100.64.3."): the first free one; with
  /// none free, the last.
  void set_pod_network(std::string prefix) { pod_network_ = std::move(prefix); }

  /// Sets the wall clock ahead of the right time.
  void set_clock(Duration ahead) { clock_ahead_ = ahead; }

  std::uint64_t kernel_oom_kills() const { return kernel_oom_kills_; }

 private:
  struct Container {
    std::int32_t attempt = 0;
    Bytes usage_max = mebibytes(10);
    Bytes rate_per_second;  // zero: everything at once
    Bytes usage_before;     // at the start of the growth
    Instant grows_since;
    WallTime started_wall;
    std::string image;
    bool running = false;
    std::optional<agent::ContainerExited> ended = std::nullopt;  // the result of the run; nullopt: it has not ended
  };

  /// The order to end a container, or the whole pod.
  struct Stop {
    std::string container;  // empty: all, and the answer is PodStopped
    bool killed = false;

    friend bool operator==(const Stop&, const Stop&) = default;
  };

  struct PodEntry {
    api::PodKey key;
    Ending ending = Ending::kPrompt;
    std::vector<Stop> waiting;  // with kNever
    std::map<std::string, Container> containers;
    Growth disk;       // bytes
    Growth processes;  // further processes, beside the first one of each container
    bool host_network = false;
    bool has_sandbox = false;
    std::uint8_t address = 0;  // the last number of the pod's address; 0: it has none

    std::vector<std::string> addresses(const std::string& network) const;
    std::int64_t running() const;
    std::int64_t processes_at(Instant now) const;
  };

  void start(const agent::StartContainer& command);
  void exit(const std::string& uid, const std::string& name, std::int32_t code, std::int32_t signal, bool oom);
  void run_inside(const agent::RunInContainer& command);
  void run_sandbox(const std::string& uid);
  void stop_pod(const std::string& uid, Duration grace);
  void stop_container(const agent::StopContainer& command);
  Duration time_to_end(const std::string& uid, Duration grace, Duration prompt) const;
  bool ignores_term(const std::string& uid, Duration grace) const;
  void end(const std::string& uid, const Stop& stop);
  agent::ReclaimOutcome free(eviction::ReclaimAction action);
  void observe(const agent::Observe& command);
  void summarize(agent::ObserveDepth depth, api::Summary& summary) const;
  void add_stats(const std::string& uid, const PodEntry& pod, api::PodStats& stats) const;
  void add_disk_and_processes(api::NodeStats& node) const;
  Bytes usage_of(const Container& container) const;
  Bytes usage() const;
  Bytes swapped() const;
  Bytes in_memory(Bytes used) const;
  Now now() const;
  agent::PodsFound found() const;
  void report_stall();
  /// Arms the moment at which the machine will be full.
  void expect_oom();
  void kill_largest();
  void send(Duration delay, agent::HostEvent event);
  void send(Duration delay, std::shared_ptr<const agent::HostEvent> event);

  VirtualTime& time_;
  Rng rng_;
  Size size_;
  Deliver deliver_;
  std::map<std::string, PodEntry> pods_;
  std::optional<VirtualTime::EventId> oom_check_;
  std::uint64_t kernel_oom_kills_ = 0;
  PageCaches caches_;
  Bytes images_;
  bool images_stay_ = false;
  Duration clock_ahead_{};
  Duration disk_delay_{};
  Duration oom_check_interval_ = milliseconds(5);
  std::string pod_network_;  // empty: pods have the address of their node
  std::optional<Instant> stall_reported_at_;
  std::int64_t last_pid_ = 1000;
  /// The last observations of everything, reused once the agent has released them: it keeps the last one.
  std::array<std::shared_ptr<agent::HostEvent>, 2> observations_;
  Alive alive_;
  std::uint64_t listeners_ = 1;  // number of agents that have run on the machine
};

}  // namespace spillway::sim
