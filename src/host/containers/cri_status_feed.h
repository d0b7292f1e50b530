// A container runtime's status, version and images, read again and again, and reported to the agent when they change.
// Thread: loop. Bounds: one Status and one ListImages at a time, each with a deadline. Source: spec "Node agent", 4.7,
// 4.8, 7; CRI v1, StatusResponse.
#pragma once

#include "agent/contract/ports.h"
#include "agent/cri/lifecycle_events.h"
#include "agent/cri/runtime_status.h"
#include "base/alive.h"
#include "base/error.h"
#include "base/time.h"
#include "host/cri/cri_calls.h"
#include "host/reaction/host_events.h"
#include "runtime/loop.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {

class CriStatusFeed {
 public:
  /// Every reference must outlive this object. `lists`: late lists of containers are a problem of the runtime, too.
  CriStatusFeed(runtime::Loop& loop, RuntimeCalls& calls, HostEvents& events, const agent::LifecycleRecords& lists)
      : loop_(loop), calls_(calls), events_(events), lists_(lists) {}

  CriStatusFeed(const CriStatusFeed&) = delete;
  CriStatusFeed& operator=(const CriStatusFeed&) = delete;
  ~CriStatusFeed() = default;

  void start();

  /// The runtime's name and version, "containerd://1.7.0", if they were unknown at the start.
  void set_version(std::string version);

  /// Reports the runtime's state if it, or a problem in `lists`, has changed.
  void report();

  /// The runtime has no network for pods, and why; empty: it has one.
  const std::string& network_problem() const { return status_.network_problem; }

 private:
  void ask_status();
  void on_status(const Result<api::Json>& answer);
  void ask_images();
  void on_images(const Result<api::Json>& answer);

  runtime::Loop& loop_;
  RuntimeCalls& calls_;
  HostEvents& events_;
  const agent::LifecycleRecords& lists_;
  std::optional<Instant> status_at_;  // time of the last good answer
  agent::RuntimeStatus status_;
  std::string silence_;  // the error of the last Status; empty: it answered
  std::vector<agent::NodeImage> images_;
  std::string version_;
  std::optional<agent::RuntimeReported> reported_;
  Alive alive_;
};

}  // namespace spillway::host
