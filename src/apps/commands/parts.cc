// `spillway apiserver | scheduler`: each part alone.
#include "apps/commands/commands.h"
#include "apps/node/node_options.h"
#include "apps/process/engine_part.h"
#include "apps/process/process.h"
#include "apps/server/api_server_part.h"
#include "apps/view/remote.h"
#include "controllers/scheduling/scheduler.h"
#include "runtime/entropy.h"

#include <utility>

namespace spillway::apps {

namespace {

/// Runs one engine against the server of a kubeconfig.
template <typename MakeEngine>
int run_engine(const cli::LogArgs& log, const cli::ClusterArgs& api, MakeEngine make_engine) {
  if (const auto named = named_kubeconfigs(api); !named) {
    print_error(named.error());
    return cli::kExitUsage;
  }
  Process process(log);
  auto server = connect_remote(process.loop(), api);
  if (!server) {
    print_error(server.error());
    return cli::kExitUsage;
  }
  const Rng rng(runtime::entropy());
  process.add(std::make_unique<EnginePart>(process.loop(), make_engine(process, rng), std::move(server->transport)));
  return process.run();
}

}  // namespace

int run_apiserver(const cli::LogArgs& log, const cli::ApiserverCommand& command) {
  Process process(log);
  if (const Outcome traced = process.trace(command.trace, "spillway-apiserver"); !traced) {
    print_error(traced.error());
    return cli::kExitUsage;
  }
  auto server = ApiServerPart::create(process, command.serving, [] {});
  if (!server) {
    print_error(server.error());
    const bool of_flag = server.error().at.starts_with("--");  // or of what the data directory holds
    return of_flag ? cli::kExitUsage : cli::kExitFailure;
  }
  process.add(*std::move(server));
  return process.run();
}

int run_scheduler(const cli::LogArgs& log, const cli::SchedulerCommand& command) {
  return run_engine(log, command.api, [&command](Process& process, const Rng& rng) {
    return std::make_unique<controllers::Scheduler>(make_scheduler_options(command.conditions_literally), rng,
                                                    process.log(), process.metrics());
  });
}

}  // namespace spillway::apps
