#include "apps/server/api_server_part.h"

#include "apps/server/certificates.h"
#include "host/kernel/kernel_file.h"
#include "runtime/entropy.h"
#include "wire/client/kubeconfig.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace spillway::apps {

namespace {

constexpr Duration kStopGrace = seconds(5);
const std::vector<std::string> kAdministratorGroups{"system:masters", "system:authenticated"};

std::string url_of(const cli::ServingArgs& args, std::uint16_t port) {
  const bool any = args.bind_address == "0.0.0.0" || args.bind_address == "::";
  const std::string host = any ? "127.0.0.1" : args.bind_address;
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", args.insecure_http ? "http" : "https", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

/// Keys and objects with secrets are in it: it is its owner's alone, or at least nobody else's to write.
Outcome make_data_dir(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  struct stat found{};
  const bool made = !error && (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) && stat(path.c_str(), &found) == 0 &&
                    access(path.c_str(), W_OK) == 0;
  if (!made && !error) error = std::error_code(errno, std::generic_category());
  if (made && !S_ISDIR(found.st_mode)) error = std::make_error_code(std::errc::not_a_directory);
  if (error)
    return Error{ErrorCode::kForbidden, fmt::format("data directory cannot be written: {}", error.message()), path};
  if (found.st_uid != geteuid() && found.st_uid != 0) {
    return Error{ErrorCode::kForbidden, fmt::format("data directory belongs to user {}", found.st_uid), path};
  }
  if ((found.st_mode & S_IWOTH) != 0) {
    return Error{ErrorCode::kForbidden, "data directory may be written by everybody; expected mode 0700", path};
  }
  return {};
}

apiserver::AdmissionRules admission_rules(const cli::ServingArgs& args) {
  const bool off = std::ranges::find(args.admission_off, "PodTolerationRestriction") != args.admission_off.end();
  return {.memory_pressure_toleration = !off};
}

}  // namespace

std::string resolve_data_dir(const std::string& given) {
  if (!given.empty()) return std::filesystem::absolute(given).lexically_normal().string();
  if (geteuid() == 0) return "/var/lib/spillway";
  const char* home = std::getenv("HOME");
  return (std::filesystem::path(home != nullptr ? home : ".") / ".local/share/spillway").string();
}

ApiServerPart::ApiServerPart(Process& process, const cli::ServingArgs& args, MorePages pages,
                             apiserver::ApiServer::Controllers controllers)
    : process_(process),
      args_(args),
      pages_(std::move(pages)),
      controllers_(controllers),
      data_dir_(resolve_data_dir(args.data_dir)) {}

ApiServerPart::~ApiServerPart() = default;

Result<std::unique_ptr<ApiServerPart>> ApiServerPart::create(Process& process, const cli::ServingArgs& args,
                                                             std::function<void()> serving, MorePages pages,
                                                             apiserver::ApiServer::Controllers controllers) {
  std::unique_ptr<ApiServerPart> part(
      new ApiServerPart(process, args, std::move(pages), controllers));  // NOLINT: private constructor
  SPILLWAY_TRY_VOID(part->open(std::move(serving)));
  return part;
}

Outcome ApiServerPart::open(std::function<void()> serving) {
  SPILLWAY_TRY(audit, AuditPart::open(process_, args_.audit));
  audit_ = std::move(audit);
  SPILLWAY_TRY_VOID(make_data_dir(data_dir_));
  runtime::Loop& loop = process_.loop();
  const auto post = [&loop](std::move_only_function<void()> task) { loop.post(std::move(task)); };
  SPILLWAY_TRY(store, store::SqliteStore::open(data_dir_ + "/spillway.db", post,
                                               {.log = process_.log(), .metrics = &process_.metrics()}));
  store_ = std::move(store);
  SPILLWAY_TRY_VOID(open_tokens());
  if (!args_.insecure_http) {
    SPILLWAY_TRY(authority, open_serving_authority(data_dir_, loop.now().wall));
    serving_authority_ = std::move(authority);
    SPILLWAY_TRY(clients, open_client_authority(data_dir_, loop.now().wall));
    client_authority_ = std::move(clients);
  }
  server_ = std::make_unique<apiserver::ApiServer>(
      *store_, process_.metrics(), process_.log(),
      apiserver::ApiServer::Options{
          .seed = runtime::entropy(),
          .version = SPILLWAY_VERSION,
          .controllers = controllers_,
          .gateway = &gateway_,
          .signer = token_key_.get(),
          .token_life_max = args_.token_life_max,
          .authenticator = authenticator_.get(),
          .certificates = &certificate_reader_,
          .serving_authority = serving_authority_ ? &*serving_authority_ : nullptr,
          .client_authority = client_authority_ ? &*client_authority_ : nullptr,
          .bootstrap_tokens = bootstrap_tokens_.get(),
          .auditor = audit_ ? &audit_->auditor() : nullptr,
          .root_ca_pem = client_authority_ ? client_authority_->certificate_pem() : std::string(),
          .admission = admission_rules(args_),
          .rearm =
              [this] {
                if (endpoint_) endpoint_->rearm();
              },
          .pages = pages_});
  endpoint_ = std::make_unique<wire::ApiEndpoint>(loop, *server_);
  server_->start(loop.now(), [this, serving = std::move(serving)](Outcome ready) {
    if (ready) ready = serve();
    if (!ready) return process_.fail(ready.error());
    serving();
  });
  return {};
}

/// Whom requests come from, by what they show.
Outcome ApiServerPart::open_tokens() {
  SPILLWAY_TRY(key, wire::TokenKey::open(data_dir_ + "/pki"));
  token_key_ = std::move(key);
  if (args_.bootstrap_tokens) bootstrap_tokens_ = std::make_shared<wire::BootstrapTokenTable>();
  wire::Authenticator::Options options{.tokens = {}, .account_key = token_key_, .bootstrap_tokens = bootstrap_tokens_};
  if (args_.insecure_http) {
    options.anonymous = {"admin", "", kAdministratorGroups};
    process_.log().warning("plain HTTP without authentication: every process of this machine is an administrator",
                           {{"flag", "--insecure-http"}, {"address", args_.bind_address}});
  } else if (!args_.token_auth_file.empty()) {
    SPILLWAY_TRY(read, wire::read_token_file(args_.token_auth_file));
    options.tokens = std::move(read);
  }
  authenticator_ = std::make_shared<const wire::Authenticator>(std::move(options));
  return {};
}

/// Certificates, the listening socket, the kubeconfig: in this order, so that whoever finds the kubeconfig is answered.
Outcome ApiServerPart::serve() {
  wire::HttpServer::Options options;
  options.address = args_.bind_address;
  options.port = args_.port;
  options.log = process_.log();
  options.metrics = &process_.metrics();
  wire::Kubeconfig config;
  std::shared_ptr<const wire::TlsContext> nodes_tls;
  options.authenticator = authenticator_;
  options.auditor = audit_ ? &audit_->auditor() : nullptr;
  if (!args_.insecure_http) {
    SPILLWAY_TRY(agents_authority, agents_authority_pem());
    const auto protocols = args_.http2_off ? wire::Protocols::kHttp11 : wire::Protocols::kHttp2AndHttp11;
    SPILLWAY_TRY(credentials, prepare_credentials(data_dir_, args_.bind_address, agents_authority, protocols,
                                                  process_.loop().now().wall));
    options.tls = credentials.server;
    config = std::move(credentials.administrator);
    nodes_tls = credentials.nodes;
  }
  http_ = std::make_unique<wire::HttpServer>(process_.loop(), *endpoint_, std::move(options));
  SPILLWAY_TRY_VOID(http_->start());
  if (nodes_tls) reach_nodes(std::move(nodes_tls));
  config.server = url_of(args_, http_->port());
  const std::string path = args_.write_kubeconfig.empty() ? data_dir_ + "/kubeconfig" : args_.write_kubeconfig;
  SPILLWAY_TRY_VOID(wire::write_kubeconfig(path, config, "spillway"));
  process_.log().info("serving", {{"url", config.server}, {"kubeconfig", path}});
  return {};
}

/// Who signs the serving certificates of agents; empty: nobody has to.
Result<std::string> ApiServerPart::agents_authority_pem() const {
  if (args_.kubelet_insecure_tls) {
    process_.log().warning("whoever answers for a node is believed", {{"flag", "--kubelet-insecure-tls"}});
    return std::string();
  }
  std::string pem = serving_authority_->certificate_pem();
  if (!args_.kubelet_certificate_authority.empty()) {
    SPILLWAY_TRY(more, read_file(args_.kubelet_certificate_authority));
    pem += "\n" + more;
  }
  return pem;
}

/// After the server has its port: an address that leads back to it is refused.
void ApiServerPart::reach_nodes(std::shared_ptr<const wire::TlsContext> tls) {
  using Agents = wire::HttpsNodeGateway::Options::Agents;
  remote_nodes_ = std::make_unique<wire::HttpsNodeGateway>(
      process_.loop(),
      wire::HttpsNodeGateway::Options{.tls = std::move(tls),
                                      .agents = args_.kubelet_insecure_tls ? Agents::kUnverified : Agents::kVerified,
                                      .own_port = http_->port(),
                                      .limits = {}});
  gateway_.set_remote(remote_nodes_.get());
}

std::unique_ptr<client::Transport> ApiServerPart::connect(std::string user) {
  return std::make_unique<wire::InProcessTransport>(process_.loop(), *endpoint_,
                                                    api::UserInfo{std::move(user), "", kAdministratorGroups});
}

void ApiServerPart::stop(runtime::Loop::Task done) {
  server_->stop();
  auto close_store = [this, done = std::move(done)]() mutable {
    http_.reset();
    store_->stop();
    endpoint_.reset();
    server_.reset();
    store_.reset();
    done();
  };
  if (!http_ || http_->port() == 0) return close_store();
  http_->stop(kStopGrace, std::move(close_store));
}

}  // namespace spillway::apps
