// Converts a configuration file and flags to the options of a scheduler. Thread: main.
#pragma once

#include "apps/controller/scheduler_part.h"
#include "base/error.h"
#include "base/rng.h"
#include "cli/config/scheduler_config.h"
#include "cli/flags/command_line.h"
#include "controllers/scheduling/scheduler.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace spillway::apps {

struct SchedulerSetup {
  controllers::Scheduler::Options options;
  std::vector<wire::HttpEndpoint> extenders;  // one for each extender in the options
};

/// Reads a KubeSchedulerConfiguration file and prints its warnings; an empty path: the defaults. kNotFound, kInvalid.
Result<cli::SchedulerConfig> read_scheduler_file(const std::string& file);
/// Reads the files that extenders name. kInvalid: which of them, or which flag, is wrong.
Result<SchedulerSetup> make_scheduler_setup(const cli::SchedulerConfig& config, bool conditions_literally,
                                            const cli::PreemptionArgs& preemption);

using SchedulerFence = std::function<std::unique_ptr<client::ApiEngine>(std::unique_ptr<client::ApiEngine>)>;
MadeScheduler make_scheduler(const SchedulerSetup& setup, Rng rng, telemetry::Log log, telemetry::Registry& metrics,
                             const SchedulerFence& fence);

}  // namespace spillway::apps
