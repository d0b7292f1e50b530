// `spillway dashboard`: a page that shows a cluster, for the person who started it.
#include "apps/commands/commands.h"
#include "apps/process/process.h"
#include "apps/process/terminal.h"
#include "apps/view/controller_client.h"
#include "apps/view/remote.h"
#include "apps/what_if/dashboard_what_if.h"
#include "base/version.h"
#include "client/api_client.h"
#include "wire/client/kubeconfig.h"
#include "wire/dashboard/dashboard_server.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
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

wire::ControllerWay::Options way_to_controllers(const wire::Kubeconfig& config) {
  const std::string lease = cli::ControllerTargetArgs().lease;
  const std::size_t slash = lease.find('/');
  return {.lease_path =
              client::object_path("coordination.k8s.io/v1", "leases", lease.substr(0, slash), lease.substr(slash + 1)),
          .endpoint = [config](const api::Json& held) -> Result<wire::HttpEndpoint> {
            const std::string url(held.string_at({"metadata", "annotations", kUrlAnnotation}));
            if (url.empty()) return make_error(ErrorCode::kServiceUnavailable, "the lease names no address");
            return controller_endpoint(config, url,
                                       std::string(held.string_at({"metadata", "annotations", kAuthorityAnnotation})));
          }};
}

}  // namespace

int run_dashboard(const cli::LogArgs& log, const cli::DashboardCommand& command) {
  const auto config = find_kubeconfig(command.api);
  auto endpoint = config ? wire::make_endpoint(*config, config->path, offered_protocols())
                         : Result<wire::HttpEndpoint>(config.error());
  if (!endpoint) {
    print_error(endpoint.error());
    return cli::kExitUsage;
  }
  Process process(log);
  auto server = wire::DashboardServer::start(
      process.loop(),
      {.address = command.bind_address,
       .port = command.port,
       .endpoint = *std::move(endpoint),
       .controllers = way_to_controllers(*config),
       .what_if = command.what_if ? std::make_shared<DashboardWhatIf>(process.loop(), command.api) : nullptr,
       .version = std::string(program_version()),
       .log = process.log()});
  if (!server) {
    print_error(server.error());
    return cli::kExitFailure;
  }
  print_out("{}\n", (*server)->url());
  std::fflush(stdout);
  process.add(std::make_unique<DashboardPart>(*std::move(server)));
  return process.run();
}

}  // namespace spillway::apps
