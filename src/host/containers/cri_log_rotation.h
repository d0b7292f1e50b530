// Rotation of the logs that a container runtime writes: each log of a running container is checked in turn, renamed
// when it is too long, and the runtime reopens it. Thread: loop; files are read and renamed on threads of its own.
// Bounds: one check of a log at a time, a queue of kRotationsMax checks. Source: Kubernetes docs, "Logging
// Architecture"; spec "Node agent", 14.
#pragma once

#include "base/alive.h"
#include "base/error.h"
#include "base/time.h"
#include "host/containers/cri_pods.h"
#include "host/cri/cri_calls.h"
#include "host/kernel/blocking_threads.h"
#include "host/logs/container_log.h"
#include "host/logs/log_rotation.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <cstddef>
#include <string>
#include <utility>

namespace spillway::host {

class CriLogRotation {
 public:
  static constexpr std::size_t kRotationsMax = 10'000;

  struct Options {
    LogLimits limits;
    Duration interval{};
    std::size_t threads = 1;
  };

  /// `pods` and `calls` must outlive this object.
  CriLogRotation(runtime::Loop& loop, CriPods& pods, RuntimeCalls& calls, telemetry::Log log, Options options)
      : loop_(loop),
        pods_(pods),
        calls_(calls),
        log_(std::move(log)),
        options_(options),
        files_(loop, options.threads, kRotationsMax) {}

  CriLogRotation(const CriLogRotation&) = delete;
  CriLogRotation& operator=(const CriLogRotation&) = delete;
  ~CriLogRotation() = default;

  /// Checks every log now and each Options::interval.
  void start();

 private:
  void on_turned(const std::string& uid, const std::string& name, const std::string& id, const Result<LogTurn>& turn);
  void reopen(const std::string& uid, const std::string& name, const std::string& id, LogTurn turn);
  void on_reopened(const std::string& uid, const std::string& name, const std::string& id, const LogTurn& turn,
                   const Outcome& reopened);

  runtime::Loop& loop_;
  CriPods& pods_;
  RuntimeCalls& calls_;
  telemetry::Log log_;
  Options options_;
  BlockingThreads files_;
  Alive alive_;
};

}  // namespace spillway::host
