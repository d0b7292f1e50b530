// The port of a node without TLS and without authentication (readOnlyPort): health, pods, statistics and metrics, for
// monitoring of old. Everyone who reaches the address reads all of it, so it is off unless the configuration names it.
// Thread: loop. Bounds: those of a node's HTTPS server, and kRequestsPerSecond of all clients together: pages are
// written anew for each request. Source: Kubernetes docs, "Kubelet Configuration (v1beta1)"; docs/security.md.
#pragma once

#include "agent/serving/node_request.h"
#include "apps/node/node_site.h"
#include "base/token_bucket.h"
#include "host/kubelet_endpoint.h"
#include "wire/server/http_server.h"

#include <cstdint>
#include <memory>
#include <string>

namespace spillway::apps {

class ReadOnlyServer final : private wire::RequestHandler {
 public:
  /// Monitoring asks a few times a minute. Each answer may take some milliseconds of the node's loop.
  static constexpr float kRequestsPerSecond = 20;
  static constexpr int kRequestsAtOnce = 40;

  /// Listens.
  static Result<std::unique_ptr<ReadOnlyServer>> create(const NodeSite& site, const std::string& address,
                                                        std::uint16_t port);

  std::uint16_t port() const { return http_->port(); }

  /// Before this call, and with null, every request is answered with 503.
  void set_endpoint(host::KubeletEndpoint* endpoint) { endpoint_ = endpoint; }

  void stop(runtime::Loop::Task done) { http_->stop(Duration::zero(), std::move(done)); }

 private:
  explicit ReadOnlyServer(runtime::Loop& loop);

  Ticket on_request(wire::Incoming incoming, std::shared_ptr<api::ResponseSink> sink) override;
  void on_abandoned(Ticket ticket) override;

  runtime::Loop& loop_;
  TokenBucket pace_;
  host::KubeletEndpoint* endpoint_ = nullptr;
  std::unique_ptr<wire::HttpServer> http_;
};

}  // namespace spillway::apps
