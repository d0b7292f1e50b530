// The API server of a process: store, engine, HTTP server, certificates, and the kubeconfig of its administrator.
#pragma once

#include "apiserver/server.h"
#include "apiserver/store_overrides.h"
#include "apps/process/process.h"
#include "apps/server/audit_part.h"
#include "apps/server/local_gateway.h"
#include "apps/server/server_certificates.h"
#include "apps/what_if/server_what_if.h"
#include "cli/flags/command_line.h"
#include "store/server_addresses.h"
#include "store/server_lease.h"
#include "store/server_roster.h"
#include "store/sqlite/directory_lock.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store.h"
#include "telemetry/memory_table.h"
#include "wire/server/api_endpoint.h"
#include "wire/server/authenticator.h"
#include "wire/server/bootstrap_token_table.h"
#include "wire/server/http_server.h"
#include "wire/tls/certificate_reader.h"
#include "wire/tls/token_key.h"
#include "wire/transport/aggregated_gateway.h"
#include "wire/transport/in_process_transport.h"
#include "wire/transport/node_gateway.h"
#include "wire/transport/pod_gateway.h"
#include "wire/transport/webhook_caller.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apps {

class ApiServerPart final : public Part {
 public:
  /// GETs of paths outside the API, by authorized users. Each may be empty.
  struct MorePages {
    /// nullopt: not one of these pages.
    std::function<std::optional<api::Response>(std::string_view path)> now;
    /// Pages that have to read first: false: not such a path; else `answer` is called once, unless the process stops.
    std::function<bool(std::string_view path, std::function<void(api::Response)> answer)> later;
  };

  /// Opens the store and begins to serve; `serving` is called once on the loop when requests are answered and the
  /// kubeconfig is written. Later errors end the process.
  static Result<std::unique_ptr<ApiServerPart>> create(Process& process, const cli::ServingArgs& args,
                                                       std::function<void()> serving, MorePages pages = {},
                                                       apiserver::ApiServer::Controllers controllers = {});
  ~ApiServerPart() override;

  void stop(runtime::Loop::Task done) override;

  /// A way to the server without HTTP, as this user, who may do what roles or, for a node, the node authorizer let him.
  std::unique_ptr<client::Transport> connect(std::string_view user);

  /// A transport for a user of the group system:masters, which may do everything.
  std::unique_ptr<client::Transport> connect_administrator(std::string_view user);

  /// True if other processes may serve the same objects.
  bool has_others() const { return store_->is_shared(); }

  /// The host by which processes of this machine reach it, once it serves.
  std::string local_host() const;

  /// The host by which pods with addresses of their own reach the server; empty: they cannot, unless serve_pods() is
  /// called.
  std::string pods_host() const;

  /// Serves pods of this machine as well, at an address of their bridge, where clients of other machines are refused:
  /// the Service `kubernetes` leads there. `networks`: the pods'. Not where other processes serve the same objects:
  /// pods of other machines would be led there, too.
  Outcome serve_pods(const std::string& address, std::vector<api::IpRange> networks);

  std::uint16_t port() const { return http_->port(); }

  /// The path of the administrator's kubeconfig: as it was given, or below the data directory.
  std::string kubeconfig_file() const;

  bool speaks_tls() const { return !args_.insecure_http; }

  /// Nodes of this process; others are reached over HTTPS.
  LocalGateway& local_nodes() { return gateway_; }

  const std::string& data_dir() const { return data_dir_; }

 private:
  ApiServerPart(Process& process, const cli::ServingArgs& args, MorePages pages,
                apiserver::ApiServer::Controllers controllers);

  Outcome open(std::function<void()> serving);
  Result<std::vector<apiserver::StorePlan>> plan_stores() const;
  Outcome open_store(const std::vector<apiserver::StorePlan>& separate);
  std::vector<apiserver::SeparateStore> separate_stores() const;
  Result<std::string> keys_in_common() const;
  Outcome join(std::function<void()> serving);
  void refuse_to_join(const std::string& keys, const Error& error);
  void resign(const std::function<void()>& done);
  void check_copies(std::size_t place, std::function<void()> serving);
  void find_unserved();
  void start(std::function<void()> serving);
  Outcome take_part();
  Outcome announce();
  std::optional<api::Response> openid_page(std::string_view path) const;
  void announce_at(const std::vector<std::string>& places);
  Outcome open_tokens();
  Outcome serve();
  Outcome open_certificates();
  Outcome write_kubeconfig(wire::Kubeconfig config);
  void reach_nodes(std::shared_ptr<const wire::TlsContext> tls);
  void sync_certificates();
  Outcome renew_certificates(Now now);
  std::vector<apiserver::HealthCheck> checks() const;
  telemetry::MemoryRows memory() const;

  Process& process_;
  cli::ServingArgs args_;
  MorePages pages_;
  apiserver::ApiServer::Controllers controllers_;
  std::string data_dir_;
  std::shared_ptr<const wire::TokenKey> token_key_;
  std::string own_url_;  // as clients in the cluster reach this server
  std::shared_ptr<const wire::Authenticator> authenticator_;
  std::unique_ptr<AuditPart> audit_;  // null: there is none; first, so that it is ended last
  LocalGateway gateway_;
  wire::OpensslCertificateReader certificate_reader_;
  std::unique_ptr<ServerCertificates> certificates_;  // null: without TLS there are no agents on other machines
  bool certificates_are_new_ = false;                 // and not in use yet
  std::string renewal_problem_;                       // the last reported problem
  std::optional<runtime::Loop::TimerId> certificate_timer_;
  std::shared_ptr<wire::BootstrapTokenTable> bootstrap_tokens_;  // null: bootstrap tokens are not enabled
  std::unique_ptr<wire::HttpsNodeGateway> remote_nodes_;
  std::unique_ptr<wire::HttpsPodGateway> pods_;
  std::unique_ptr<wire::HttpsAggregatedGateway> aggregated_;
  std::unique_ptr<wire::HttpsWebhookCaller> webhooks_;
  std::unique_ptr<ServerWhatIf> what_if_;  // null: futures are not played here
  std::unique_ptr<store::Store> store_;
  store::SqliteStore* embedded_ = nullptr;  // points to store_, unless the store is an etcd

  /// An etcd for some of the resources.
  struct Separate {
    apiserver::StorePlan plan;
    std::unique_ptr<store::Store> store;
  };

  std::vector<Separate> separate_;
  store::sqlite::DirectoryLock data_lock_;  // for stores that do not lock the data directory themselves
  /// One roster in each store, the main one first; empty: the stores cannot be shared.
  std::vector<std::unique_ptr<store::ServerRoster>> rosters_;
  std::size_t joining_ = 0;                            // separate stores still joining
  std::unique_ptr<store::ServerAddresses> addresses_;  // null: the store is not shared, or this server does not serve
  std::unique_ptr<store::ServerLease> lease_;          // elects the collecting server; null until it serves
  std::unique_ptr<apiserver::ApiServer> server_;
  std::unique_ptr<wire::ApiEndpoint> endpoint_;
  std::unique_ptr<wire::HttpServer> http_;
};

}  // namespace spillway::apps
