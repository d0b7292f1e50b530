// The HTTPS server of an agent that runs alone: logs, statistics and pods for the API server, for nobody else.
#pragma once

#include "apps/process.h"
#include "host/kubelet_endpoint.h"
#include "wire/http_server.h"

#include <memory>
#include <string>

namespace spillway::apps {

class NodeServer final : private wire::RequestHandler {
 public:
  /// Listens on a free port of `address`. `client_authority_pem` signs whom it believes; empty: it serves nobody, and
  /// says so.
  static Result<std::unique_ptr<NodeServer>> create(Process& process, const std::string& state_dir,
                                                    const std::string& address,
                                                    const std::string& client_authority_pem);

  std::uint16_t port() const { return http_->port(); }

  /// Until then every request is answered with 503.
  void set_endpoint(host::KubeletEndpoint* endpoint) { endpoint_ = endpoint; }

  void stop(runtime::Loop::Task done);

 private:
  NodeServer() = default;

  Ticket on_request(api::Request request, api::UserInfo user, std::shared_ptr<api::ResponseSink> sink) override;
  void on_abandoned(Ticket ticket) override;

  host::KubeletEndpoint* endpoint_ = nullptr;
  std::unique_ptr<wire::HttpServer> http_;
};

}  // namespace spillway::apps
