// Interface of a node's pod runtime, beside its commands: paths of logs, fresh statistics, targets for reactions to
// memory pressure. Implemented by ProcessRuntime and CriRuntime. Thread: loop.
#pragma once

#include "agent/contract/ports.h"
#include "agent/contract/running_pod.h"
#include "api/object/meta.h"
#include "api/object/summary.h"
#include "base/error.h"
#include "base/time.h"
#include "host/reaction/reaction_target.h"
#include "host/streams/stream_sessions.h"
#include "runtime/loop.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

/// The longest wait for the removal of a pod's files; then it counts as stopped all the same (StopPod::storage_freed).
inline constexpr Duration kFreeMax = seconds(10);

/// A container whose state is to be written to a file.
struct CheckpointWish {
  std::string uid;
  std::string container;
  std::string file;                  // absolute; its folder exists
  std::int64_t timeout_seconds = 0;  // 0: that of other calls
};

/// Receives the end of a checkpoint, once.
using CheckpointTaken = std::move_only_function<void(Outcome)>;

class PodRuntime : public agent::Host, public StreamedContainers {
 public:
  /// Stops everything, with that grace, and refuses new starts. `done` is called once no process of any pod is left;
  /// call again with zero grace to hurry.
  virtual void shutdown(Duration grace, std::function<void()> done) = 0;

  /// Prepares pods to outlive this object, which is not used afterwards. False: they cannot.
  virtual bool keep_pods() { return false; }

  /// The log of an attempt of a container of a known pod. kNotFound: the pod is unknown, or no file of that attempt is
  /// left.
  virtual Result<std::string> find_log(const api::PodKey& pod, const std::string& container,
                                       std::int32_t attempt) const = 0;

  /// True if a running container writes this log.
  virtual bool is_log_live(const std::string& path) const = 0;

  /// The attempt with this id in a pod's status, without its scheme; nullopt: unknown.
  virtual std::optional<std::int32_t> attempt_of(const std::string& container_id) const = 0;

  /// Observes the machine at once, as Observe does.
  virtual Result<api::Summary> observe_now() = 0;

  /// The target for the reaction thread; null: the pod does not exist, or has no cgroup.
  virtual std::shared_ptr<const ReactionTarget> find_target(const std::string& uid) = 0;

  /// `before_event`: called before each event, to report what must precede it. `targets_changed`: containers were added
  /// or removed.
  virtual void listen(std::function<void()> before_event, std::function<void()> targets_changed) = 0;

  /// Pods that run, ended containers left out.
  virtual std::vector<agent::RunningPod> running_pods() const = 0;

  /// Writes the state of a running container to a file; the answer comes now or later. Errors end up in a sentence of
  /// upstream's, which names the code of gRPC: "rpc error: code = Unimplemented desc = …".
  virtual void checkpoint(const CheckpointWish& wish, CheckpointTaken answer) = 0;

  /// Containers start when this has run its task as well: the checkpoint of devices is on the disk.
  virtual void set_device_files(std::function<void(runtime::Loop::Task then)> when_saved) = 0;

  /// Pods that have a cgroup, by uid.
  virtual std::vector<api::PodKey> pods() const = 0;
};

}  // namespace spillway::host
