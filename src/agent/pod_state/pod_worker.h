// The agent's state of one pod: the state of each container, and the reason for its end, if it is ending. A worker
// advances from kWaiting over kSyncing and kTerminating to kTerminated and never back; it may skip states. Thread: loop
// (plain values). Source: spec "Node agent", 14.
#pragma once

#include "agent/containers/container_env.h"
#include "agent/pod_state/forced_end.h"
#include "api/object/pod.h"
#include "base/time.h"
#include "client/api_client.h"
#include "policy/containers/orderly_stop.h"
#include "policy/containers/pod_actions.h"
#include "policy/containers/restart_back_off.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

/// A container that is being stopped while its pod continues.
struct RunStop {
  bool again = false;           // the container starts again, whatever its exit code and policy
  bool new_definition = false;  // and without a back-off: by another definition
};

struct ContainerRun {
  enum class State { kWaiting, kStarting, kRunning, kExited };

  const api::Container* spec = nullptr;  // within PodWorker::spec_source
  std::string image;                     // image of the current or last run; it may differ from the one in `spec`
  State state = State::kWaiting;
  std::string waiting_reason = "ContainerCreating";
  std::string waiting_message;
  std::int32_t restart_count = 0;  // also the number of the next or current attempt
  std::optional<WallTime> started_at;
  std::optional<Instant> running_since;
  std::string container_id;  // id of the current or last run, as the runtime names it; empty: made from the names
  std::string image_id;      // id of the image, as the runtime names it; empty: made from the names
  std::optional<api::ContainerState::Terminated> ended;         // the current run, once over
  std::optional<api::ContainerState::Terminated> ended_before;  // the run before the current one
  std::optional<Instant> ended_at;                              // time at which this process noticed the end
  containers::RestartBackOff back_off;
  std::optional<Instant> retry_at;  // end of the back-off before the next start
  bool permitted = false;           // the back-off is over: the container starts as soon as its pod is ready
  std::optional<RunStop> stopping;
  bool again = false;  // stopped in order to start again
  // As reported by probes and hooks; see containers::is_started().
  bool started = false;
  bool ready = false;
  bool reading = false;        // objects of its variables are being read before the start
  bool too_large = false;      // the last start was refused: arguments or environment too large
  std::size_t exec_bytes = 0;  // arguments and environment of the current run, as long as it starts or runs
};

/// kWaiting: has not been admitted yet.
enum class WorkerPhase { kWaiting, kSyncing, kTerminating, kTerminated };

/// Presence of the pod on this machine. kNone: nothing yet; kNever: it was refused; kCreated: CreatePod was sent;
/// kRemoved: RemovePod was.
enum class PodContent { kNone, kNever, kCreated, kRemoved };

/// State of the object or file that defines the pod. kDeleting: its terminal phase is written and the API server is
/// asked to delete it; kGone: it is deleted there; kRetired: its file is gone or makes another pod now.
enum class PodObject { kPresent, kDeleting, kGone, kRetired };

/// The sandbox, where containers are made from images. kAsked: RunSandbox was sent, or its arguments are being read,
/// without a failure yet. kLost: it ran and is unusable; the next one waits until this one is empty.
enum class PodSandbox { kNone, kAsked, kRuns, kLost };

struct PodWorker {
  std::shared_ptr<const api::Pod> latest;  // as last seen
  std::shared_ptr<const api::Pod> pod;     // the same with the resources that the node has allocated
  /// Containers point into this one: the latest with the containers that this pod has.
  std::shared_ptr<const api::Pod> spec_source;
  WorkerPhase phase = WorkerPhase::kWaiting;
  std::vector<ContainerRun> init_containers;
  std::vector<ContainerRun> containers;
  std::vector<ContainerRun> ephemeral_containers;
  std::optional<ForcedEnd> forced_end;
  PodContent content = PodContent::kNone;
  PodObject object = PodObject::kPresent;
  PodSandbox sandbox = PodSandbox::kNone;
  bool needs_sandbox = false;
  std::vector<std::string> pod_ips;  // addresses of the sandbox
  std::optional<Instant>
      sandbox_ran_at;  // since when the present sandbox runs; nullopt: there is none, or it is older than this process
  std::optional<Instant> sandbox_lost_at;
  containers::BackOffBounds restart_bounds;     // bounds of the back-off of its containers
  containers::RestartBackOff sandbox_back_off;  // delays new sandboxes: a pod can end its own sandbox again and again
  bool resumes = false;                         // static: its earlier state will be read from its mirror
  std::string handler;             // the sandbox's runtime handler; empty: the default of pods without a RuntimeClass
  bool own_network = false;        // in a network namespace that only it can reach
  std::int64_t grace_seconds = 0;  // in effect while terminating; 0: not set yet
  std::optional<WallTime> start_time;
  Instant active_since{};  // start_time on this process's clock; set in kSyncing
  api::PodStatus status;   // as last computed
  std::optional<client::ApiClient::TimerId> retry_timer;
  std::optional<Instant> retry_due;
  std::optional<client::ApiClient::TimerId> deadline_timer;
  std::optional<Instant> deadline;                      // for which the timer is set
  std::optional<containers::OrderlyStop> orderly_stop;  // kTerminating: instead of StopPod, until it is over
  std::optional<client::ApiClient::TimerId> stop_timer;

  const std::string& uid() const { return pod->metadata.uid; }

  /// Init containers, regular ones, ephemeral ones.
  std::array<std::vector<ContainerRun>*, 3> run_lists() {
    return {&init_containers, &containers, &ephemeral_containers};
  }

  std::array<const std::vector<ContainerRun>*, 3> run_lists() const {
    return {&init_containers, &containers, &ephemeral_containers};
  }

  bool is_ephemeral(const ContainerRun& run) const;

  /// nullptr: it has no such container.
  ContainerRun* find_run(std::string_view container);
  const ContainerRun* find_run(std::string_view container) const;
};

}  // namespace spillway::agent
