// `spillway dashboard`: a page that shows a cluster, for the person who started it.
#include "apps/commands/commands.h"
#include "apps/process/process.h"
#include "apps/view/remote.h"
#include "wire/client/kubeconfig.h"
#include "wire/dashboard/dashboard_server.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <utility>

namespace spillway::apps {

namespace {

class DashboardPart final : public Part {
 public:
  explicit DashboardPart(std::unique_ptr<wire::DashboardServer> server) : server_(std::move(server)) {}

  void stop(runtime::Loop::Task done) override { server_->stop(std::move(done)); }

 private:
  std::unique_ptr<wire::DashboardServer> server_;
};

}  // namespace

int run_dashboard(const cli::LogArgs& log, const cli::DashboardCommand& command) {
  const auto config = find_kubeconfig(command.api);
  auto endpoint = config ? wire::make_endpoint(*config, config->path) : Result<wire::HttpEndpoint>(config.error());
  if (!endpoint) {
    print_error(endpoint.error());
    return cli::kExitUsage;
  }
  Process process(log);
  auto server = wire::DashboardServer::start(process.loop(), {.address = command.bind_address,
                                                              .port = command.port,
                                                              .endpoint = *std::move(endpoint),
                                                              .version = SPILLWAY_VERSION,
                                                              .log = process.log()});
  if (!server) {
    print_error(server.error());
    return cli::kExitFailure;
  }
  fmt::print("{}\n", (*server)->url());
  std::fflush(stdout);
  process.add(std::make_unique<DashboardPart>(*std::move(server)));
  return process.run();
}

}  // namespace spillway::apps
