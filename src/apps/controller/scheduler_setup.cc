#include "apps/controller/scheduler_setup.h"

#include "yaml/yaml_document.h"

#include <fmt/format.h>

#include <cstdio>

namespace spillway::apps {

Result<cli::SchedulerConfig> read_scheduler_file(const std::string& file) {
  if (file.empty()) return cli::SchedulerConfig();
  SPILLWAY_TRY(document, yaml::read_file(file));
  SPILLWAY_TRY(config, cli::read_scheduler_config(file, document));
  for (const std::string& warning : config.warnings) fmt::print(stderr, "spillway: warning: {}\n", warning);
  return config;
}

controllers::Scheduler::Options make_scheduler_options(const cli::SchedulerConfig& config, bool conditions_literally) {
  controllers::Scheduler::Options options;
  options.profiles = config.profiles;
  options.backoff = config.backoff;
  options.claims_timeout = config.claims_timeout;
  for (scheduling::Profile& profile : options.profiles) {
    if (conditions_literally) profile.conditions = scheduling::NodeConditions::kLiterally;
  }
  return options;
}

}  // namespace spillway::apps
