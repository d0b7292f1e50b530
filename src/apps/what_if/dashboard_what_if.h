// Plays the questions put to `spillway dashboard`: the child reads the cluster itself, with the kubeconfig this process
// was given. Thread: loop. Bounds: one at a time, LimitedRun::Limits.
#pragma once

#include "apps/what_if/what_if_run.h"
#include "cli/flags/command_line.h"
#include "runtime/loop.h"
#include "wire/dashboard/dashboard_server.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace spillway::apps {

class DashboardWhatIf final : public wire::WhatIfRunner {
 public:
  DashboardWhatIf(runtime::Loop& loop, cli::ClusterArgs api) : loop_(loop), api_(std::move(api)) {}

  /// Errors are those of start_what_if(), and 422: an invalid question; 429: another one is being played.
  void open(std::uint64_t id, const api::Json& question, std::shared_ptr<api::ResponseSink> sink) override;
  void abandon(std::uint64_t id) override;

 private:
  void answer(api::Response response);

  runtime::Loop& loop_;
  cli::ClusterArgs api_;
  std::uint64_t id_ = 0;  // the running simulation's
  std::shared_ptr<api::ResponseSink> sink_;
  std::unique_ptr<LimitedRun> run_;
};

}  // namespace spillway::apps
