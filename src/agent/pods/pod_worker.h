// What the agent knows about one pod it runs: where each container stands, and why the pod is ending, if it is.
// A worker goes from kWaiting over kSyncing and kTerminating to kTerminated and never back; it may leave some out.
// Thread: loop (plain values). Source: spec "Node agent", 14.
#pragma once

#include "agent/pods/container_env.h"
#include "agent/pods/forced_end.h"
#include "api/object/pod.h"
#include "base/time.h"
#include "client/api_client.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

struct ContainerRun {
  enum class State { kWaiting, kStarting, kRunning, kExited };

  const api::Container* spec = nullptr;  // within PodWorker::spec_source
  std::string image;                     // of the current or last run; it may differ from the one in `spec`
  bool outdated = false;                 // runs by another definition than `spec` and is being stopped for it
  State state = State::kWaiting;
  std::string waiting_reason = "ContainerCreating";
  std::string waiting_message;
  std::int32_t restart_count = 0;  // also the number of the next or current attempt
  std::optional<WallTime> started_at;
  std::optional<Instant> running_since;
  std::optional<api::ContainerState::Terminated> ended;         // the current run, once over
  std::optional<api::ContainerState::Terminated> ended_before;  // the run before the current one
  Duration back_off{};                                          // before the next restart; zero: none yet
  std::optional<Instant> retry_at;                              // waits for its back-off until then
  bool reading = false;                                         // what its variables refer to, to start then
};

/// kWaiting: has not been asked yet whether it may start.
enum class WorkerPhase { kWaiting, kSyncing, kTerminating, kTerminated };

struct PodWorker {
  std::shared_ptr<const api::Pod> pod;  // as last seen
  /// Containers point into this one: the latest with the containers that this pod has.
  std::shared_ptr<const api::Pod> spec_source;
  WorkerPhase phase = WorkerPhase::kWaiting;
  std::vector<ContainerRun> init_containers;
  std::vector<ContainerRun> containers;
  std::optional<ForcedEnd> forced_end;
  bool rejected = false;           // never started
  bool created = false;            // CreatePod was sent
  bool object_gone = false;        // deleted from the API server
  bool retired = false;            // its file is gone or makes another pod now
  bool removed = false;            // RemovePod was sent
  std::int64_t grace_seconds = 0;  // in effect while terminating; 0: not set yet
  std::optional<WallTime> start_time;
  Instant active_since{};  // the same as this process saw it; set in kSyncing
  api::PodStatus status;   // as last computed
  std::optional<client::ApiClient::TimerId> retry_timer;
  std::optional<Instant> retry_due;
  std::optional<client::ApiClient::TimerId> deadline_timer;
  std::optional<Instant> deadline;  // that the timer is for
  bool delete_in_flight = false;

  const std::string& uid() const { return pod->metadata.uid; }
};

/// The longest a container waits for its next restart, and how long it must run to start over with the shortest.
inline constexpr Duration kBackOffMin = seconds(10);
inline constexpr Duration kBackOffMax = minutes(5);
inline constexpr Duration kBackOffForgetAfter = minutes(10);

/// Does a container that exited with this code start again? `policy`: the pod's restartPolicy.
bool restarts(std::string_view policy, std::int32_t exit_code);

/// The back-off that follows `current` when a run of this length ends; zero: restart at once (the first time).
Duration next_back_off(Duration current, Duration ran);

}  // namespace spillway::agent
