// From a configuration file to what a scheduler is started with. Thread: main.
#pragma once

#include "base/error.h"
#include "cli/config/scheduler_config.h"
#include "controllers/scheduling/scheduler.h"

#include <string>

namespace spillway::apps {

/// Of a KubeSchedulerConfiguration file, whose warnings are printed; an empty path: as it stands. kNotFound, kInvalid.
Result<cli::SchedulerConfig> read_scheduler_file(const std::string& file);
controllers::Scheduler::Options make_scheduler_options(const cli::SchedulerConfig& config, bool conditions_literally);

}  // namespace spillway::apps
