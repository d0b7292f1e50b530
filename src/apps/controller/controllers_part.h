// The controllers of a process with their pages, and with the program that is queried about machines. Thread: loop.
#pragma once

#include "apps/controller/controller_pages.h"
#include "apps/process/engine_part.h"
#include "cli/flags/command_line.h"
#include "controllers/controller_set.h"
#include "host/kernel/blocking_thread.h"
#include "host/process/exec_exchange.h"

#include <memory>
#include <string>
#include <vector>

namespace spillway::apps {

class ControllersPart final : public EnginePart {
 public:
  /// `engine` is `set`, or an engine around it. The pages are withdrawn before the controllers are destroyed.
  ControllersPart(runtime::Loop& loop, controllers::ControllerSet& set, std::unique_ptr<client::ApiEngine> engine,
                  std::unique_ptr<client::Transport> transport, ControllerPages& pages,
                  const cli::ControllerArgs& args);

  void stop(runtime::Loop::Task done) override;

 private:
  void ask_cloud(const std::vector<controllers::InstanceQuestion>& nodes);
  void on_cloud_answer(Result<std::vector<controllers::InstanceAnswer>> answer);

  controllers::ControllerSet& set_;
  ControllerPages& pages_;
  std::string command_;
  host::ExecLimits limits_;
  host::BlockingThread plugin_;
};

}  // namespace spillway::apps
