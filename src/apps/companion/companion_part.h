// A companion on this machine: reads the kubelet's configuration, begins when it is known, and follows its changes.
// Thread: loop.
#pragma once

#include "agent/companion/kubelet_feed.h"
#include "apps/companion/running_companion.h"
#include "apps/process/process.h"
#include "base/unique_fd.h"
#include "client/engine.h"
#include "runtime/engine_driver.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apps {

class CompanionPart final : public Part {
 public:
  /// `api` leads to the API server, `kubelet` to the kubelet. kConflict: another companion works in this directory.
  static Result<std::unique_ptr<CompanionPart>> create(Process& process, CompanionPartOptions options,
                                                       std::unique_ptr<client::Transport> api,
                                                       std::unique_ptr<client::Transport> kubelet);
  ~CompanionPart() override;

  void stop(runtime::Loop::Task done) override;

 private:
  CompanionPart(Process& process, CompanionPartOptions options, std::unique_ptr<client::Transport> api,
                std::unique_ptr<client::Transport> kubelet);

  Outcome lock_state();
  void on_settings(Result<agent::KubeletSettings> settings);
  void report_problem(const std::string& page, std::string_view what, const Error& error);
  void on_pods(Result<std::vector<api::Pod>> pods);
  /// `settings`: null if a shadow has to do without.
  Outcome begin(const agent::KubeletSettings* settings);

  Process& process_;
  CompanionPartOptions options_;
  std::unique_ptr<client::Transport> api_;
  std::unique_ptr<client::Transport> kubelet_;
  UniqueFd lock_;
  agent::KubeletFeed feed_;
  std::unique_ptr<runtime::EngineDriver> feed_driver_;
  std::map<std::string, std::string> reported_problems_;  // by page of the kubelet: the last one
  std::optional<agent::KubeletSettings> settings_;
  std::unique_ptr<RunningCompanion> running_;  // null: the kubelet has not answered yet
};

}  // namespace spillway::apps
