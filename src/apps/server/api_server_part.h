// The API server of a process: store, engine, HTTP server, certificates, and the kubeconfig of its administrator.
#pragma once

#include "apiserver/server.h"
#include "apps/process/process.h"
#include "apps/server/audit_part.h"
#include "apps/server/local_gateway.h"
#include "cli/flags/command_line.h"
#include "store/sqlite/sqlite_store.h"
#include "wire/server/api_endpoint.h"
#include "wire/server/authenticator.h"
#include "wire/server/bootstrap_token_table.h"
#include "wire/server/http_server.h"
#include "wire/tls/certificate_reader.h"
#include "wire/tls/request_authority.h"
#include "wire/tls/token_key.h"
#include "wire/transport/in_process_transport.h"
#include "wire/transport/node_gateway.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::apps {

class ApiServerPart final : public Part {
 public:
  /// The answer to a GET of this path by somebody who may; nullopt: not one of ours.
  using MorePages = std::function<std::optional<api::Response>(std::string_view path)>;

  /// Opens the store and begins to serve; `serving` is called once on the loop when requests are answered and the
  /// kubeconfig is written. Errors that come later end the process.
  static Result<std::unique_ptr<ApiServerPart>> create(Process& process, const cli::ServingArgs& args,
                                                       std::function<void()> serving, MorePages pages = {},
                                                       apiserver::ApiServer::Controllers controllers = {});
  ~ApiServerPart() override;

  void stop(runtime::Loop::Task done) override;

  /// A way to the server without HTTP, as an administrator.
  std::unique_ptr<client::Transport> connect(std::string user);

  /// Nodes of this process; others are reached over HTTPS.
  LocalGateway& local_nodes() { return gateway_; }

  const std::string& data_dir() const { return data_dir_; }

 private:
  ApiServerPart(Process& process, const cli::ServingArgs& args, MorePages pages,
                apiserver::ApiServer::Controllers controllers);

  Outcome open(std::function<void()> serving);
  Outcome open_tokens();
  Outcome serve();
  Result<std::string> agents_authority_pem() const;
  void reach_nodes(std::shared_ptr<const wire::TlsContext> tls);

  Process& process_;
  cli::ServingArgs args_;
  MorePages pages_;
  apiserver::ApiServer::Controllers controllers_;
  std::string data_dir_;
  std::shared_ptr<const wire::TokenKey> token_key_;
  std::shared_ptr<const wire::Authenticator> authenticator_;
  std::unique_ptr<AuditPart> audit_;  // null: there is none; first, so that it hears all the others end
  LocalGateway gateway_;
  wire::OpensslCertificateReader certificate_reader_;
  std::optional<wire::OpensslRequestAuthority>
      serving_authority_;                                          // nullopt: without TLS there are no agents elsewhere
  std::optional<wire::OpensslRequestAuthority> client_authority_;  // as serving_authority_
  std::shared_ptr<wire::BootstrapTokenTable> bootstrap_tokens_;    // null: they are not enabled
  std::unique_ptr<wire::HttpsNodeGateway> remote_nodes_;
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<apiserver::ApiServer> server_;
  std::unique_ptr<wire::ApiEndpoint> endpoint_;
  std::unique_ptr<wire::HttpServer> http_;
};

/// DIR as given; else /var/lib/spillway for root, ~/.local/share/spillway for others.
std::string resolve_data_dir(const std::string& given);

}  // namespace spillway::apps
