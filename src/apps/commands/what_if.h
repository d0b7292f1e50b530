// Plays the questions of the dashboard: each as `spillway simulate --from-cluster` in a child process with limits, with
// the kubeconfig this process was given. Thread: loop. Bounds: one at a time, LimitedRun::Limits.
#pragma once

#include "apps/process/limited_run.h"
#include "cli/flags/command_line.h"
#include "runtime/loop.h"
#include "wire/dashboard/dashboard_server.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace spillway::apps {

class WhatIfRuns final : public wire::WhatIfPlayer {
 public:
  WhatIfRuns(runtime::Loop& loop, cli::ClusterArgs api) : loop_(loop), api_(std::move(api)) {}

  /// 200: the document of `simulate -o json`; 422: the question is none; 429: another one is being played; 502, 504: it
  /// could not be played, and why.
  void open(std::uint64_t id, const api::Json& question, std::shared_ptr<api::ResponseSink> sink) override;
  void abandon(std::uint64_t id) override;

 private:
  void answer(LimitedRun::Ended ended);

  runtime::Loop& loop_;
  cli::ClusterArgs api_;
  std::uint64_t id_ = 0;  // of the one that is being played
  std::shared_ptr<api::ResponseSink> sink_;
  std::unique_ptr<LimitedRun> run_;
};

}  // namespace spillway::apps
