#include "apps/controller/scheduler_setup.h"

#include "apps/process/process.h"
#include "base/file.h"
#include "policy/lifecycle/brakes.h"
#include "wire/client/kubeconfig.h"
#include "yaml/yaml_document.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace spillway::apps {

namespace {

Outcome read_pem(const cli::ExtenderTls& tls, const std::string& data, const std::string& file, std::string& into) {
  into = data;
  if (!data.empty() || file.empty()) return {};
  auto text = read_file(file);
  if (!text) return invalid(tls.where, "{}", text.error().text());
  into = *std::move(text);
  return {};
}

Result<wire::HttpEndpoint> endpoint_of(const scheduling::Extender& extender, const cli::ExtenderTls& tls) {
  wire::Kubeconfig server;
  server.server = extender.url;
  server.verify = !tls.insecure;
  server.tls_server_name = tls.server_name;
  SPILLWAY_TRY_VOID(read_pem(tls, tls.ca_pem, tls.ca_file, server.authority_pem));
  SPILLWAY_TRY_VOID(read_pem(tls, tls.certificate_pem, tls.certificate_file, server.certificate_pem));
  SPILLWAY_TRY_VOID(read_pem(tls, tls.key_pem, tls.key_file, server.key_pem));
  return wire::make_endpoint(server, tls.where);
}

}  // namespace

Result<cli::SchedulerConfig> read_scheduler_file(const std::string& file) {
  if (file.empty()) return cli::SchedulerConfig();
  SPILLWAY_TRY(document, yaml::read_file(file));
  SPILLWAY_TRY(config, cli::read_scheduler_config(file, document));
  for (const std::string& warning : config.warnings) print_to_stderr(fmt::format("spillway: warning: {}\n", warning));
  return config;
}

Result<SchedulerSetup> make_scheduler_setup(const cli::SchedulerConfig& config, bool conditions_literally,
                                            const cli::PreemptionArgs& preemption) {
  SchedulerSetup setup;
  controllers::Scheduler::Options& options = setup.options;
  options.profiles = config.profiles;
  options.backoff = config.backoff;
  options.claims_timeout = config.claims_timeout;
  options.extenders = config.extenders.rules;
  options.respect_budgets = preemption.respect_budgets;
  if (!preemption.limit_deletions.empty()) {
    auto limits = lifecycle::parse_act_limits(preemption.limit_deletions);
    if (!limits) return invalid("--limit-deletions", "{}", limits.error().text());
    limits->per_zone.reset();  // victims are of any zone
    options.brakes.delete_pod = *std::move(limits);
  }
  for (scheduling::Profile& profile : options.profiles) {
    if (conditions_literally) profile.conditions = scheduling::NodeConditions::kLiterally;
  }
  for (std::size_t i = 0; i < options.extenders.size(); ++i) {
    SPILLWAY_TRY(endpoint, endpoint_of(options.extenders[i], config.extenders.tls[i]));
    setup.extenders.push_back(std::move(endpoint));
  }
  return setup;
}

MadeScheduler make_scheduler(const SchedulerSetup& setup, Rng rng, telemetry::Log log, telemetry::Registry& metrics,
                             const SchedulerFence& fence) {
  auto scheduler = std::make_unique<controllers::Scheduler>(setup.options, rng, std::move(log), metrics);
  MadeScheduler made;
  made.scheduler = scheduler.get();
  made.acting = std::move(scheduler);
  if (fence) made.acting = fence(std::move(made.acting));
  made.extenders = setup.options.extenders;
  made.endpoints = setup.extenders;
  return made;
}

}  // namespace spillway::apps
