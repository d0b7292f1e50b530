// Removal of what pods and containers leave in a container runtime and on disk while their pods or others live on:
// containers that have ended, sandboxes that were replaced, directories of deleted pods. Lists such remains for the
// agent's planner, and removes those that it selects, or that a reclaim of disk space selects. Thread: loop; files are
// removed on the thread of files. Bounds: one removal of a list at a time, a deadline on every call. Source:
// agent/contract/remains_ports.h.
#pragma once

#include "agent/contract/ports.h"
#include "base/error.h"
#include "host/containers/cri_owner.h"
#include "host/containers/cri_pods.h"
#include "host/containers/log_folders.h"
#include "host/cri/cri_calls.h"
#include "host/kernel/blocking_thread.h"
#include "host/reaction/host_events.h"
#include "telemetry/log.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {

class CriRemains {
 public:
  /// Every reference must outlive this object. `state_dir`: contains the directories of pods.
  CriRemains(CriPods& pods, RuntimeCalls& calls, HostEvents& events, BlockingThread& files, const LogFolders& folders,
             const CriOwner& owner, telemetry::Log log, std::string state_dir)
      : pods_(pods),
        calls_(calls),
        events_(events),
        files_(files),
        folders_(folders),
        owner_(owner),
        log_(std::move(log)),
        state_dir_(std::move(state_dir)) {}

  CriRemains(const CriRemains&) = delete;
  CriRemains& operator=(const CriRemains&) = delete;
  ~CriRemains() = default;

  /// Emits RemainsListed; nothing while the table of pods is not complete, or where the runtime is this node's alone.
  void list();
  void remove(agent::RemoveRemains command);

  /// Removes an ended container of a known pod, its log first. What cannot be removed is removed after the next list of
  /// the runtime. `then`: called once the runtime has answered, or at once if there is nothing to remove.
  void remove_ended(
      const std::string& uid, const std::string& name, std::int32_t attempt, const std::function<void()>& then = [] {});

  /// One after the other, so that the runtime has one call of it at a time. `then`: once all have been answered.
  void remove_containers(std::vector<agent::ContainerRemoval> left, std::function<void()> then);
  /// Removes sandboxes that known pods no longer use.
  void remove_idle_sandboxes(std::vector<std::string> left, std::function<void()> then);

 private:
  void report(const api::Json& sandboxes, const api::Json& containers);
  void remove_container(const agent::ContainerRemoval& removal, std::function<void()> then);
  void remove_directories(const std::vector<std::string>& names);

  CriPods& pods_;
  RuntimeCalls& calls_;
  HostEvents& events_;
  BlockingThread& files_;
  const LogFolders& folders_;
  const CriOwner& owner_;
  telemetry::Log log_;
  std::string state_dir_;
};

}  // namespace spillway::host
