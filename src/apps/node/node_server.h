// The HTTPS server of a node: logs, statistics, metrics, pods and state, for users that the API server authorizes.
#pragma once

#include "agent/contract/gate_settings.h"
#include "agent/serving/node_certificate.h"
#include "agent/serving/node_request.h"
#include "agent/serving/request_gate.h"
#include "apps/node/node_site.h"
#include "apps/node/serving_context.h"
#include "apps/server/certificates.h"
#include "client/engine.h"
#include "host/files/watched_files.h"
#include "host/kubelet_endpoint.h"
#include "runtime/engine_driver.h"
#include "telemetry/log.h"
#include "wire/server/http_server.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace spillway::apps {

class NodeServer final : private wire::RequestHandler {
 public:
  /// Upstream's enableDebuggingHandlers: the paths that lead into pods (exec, attach, port forwarding, logs).
  enum class Debugging { kServed, kRefused };

  struct Options {
    std::string node_name;
    std::string state_dir;  // folder of the certificate
    std::string address;
    std::uint16_t port = 0;  // 0: the system picks a free one
    agent::GateSettings gate;
    NodeTls tls;
    /// PEM files of a serving certificate and its key, read again when they change; empty: the node makes its own, and
    /// asks the API server for one.
    std::string certificate_file;
    std::string key_file;
    /// The file of `tls.client_authority_pem`, read again when it changes; empty: none.
    std::string client_authority_file;
    Debugging debugging = Debugging::kServed;
  };

  /// Listens. `transport` leads to the API server, which authorizes users; it must outlive the server.
  static Result<std::unique_ptr<NodeServer>> create(const NodeSite& site, client::Transport& transport,
                                                    const Options& options);

  std::uint16_t port() const { return http_->port(); }

  /// Before this call every request is answered with 503.
  void set_endpoint(host::KubeletEndpoint* endpoint) { endpoint_ = endpoint; }

  const agent::RequestGate& gate() const { return gate_; }

  void stop(runtime::Loop::Task done);

 private:
  struct Open {
    std::optional<host::KubeletEndpoint::RequestId> admitted;  // nullopt: the request waits for its authorization
  };

  NodeServer(const NodeSite& site, client::Transport& transport, const Options& options);

  Ticket on_request(wire::Incoming incoming, std::shared_ptr<api::ResponseSink> sink) override;
  void on_abandoned(Ticket ticket) override;
  Outcome replace(Outcome replaced);
  void watch_files(const Options& options, const wire::KeyPair& identity);
  void report(const std::string& file, const Outcome& replaced);
  void on_verdict(Ticket ticket, const agent::NodeRequest& asked, const agent::RequestGate::Verdict& verdict,
                  const std::shared_ptr<api::ResponseSink>& sink);

  runtime::Loop& loop_;
  telemetry::Log log_;
  agent::FineGrained fine_grained_;
  Debugging debugging_;
  bool asks_for_certificate_;
  agent::RequestGate gate_;
  runtime::EngineDriver driver_;
  ServingContext context_;
  NodeServingKeys keys_;
  agent::NodeCertificate certificate_;
  runtime::EngineDriver certificate_driver_;
  host::KubeletEndpoint* endpoint_ = nullptr;
  Ticket last_ticket_ = 0;
  std::map<Ticket, Open> open_;
  std::unique_ptr<wire::HttpServer> http_;
  std::optional<host::WatchedFiles> identity_files_;  // nullopt: the node makes its own certificate
  std::optional<host::WatchedFiles> authority_file_;
};

}  // namespace spillway::apps
