#include "apps/view/controller_client.h"

#include "apps/view/remote.h"
#include "client/api_client.h"
#include "wire/transport/https_transport.h"

#include <utility>

namespace spillway::apps {

Result<std::unique_ptr<ControllerClient>> ControllerClient::create(runtime::Loop& loop,
                                                                   const cli::ControllerTargetArgs& args) {
  std::unique_ptr<ControllerClient> client(new ControllerClient(loop, args));  // NOLINT: private constructor
  SPILLWAY_TRY(config, find_kubeconfig(args.api));
  SPILLWAY_TRY(remote, connect_remote(loop, config));
  client->config_ = std::move(config);
  client->cluster_ = std::make_unique<ClusterView>(loop, std::move(remote.transport));
  return client;
}

Result<ControllerClient::Found> ControllerClient::locate(const std::string& path) {
  const std::size_t slash = args_.lease.find('/');
  if (slash == std::string::npos) return invalid("--lease", "expected NAMESPACE/NAME, got \"{}\"", args_.lease);
  std::string none = "the API server has none";
  if (args_.controller.empty()) {
    auto page = cluster_->get(path);
    if (page) return Found{.page = *std::move(page), .url = {}, .authority = {}};
    // An API server without such a page answers 404 for the path, or 403 to every user.
    const bool names_node = page.error().text().contains("nodes \"");
    const bool no_page =
        page.error().code == ErrorCode::kForbidden || (page.error().code == ErrorCode::kNotFound && !names_node);
    if (!no_page) return page.error();
    if (page.error().code == ErrorCode::kForbidden) none = "the API server says: " + page.error().text();
  }
  auto lease = cluster_->get(client::object_path("coordination.k8s.io/v1", "leases", args_.lease.substr(0, slash),
                                                 args_.lease.substr(slash + 1)));
  if (!lease && args_.controller.empty()) {
    return make_error(ErrorCode::kServiceUnavailable, "no controller found: {}, and lease {}: {}", none, args_.lease,
                      lease.error().text());
  }
  std::string url = args_.controller;
  std::string authority;
  if (lease) {
    if (url.empty()) url = lease->string_at({"metadata", "annotations", kUrlAnnotation});
    authority = lease->string_at({"metadata", "annotations", kAuthorityAnnotation});
  }
  if (url.empty()) {
    return make_error(ErrorCode::kServiceUnavailable,
                      "no controller found: {}, and lease {} names no address: is its holder an older version?", none,
                      args_.lease);
  }
  return Found{.page = {}, .url = std::move(url), .authority = std::move(authority)};
}

Result<wire::HttpEndpoint> ControllerClient::endpoint_of(Found found) const {
  if (found.page) return wire::make_endpoint(config_, config_.path, offered_protocols());
  return controller_endpoint(config_, std::move(found.url), std::move(found.authority));
}

Result<wire::HttpEndpoint> ControllerClient::find(const std::string& path) {
  SPILLWAY_TRY(found, locate(path));
  return endpoint_of(std::move(found));
}

Result<api::Json> ControllerClient::get(const std::string& path) {
  SPILLWAY_TRY(found, locate(path));
  if (found.page) return *std::move(found.page);
  wire::HttpsTransport::Options options;
  SPILLWAY_TRY(endpoint, endpoint_of(std::move(found)));
  options.endpoint = std::move(endpoint);
  ClusterView controller(loop_, std::make_unique<wire::HttpsTransport>(loop_, std::move(options)));
  return controller.get(path);
}

Result<wire::HttpEndpoint> controller_endpoint(wire::Kubeconfig config, std::string url, std::string authority) {
  config.server = std::move(url);
  config.authority_pem = std::move(authority);
  config.tls_server_name.clear();
  return wire::make_endpoint(config, "--controller", offered_protocols());
}

}  // namespace spillway::apps
