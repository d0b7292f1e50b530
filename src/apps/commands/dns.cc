// `spillway dns`: the DNS server of a cluster, alone. Its HTTP server has health and metrics.
#include "apps/commands/commands.h"
#include "apps/controller/process_server.h"
#include "apps/dns/dns_part.h"
#include "apps/node/node_options.h"
#include "apps/process/engine_metrics.h"
#include "apps/process/process.h"
#include "apps/view/remote.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apps {
namespace {

/// The DNS server has no debug pages.
class NoPages final : public DebugPages {
 public:
  std::optional<api::Response> answer(std::string_view) const override { return std::nullopt; }
};

int fail_with(const Error& error) {
  print_error(error);
  return error.code == ErrorCode::kInvalid ? cli::kExitUsage : cli::kExitFailure;
}

}  // namespace

int run_dns(const cli::LogArgs& log, const cli::DnsCommand& command) {
  if (const auto named = named_kubeconfigs(command.api); !named) return fail_with(named.error());
  Process process(log);
  auto pages_server = connect_remote(process.loop(), command.api);
  if (!pages_server) return fail_with(pages_server.error());
  auto server = connect_remote(process.loop(), command.api);
  if (!server) return fail_with(server.error());
  std::vector<cli::ListenPlace> places = command.dns.listen;
  if (places.empty()) places.push_back({"0.0.0.0", cli::kDnsPort});
  auto transport = std::make_unique<CountedTransport>(std::move(server->transport), process.metrics(), server->host);
  auto part = DnsPart::create(process, command.dns, places, std::move(transport));
  if (!part) return fail_with(part.error());
  process.add(*std::move(part));
  auto pages = ProcessServer::create(process, command.serving, std::make_unique<NoPages>(),
                                     std::move(pages_server->transport), pages_server->authority_pem);
  if (!pages) return fail_with(pages.error());
  process.add(*std::move(pages));
  process.set_up_done();
  return process.run();
}

}  // namespace spillway::apps
