// The machine under a companion: another kubelet's pods in another kubelet's cgroups. Executes the commands of a
// companion: observes, and ends pods. It starts, creates and removes nothing.
// Thread: loop. Never waits; events are emitted later, never from inside execute(). Source:
// agent/companion/companion.h; docs/adr/0007-companion.md.
#pragma once

#include "agent/companion/foreign_pods.h"
#include "agent/contract/ports.h"
#include "host/cgroup/node_slice.h"
#include "host/companion/pod_finder.h"
#include "host/companion/storage_feed.h"
#include "host/observation/observer.h"
#include "host/observation/page_cache_relief.h"
#include "host/reaction/host_events.h"
#include "host/reaction/reaction_target.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

/// kDryRun: no command sends a signal.
enum class Signals { kSent, kDryRun };

class ForeignRuntime final : public agent::Host {
 public:
  struct Options {
    agent::CgroupDriver driver = agent::CgroupDriver::kCgroupfs;
    std::string cgroup_root;
    std::string node_directory;  // the kubelet's directory; nodefs is its file system
    std::string log_directory;   // parent of all pods' logs
    std::string runtime_socket;  // empty: disk usage of pods and images is not read
    Signals signals = Signals::kDryRun;
  };

  /// `root`: root of the hierarchy. Both and the receiver must outlive this object.
  ForeignRuntime(runtime::Loop& loop, const CgroupDir& root, const NodeSlice& slice, agent::Host::Receiver& receiver,
                 telemetry::Log log, Options options);
  ~ForeignRuntime() override;
  ForeignRuntime(const ForeignRuntime&) = delete;
  ForeignRuntime& operator=(const ForeignRuntime&) = delete;

  agent::CgroupDriver driver() const { return options_.driver; }

  /// The pods that exist from now on.
  void set_pods(const std::vector<agent::PodPlace>& pods);
  void execute(agent::HostCommand command) override;

  /// The target for the reaction thread; null: the pod has no cgroup.
  std::shared_ptr<const ReactionTarget> find_target(const std::string& uid);

  /// Sets the callbacks, as ProcessRuntime::listen() does.
  void listen(std::function<void()> before_event, std::function<void()> targets_changed) {
    events_.listen(std::move(before_event), std::move(targets_changed));
  }

  /// The reading that answers Observe, at once; it includes disks that are not evaluated.
  Result<api::Summary> observe_now();
  std::vector<PodView> views() const;

  /// Pods that have a cgroup.
  std::size_t found() const;

  /// The reason why disk figures are missing; empty: none is missing, or none are read.
  std::string storage_problem() const { return storage_ ? storage_->problem() : std::string(); }

 private:
  struct Container {
    FoundContainer found;
    std::string name;                         // empty: the status does not name it, as a sandbox
    std::shared_ptr<ContainerHandle> handle;  // null: no process was seen in it
  };

  struct Ending {
    Instant due;  // time of SIGKILL
    Duration wait = milliseconds(2);
    runtime::Loop::TimerId timer = 0;
    bool storage_freed = false;      // wanted
    bool failure_reported = false;   // a failed kill has been reported
    std::optional<Instant> stopped;  // no process was left
  };

  struct Entry {
    agent::PodPlace place;
    CgroupDir cgroup;  // null: not found
    std::vector<Container> containers;
    std::shared_ptr<const ReactionTarget> target;  // null: must be opened again
    std::optional<Ending> ending;
  };

  void refresh(Entry& entry);
  void refresh_all();
  void stop(const agent::StopPod& command);
  void pursue(const std::string& uid);
  /// True if the pod's status names its containers; cgroups that it does not name are sandboxes then.
  static bool any_named(const Entry& entry);
  bool is_stopped(const Entry& entry) const;
  void kill(Entry& entry);
  void forget_ending(Entry& entry);
  agent::Observed observe(const agent::Observe& command);
  PodFolder folder_of(const agent::PodPlace& place) const;
  void ask_for_storage();
  void describe_pods(api::Summary& summary) const;
  /// True if storage is not tracked, or the runtime has since reported the pod's storage as gone.
  bool is_storage_freed(const Entry& entry) const;

  runtime::Loop& loop_;
  HostEvents events_;
  telemetry::Log log_;
  Options options_;
  PodFinder finder_;
  Observer observer_;
  PageCacheRelief relief_;
  std::unique_ptr<StorageFeed> storage_;  // null: storage is not tracked
  std::map<std::string, Entry> pods_;     // by uid
};

/// The process of a cgroup that has been running for longest: a container's first one. nullopt: there is none.
std::optional<pid_t> oldest_process(const CgroupDir& cgroup);

/// Field 22 of /proc/PID/stat: when the process began, in clock ticks. nullopt: not such a text.
std::optional<std::uint64_t> parse_start_ticks(std::string_view stat);

}  // namespace spillway::host
