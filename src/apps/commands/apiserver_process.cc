// `spillway apiserver`: the API server alone.
#include "apps/commands/commands.h"
#include "apps/process/process.h"
#include "apps/server/api_server_part.h"

#include <utility>

namespace spillway::apps {

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

}  // namespace spillway::apps
