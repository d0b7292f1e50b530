#include "apps/view/remote.h"

#include "wire/client/kubeconfig.h"
#include "wire/transport/https_transport.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::apps {

Result<Remote> connect_remote(runtime::Loop& loop, const std::string& kubeconfig) {
  SPILLWAY_TRY(config, wire::read_kubeconfig(kubeconfig));
  wire::HttpsTransport::Options options;
  SPILLWAY_TRY(endpoint, wire::make_endpoint(config, kubeconfig));
  const std::string host = fmt::format("{}:{}", endpoint.host, endpoint.port);
  options.endpoint = std::move(endpoint);
  return Remote{std::make_unique<wire::HttpsTransport>(loop, std::move(options)), config.authority_pem, host};
}

}  // namespace spillway::apps
