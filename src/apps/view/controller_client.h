// The way from a command to the pages of the controllers that lead: through the API server they share a process with,
// else by the address on their lease. Thread: main, as ClusterView.
#pragma once

#include "api/json/json.h"
#include "apps/view/cluster_view.h"
#include "base/error.h"
#include "cli/flags/command_line.h"
#include "runtime/loop.h"
#include "wire/client/http_client.h"
#include "wire/client/kubeconfig.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::apps {

// Annotations of the lease.
inline constexpr std::string_view kUrlAnnotation = "spillway.dev/controller-url";
inline constexpr std::string_view kAuthorityAnnotation = "spillway.dev/controller-certificate";

/// The endpoint of a controller's pages: the credentials are those for the API server, `authority` is the certificate
/// of its lease. kInvalid: no valid address.
Result<wire::HttpEndpoint> controller_endpoint(wire::Kubeconfig config, std::string url, std::string authority);

class ControllerClient {
 public:
  /// kInvalid: a kubeconfig that does not parse.
  static Result<std::unique_ptr<ControllerClient>> create(runtime::Loop& loop, const cli::ControllerTargetArgs& args);

  /// The JSON of a page. kServiceUnavailable: no controller answered, or the one that did does not lead.
  Result<api::Json> get(const std::string& path);

  /// The endpoint of that page: the API server, or the controller's own server. Errors are those of get().
  Result<wire::HttpEndpoint> find(const std::string& path);

  /// The namespace of the kubeconfig's context; empty: none.
  const std::string& name_space() const { return config_.name_space; }

  /// The API server.
  ClusterView& cluster() { return *cluster_; }

 private:
  ControllerClient(runtime::Loop& loop, cli::ControllerTargetArgs args) : loop_(loop), args_(std::move(args)) {}

  struct Found {
    std::optional<api::Json> page;  // from the API server; if set, the others are empty
    std::string url;
    std::string authority;
  };

  Result<Found> locate(const std::string& path);
  Result<wire::HttpEndpoint> endpoint_of(Found found) const;

  runtime::Loop& loop_;
  cli::ControllerTargetArgs args_;
  wire::Kubeconfig config_;
  std::unique_ptr<ClusterView> cluster_;
};

}  // namespace spillway::apps
