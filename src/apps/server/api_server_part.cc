#include "apps/server/api_server_part.h"

#include "api/text/identities.h"
#include "apiserver/stored_values.h"
#include "apps/server/data_dir.h"
#include "apps/server/etcd.h"
#include "apps/server/serving_check.h"
#include "base/check.h"
#include "base/version.h"
#include "cli/config/admission_config.h"
#include "cli/config/flow_config.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/own_memory.h"
#include "host/observation/machine_info.h"
#include "runtime/entropy.h"
#include "store/incomplete_copy.h"
#include "wire/client/kubeconfig.h"
#include "wire/dashboard/dashboard_page.h"
#include "yaml/yaml_document.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace spillway::apps {

namespace {

constexpr Duration kStopGrace = seconds(5);
// ordinary clients' requests in flight or queued; as many again for vital ones
constexpr std::size_t kRequestsAtServer = 8192;
constexpr Duration kGiveBackMax = seconds(1);
constexpr Duration kCompactionInterval = minutes(5);
// separates, in the description that a server keeps in the store, its keys from its separate stores
constexpr std::string_view kSeparateKey = " separate=";
constexpr Duration kCertificatesEvery = minutes(1);
constexpr Duration kFilesEvery = seconds(10);  // certificate files may be replaced by other programs
constexpr std::string_view kCopyKeys =
    "; copy ca.crt, ca.key and sa.key, and the folder kubelet-serving, of its DATA_DIR/pki here";
const std::vector<std::string> kAdministratorGroups{std::string(api::kMastersGroup),
                                                    std::string(api::kAuthenticatedGroup)};

Error same_name(const std::string& data_dir, const std::string& name) {
  return make_error(ErrorCode::kConflict,
                    "{}/server-name: another server runs as {}, and has for longer; of a copied data directory delete "
                    "this file, and start again",
                    data_dir, name);
}

/// The other processors are left to the loop, the store and the collectors.
int http_threads(const cli::ServingArgs& args) {
  if (args.http_threads) return *args.http_threads;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 2, 1, 4);
}

bool is_any(const std::string& address) {
  return address == "0.0.0.0" || address == "::";
}

std::string host_on_this_machine(const cli::ServingArgs& args) {
  return is_any(args.bind_address) ? "127.0.0.1" : args.bind_address;
}

/// Empty: pods elsewhere cannot reach it.
std::string advertised_host(const cli::ServingArgs& args) {
  if (!args.advertise_address.empty()) return args.advertise_address;
  std::string host = is_any(args.bind_address) ? host::machine_address() : args.bind_address;
  return apiserver::may_be_endpoint(host) ? host : std::string();
}

std::vector<std::string> names_of(const cli::ServingArgs& args) {
  std::vector<std::string> names = args.names_to_clients;
  if (std::string host = advertised_host(args); !host.empty()) names.push_back(std::move(host));
  return names;
}

std::string url_of(const cli::ServingArgs& args, std::uint16_t port) {
  const std::string host = host_on_this_machine(args);
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", args.insecure_http ? "http" : "https", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

bool is_off(const cli::ServingArgs& args, std::string_view plugin) {
  return std::ranges::find(args.admission_off, plugin) != args.admission_off.end();
}

Result<apiserver::AdmissionRules> admission_rules(const cli::ServingArgs& args, const telemetry::Log& log) {
  apiserver::AdmissionRules rules{.memory_pressure_toleration = !is_off(args, "PodTolerationRestriction"),
                                  .limit_ranger = !is_off(args, "LimitRanger"),
                                  .resource_quota = !is_off(args, "ResourceQuota"),
                                  .mutating_webhooks = !is_off(args, "MutatingAdmissionWebhook"),
                                  .validating_webhooks = !is_off(args, "ValidatingAdmissionWebhook"),
                                  .admission_policies = !is_off(args, "ValidatingAdmissionPolicy")};
  if (!args.admission_config_file.empty()) {
    auto read = cli::read_admission_file(args.admission_config_file, yaml::read_file);
    if (!read) return invalid("--admission-control-config-file", "{}", read.error().text());
    auto& found = *read;
    for (const std::string& warning : found.warnings) log.warning("admission configuration", {{"warning", warning}});
    rules.pod_security = std::move(found.pod_security);
    rules.limited_resources = std::move(found.limited_resources);
  }
  if (is_off(args, "PodSecurity")) rules.pod_security.reset();
  return rules;
}

Result<flow::Configuration> flows_of(const cli::FlowArgs& args) {
  if (args.config_file.empty()) return flow::built_in_configuration();
  auto read = cli::read_flow_config(args.config_file, yaml::read_file);
  return read ? *std::move(read) : Result<flow::Configuration>(invalid("--flow-config", "{}", read.error().text()));
}

apiserver::StorageOptions storage_options(const cli::ServingArgs& args) {
  apiserver::StorageOptions options{
      .media_type = {}, .drop_unknown_fields = args.drop_unknown_fields, .event_ttl = args.event_ttl};
  for (const auto type : {apiserver::StorageMediaType::kJson, apiserver::StorageMediaType::kProtobuf}) {
    if (args.storage_media_type == apiserver::to_string(type)) options.media_type = type;
  }
  return options;
}

}  // namespace

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
  SPILLWAY_TRY_VOID(check_serving(args_, data_dir_, process_.loop().now().wall));
  SPILLWAY_TRY(separate, plan_stores());
  SPILLWAY_TRY(admission, admission_rules(args_, process_.log()));
  SPILLWAY_TRY(flows, flows_of(args_.flow));
  SPILLWAY_TRY(audit, AuditPart::open(process_, args_.audit));
  audit_ = std::move(audit);
  SPILLWAY_TRY_VOID(make_data_dir(data_dir_));
  runtime::Loop& loop = process_.loop();
  SPILLWAY_TRY_VOID(open_store(separate));
  SPILLWAY_TRY_VOID(open_tokens());
  if (!args_.insecure_http) {
    SPILLWAY_TRY_VOID(open_certificates());
  }
  webhooks_ = std::make_unique<wire::HttpsWebhookCaller>(loop, wire::HttpsWebhookCaller::Options{});
  SPILLWAY_TRY(unverified, wire::HttpsPodGateway::unverified_tls());
  pods_ = std::make_unique<wire::HttpsPodGateway>(loop, wire::HttpsPodGateway::Options{.tls = std::move(unverified)});
  aggregated_ = std::make_unique<wire::HttpsAggregatedGateway>(loop, wire::HttpsAggregatedGateway::Options{});
  if (args_.what_if) what_if_ = std::make_unique<ServerWhatIf>(loop, args_.insecure_http ? "http" : "https");
  server_ = std::make_unique<apiserver::ApiServer>(
      *store_, process_.metrics(), process_.log(),
      apiserver::ApiServer::Options{
          .seed = runtime::entropy(),
          .controllers = controllers_,
          .gateway = &gateway_,
          .pods = pods_.get(),
          .scheme = args_.insecure_http ? "http" : "https",
          .signer = token_key_.get(),
          .token_life_max = args_.token_life_max,
          .authenticator = authenticator_.get(),
          .certificates = &certificate_reader_,
          .serving_authority = certificates_ ? &certificates_->serving_authority() : nullptr,
          .client_authority = certificates_ ? &certificates_->client_authority() : nullptr,
          .bootstrap_tokens = bootstrap_tokens_.get(),
          .webhooks = webhooks_.get(),
          .aggregated = aggregated_.get(),
          .futures = what_if_.get(),
          .auditor = audit_ ? &audit_->auditor() : nullptr,
          .tracer = process_.tracer(),
          .root_ca_pem = certificates_ ? certificates_->server_authority_pem() : std::string(),
          .proxy_ca_pem = certificates_ ? certificates_->proxy_authority_pem() : std::string(),
          .client_ca_pem = certificates_ ? certificates_->client_authorities_pem() : std::string(),
          .admission = std::move(admission),
          .fair = args_.flow.enabled,
          .flows = std::move(flows),
          .seats = args_.flow.requests_max + args_.flow.mutating_requests_max,
          .storage = storage_options(args_),
          .separate = separate_stores(),
          .compaction_interval = args_.etcd.compaction_interval.value_or(kCompactionInterval),
          .clock = [&loop] { return loop.now(); },
          .rearm =
              [this] {
                if (endpoint_) endpoint_->rearm();
              },
          .checks = [this] { return checks(); },
          .memory = [this] { return memory(); },
          .pages = [this](std::string_view path) -> std::optional<api::Response> {
            if (auto page = openid_page(path)) return page;
            auto page = wire::dashboard_page(path, {.version = std::string(program_version()),
                                                    .through = "apiserver",
                                                    .what_if = what_if_ != nullptr,
                                                    .server = {},
                                                    .root = "/ui/"});
            return page || !pages_.now ? page : pages_.now(path);
          },
          .slow_pages = pages_.later});
  endpoint_ = std::make_unique<wire::ApiEndpoint>(loop, *server_);
  if (what_if_) what_if_->read_from(*endpoint_);
  if (!store_->is_shared()) {
    check_copies(0, std::move(serving));
    return {};
  }
  return join(std::move(serving));
}

/// Keys that all servers of one store must share, because each verifies signatures of the others.
Result<std::string> ApiServerPart::keys_in_common() const {
  std::string keys = "token=" + token_key_->id();
  if (!certificates_) return keys;
  for (const auto& [name, authority] : {std::pair("authority", &certificates_->client_authority()),
                                        std::pair("agents", &certificates_->serving_authority())}) {
    SPILLWAY_TRY(id, wire::certificate_key_id(authority->certificate_pem(), name));
    keys += fmt::format(" {}={}", name, id);
  }
  return keys;
}

/// Begins unless a server of one of the stores runs that would not accept what this one signs, or that keeps other
/// resources there.
Outcome ApiServerPart::join(std::function<void()> serving) {
  SPILLWAY_TRY(name, server_name(data_dir_));
  SPILLWAY_TRY(keys, keys_in_common());
  std::string resources;
  for (const Separate& each : separate_) resources += (resources.empty() ? "" : "+") + each.plan.name;
  runtime::Loop& loop = process_.loop();
  const auto add = [&](store::Store& store, const std::string& in_common) {
    rosters_.push_back(std::make_unique<store::ServerRoster>(
        store, name, in_common,
        store::ServerRoster::Ports{.now = [&loop] { return loop.now().mono; },
                                   .after =
                                       [&loop](Duration time, std::move_only_function<void()> task) {
                                         loop.at(loop.now().mono + time, std::move(task));
                                       },
                                   .yield = [this, name] { process_.fail(same_name(data_dir_, name)); }}));
  };
  add(*store_, separate_.empty() ? keys : fmt::format("{}{}{}", keys, kSeparateKey, resources));
  for (const Separate& each : separate_)
    add(*each.store, fmt::format("{}{}only:{}", keys, kSeparateKey, each.plan.name));
  joining_ = rosters_.size();
  const auto next = std::make_shared<std::function<void()>>(std::move(serving));
  for (std::size_t place = 0; place < rosters_.size(); ++place) {
    rosters_[place]->join([this, keys, next](const Outcome& joined) {
      if (joining_ == 0) return;  // refused elsewhere
      if (!joined) {
        joining_ = 0;
        return refuse_to_join(keys, joined.error());
      }
      if (--joining_ == 0) check_copies(0, std::move(*next));
    });
  }
  return {};
}

void ApiServerPart::refuse_to_join(const std::string& keys, const Error& error) {
  if (error.code != ErrorCode::kConflict) return process_.fail(error);
  if (error.at.starts_with(store::kCommandName)) {
    return process_.fail(make_error(ErrorCode::kConflict,
                                    "`spillway store` works on this etcd ({}): begin when it has ended", error.at));
  }
  if (error.message.substr(0, error.message.find(kSeparateKey)) == keys) {
    return process_.fail(make_error(ErrorCode::kConflict,
                                    "{}: other resources than those of server {}, which runs; all servers of an etcd "
                                    "keep the same ones elsewhere",
                                    apiserver::kOverridesFlag, error.at));
  }
  process_.fail(make_error(ErrorCode::kConflict, "{}/pki: these keys differ from those of the running server {}{}",
                           data_dir_, error.at, kCopyKeys));
}

/// Refuses to start on a store whose copy is unfinished.
void ApiServerPart::check_copies(std::size_t place, std::function<void()> serving) {
  if (place > separate_.size()) {
    find_unserved();
    return start(std::move(serving));
  }
  store::Store& store = place == 0 ? *store_ : *separate_[place - 1].store;
  store.range({.prefix = std::string(store::kIncompleteCopyKey), .start_after = {}, .limit = 1, .at = {}},
              [this, place, serving = std::move(serving)](const Result<store::RangeResult>& mark) mutable {
                if (!mark) return process_.fail(mark.error());
                if (mark->entries.empty()) return check_copies(place + 1, std::move(serving));
                process_.fail(make_error(ErrorCode::kConflict,
                                         "the store holds {}: run `spillway store copy` again, or delete {}",
                                         *mark->entries.front().value, store::kIncompleteCopyKey));
              });
}

/// Finds objects that a resource left in the main store when it got a store of its own.
void ApiServerPart::find_unserved() {
  for (const Separate& each : separate_) {
    for (const std::string& storage : each.plan.storages) {
      store_->range({.prefix = storage, .start_after = {}, .limit = 1, .at = {}},
                    [this, storage](const Result<store::RangeResult>& found) {
                      if (!found || found->entries.empty()) return;
                      process_.log().warning(
                          "the main store holds objects that are not served: their resource has a store of its own",
                          {{"keys", storage}, {"objects", found->entries.size() + found->remaining}});
                    });
    }
  }
}

void ApiServerPart::start(std::function<void()> serving) {
  server_->start(process_.loop().now(), [this, serving = std::move(serving)](Outcome ready) {
    if (ready) ready = serve();
    if (ready) ready = announce();
    if (ready && store_->is_shared()) ready = take_part();
    if (!ready) return process_.fail(ready.error());
    serving();
  });
}

/// Publishes the keys by which other programs verify tokens of service accounts.
std::optional<api::Response> ApiServerPart::openid_page(std::string_view path) const {
  constexpr std::string_view kKeysPath = "/openid/v1/jwks";
  const auto page = [](const api::Json& document, std::string_view type) {
    return api::Response{.status = 200,
                         .headers = {{"Content-Type", std::string(type)}, {"Cache-Control", "public, max-age=3600"}},
                         .body = api::to_text(document),
                         .document = nullptr};
  };
  if (path == "/.well-known/openid-configuration") {
    return page(token_key_->discovery(own_url_ + std::string(kKeysPath)), "application/json");
  }
  if (path != kKeysPath) return std::nullopt;
  const Result<api::Json> keys = token_key_->key_set();
  if (!keys) return std::nullopt;
  return page(*keys, "application/jwk-set+json");
}

/// Announces only addresses that serve TLS to clients in the cluster.
Outcome ApiServerPart::announce() {
  const std::string shown = advertised_host(args_).empty() ? std::string("127.0.0.1") : advertised_host(args_);
  own_url_ = fmt::format(fmt::runtime(shown.contains(':') ? "{}://[{}]:{}" : "{}://{}:{}"),
                         args_.insecure_http ? "http" : "https", shown, http_->port());
  if (args_.insecure_http) return {};
  const std::string host = advertised_host(args_);
  const std::string own = host.empty() ? std::string() : wire::format_endpoint(host, http_->port());
  if (!store_->is_shared()) {
    announce_at({own});
    return {};
  }
  SPILLWAY_TRY(name, server_name(data_dir_));
  runtime::Loop& loop = process_.loop();
  addresses_ = std::make_unique<store::ServerAddresses>(
      *store_, name, own,
      [&loop](Duration time, std::move_only_function<void()> task) {
        loop.at(loop.now().mono + time, std::move(task));
      },
      [this](const std::vector<std::string>& places) { announce_at(places); });
  addresses_->start();
  return {};
}

void ApiServerPart::announce_at(const std::vector<std::string>& places) {
  std::vector<apiserver::ServingAddress> addresses;
  for (const std::string& each : places) {
    if (auto address = apiserver::parse_serving_address(each)) addresses.push_back(*std::move(address));
  }
  server_->announce(http_->port(), std::move(addresses), process_.loop().now());
  endpoint_->rearm();
}

std::string ApiServerPart::pods_host() const {
  return advertised_host(args_);
}

Outcome ApiServerPart::serve_pods(const std::string& address, std::vector<api::IpRange> networks) {
  SPILLWAY_CHECK(!has_others());
  SPILLWAY_TRY_VOID(http_->serve_at(address, std::move(networks)));
  if (!args_.insecure_http) announce_at({wire::format_endpoint(address, http_->port())});
  return {};
}

std::string ApiServerPart::local_host() const {
  return host_on_this_machine(args_);
}

/// All servers of a store serve; tasks that run once are done by one of them.
Outcome ApiServerPart::take_part() {
  SPILLWAY_TRY(holder, server_name(data_dir_));
  runtime::Loop& loop = process_.loop();
  const store::ServerLease::Ports ports{
      .now = [&loop] { return loop.now().mono; },
      .after = [&loop](Duration time,
                       std::move_only_function<void()> task) { loop.at(loop.now().mono + time, std::move(task)); }};
  const auto act = [this](bool on) {
    server_->act(on, process_.loop().now());
    endpoint_->rearm();
  };
  lease_ = std::make_unique<store::ServerLease>(
      *store_, holder, ports,
      store::ServerLease::Listener{
          .on_taken =
              [this, act] {
                process_.log().info("this server runs the garbage collector of its etcd");
                act(true);
              },
          .on_lost =
              [this, act](const std::string& why) {
                process_.log().warning("this server does not collect any more", {{"why", why}});
                act(false);
              },
          .on_waiting =
              [this](const std::string& other) {
                process_.log().info("another server runs the garbage collector of this etcd", {{"server", other}});
              },
          .on_failure =
              [this](const Error& error) {
                process_.log().warning("the lease of API servers cannot be had", {{"error", error.text()}});
              }});
  lease_->start();
  return {};
}

Result<std::vector<apiserver::StorePlan>> ApiServerPart::plan_stores() const {
  std::vector<apiserver::StoreOverride> overrides;
  for (const cli::EtcdOverride& each : args_.etcd.overrides) overrides.push_back({each.resource, each.servers});
  return apiserver::plan_stores(args_.etcd.servers, overrides);
}

std::vector<apiserver::SeparateStore> ApiServerPart::separate_stores() const {
  std::vector<apiserver::SeparateStore> stores;
  for (const Separate& each : separate_) stores.push_back({each.store.get(), each.plan.name, each.plan.storages});
  return stores;
}

Outcome ApiServerPart::open_store(const std::vector<apiserver::StorePlan>& separate) {
  runtime::Loop& loop = process_.loop();
  const auto post = [&loop](std::move_only_function<void()> task) { loop.post(std::move(task)); };
  if (!args_.etcd.servers.empty()) {
    SPILLWAY_TRY(lock, store::sqlite::DirectoryLock::take(data_dir_, "spillway.lock"));
    data_lock_ = std::move(lock);
    SPILLWAY_TRY(opened, open_etcd_store(args_.etcd, {}, post, process_.log(), process_.metrics()));
    store_ = std::move(opened);
    for (const apiserver::StorePlan& plan : separate) {
      cli::EtcdArgs args = args_.etcd;
      args.servers = plan.servers;
      SPILLWAY_TRY(apart, open_etcd_store(args, plan.name, post, process_.log(), process_.metrics()));
      separate_.push_back({plan, std::move(apart)});
    }
    return {};
  }
  SPILLWAY_TRY(opened,
               store::SqliteStore::open(store_file(data_dir_), post,
                                        {.without_history = apiserver::StoredValues().prefixes_without_history(),
                                         .log = process_.log(),
                                         .metrics = &process_.metrics()}));
  embedded_ = opened.get();
  store_ = std::move(opened);
  return {};
}

/// Opens the authenticators of bearer tokens.
Outcome ApiServerPart::open_tokens() {
  SPILLWAY_TRY(key, wire::TokenKey::open(data_dir_ + "/pki",
                                         {.signing = args_.token_signing_key_file, .accepted = args_.token_key_files}));
  token_key_ = std::move(key);
  if (args_.bootstrap_tokens) bootstrap_tokens_ = std::make_shared<wire::BootstrapTokenTable>();
  wire::Authenticator::Options options{
      .tokens = {}, .account_key = token_key_, .bootstrap_tokens = bootstrap_tokens_, .metrics = &process_.metrics()};
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

/// Certificates, then the listening socket, then the kubeconfig: a client that finds the kubeconfig can connect.
Outcome ApiServerPart::serve() {
  wire::HttpServer::Options options;
  options.address = args_.bind_address;
  options.port = args_.port;
  options.threads = http_threads(args_);
  options.goaway_chance = args_.goaway_chance;
  options.log = process_.log();
  options.metrics = &process_.metrics();
  // Requests queued in the API server must not use up the places of the HTTP server.
  options.limits.queue.ordinary_seats = options.limits.queue.vital_seats = kRequestsAtServer;
  wire::Kubeconfig config;
  std::shared_ptr<const wire::TlsContext> nodes_tls;
  options.authenticator = authenticator_;
  options.auditor = audit_ ? &audit_->auditor() : nullptr;
  if (certificates_) {
    SPILLWAY_TRY(credentials, certificates_->credentials());
    options.tls = credentials.server;
    config = std::move(credentials.administrator);
    nodes_tls = credentials.nodes;
    aggregated_->set_identity(std::move(credentials.proxy));
  }
  http_ = std::make_unique<wire::HttpServer>(process_.loop(), *endpoint_, std::move(options));
  SPILLWAY_TRY_VOID(http_->start());
  webhooks_->set_own_port(http_->port());
  pods_->set_own_port(http_->port());
  aggregated_->set_own_port(http_->port());
  if (nodes_tls) reach_nodes(std::move(nodes_tls));
  SPILLWAY_TRY_VOID(write_kubeconfig(std::move(config)));
  process_.log().info("serving", {{"url", url_of(args_, http_->port())}, {"kubeconfig", kubeconfig_file()}});
  if (certificates_) sync_certificates();
  return {};
}

Outcome ApiServerPart::write_kubeconfig(wire::Kubeconfig config) {
  config.server = url_of(args_, http_->port());
  return wire::write_kubeconfig(kubeconfig_file(), config, "spillway");
}

std::string ApiServerPart::kubeconfig_file() const {
  return args_.write_kubeconfig.empty() ? data_dir_ + "/kubeconfig" : args_.write_kubeconfig;
}

Outcome ApiServerPart::open_certificates() {
  if (args_.kubelet_insecure_tls) {
    process_.log().warning("serving certificates of nodes are not verified", {{"flag", "--kubelet-insecure-tls"}});
  }
  certificates_ = std::make_unique<ServerCertificates>(
      ServerCertificates::Options{
          .data_dir = data_dir_,
          .bind_address = args_.bind_address,
          .names = names_of(args_),
          .believe_every_agent = args_.kubelet_insecure_tls,
          .agents_authority_file = args_.kubelet_certificate_authority,
          .protocols = args_.http2_off ? wire::Protocols::kHttp11 : wire::Protocols::kHttp2AndHttp11,
          .files = {.client_authority = args_.client_ca_file,
                    .certificate = args_.tls_certificate_file,
                    .key = args_.tls_key_file}},
      process_.metrics());
  SPILLWAY_TRY_VOID(certificates_->reread(process_.loop().now().wall));
  auto refreshed = certificates_->refresh(process_.loop().now().wall);
  if (refreshed) return {};
  if (refreshed.error().at == "hosts") refreshed.error().at = "--tls-san";  // all other names are our own
  return refreshed.error();
}

/// Once a minute, and when one is due: the wall clock may jump, a monotonic timer of eleven months would not notice.
void ApiServerPart::sync_certificates() {
  const Now now = process_.loop().now();
  const Outcome renewed = renew_certificates(now);
  const std::string problem = renewed ? std::string() : renewed.error().text();
  if (!problem.empty() && problem != renewal_problem_) {
    process_.log().error("certificates are not renewed", {{"cause", problem}});
  }
  renewal_problem_ = problem;
  certificates_->set_gauges(now.wall);
  const Duration left = std::chrono::duration_cast<Duration>(certificates_->due() - now.wall);
  const Duration interval = certificates_->has_files() ? kFilesEvery : kCertificatesEvery;
  const Duration wait = left > Duration::zero() ? std::min<Duration>(left, interval) : interval;
  certificate_timer_ = process_.loop().at(now.mono + wait, [this] { sync_certificates(); });
}

/// New connections get the new ones; those that are open keep theirs.
Outcome ApiServerPart::renew_certificates(Now now) {
  if (certificates_->due() <= now.wall) {
    SPILLWAY_TRY(is_new, certificates_->refresh(now.wall));
    certificates_are_new_ = certificates_are_new_ || is_new;
  }
  const Result<bool> reread = certificates_->reread(now.wall);  // a bad file does not stop the reload of the others
  const Outcome outcome = reread ? Outcome() : Outcome(reread.error());
  certificates_are_new_ = certificates_are_new_ || (reread && *reread);
  if (!certificates_are_new_) return outcome;
  SPILLWAY_TRY(credentials, certificates_->credentials());
  http_->set_tls(std::move(credentials.server));
  remote_nodes_->set_tls(std::move(credentials.nodes));
  aggregated_->set_identity(std::move(credentials.proxy));
  server_->set_client_ca(certificates_->client_authorities_pem(), now);
  endpoint_->rearm();
  SPILLWAY_TRY_VOID(write_kubeconfig(std::move(credentials.administrator)));
  certificates_are_new_ = false;
  process_.log().info("certificates are renewed",
                      {{"folder", data_dir_ + "/pki"}, {"files", args_.tls_certificate_file}});
  return outcome;
}

/// The parts that overlap say so in their names; the rest of "allocator: in use" belongs to no row.
telemetry::MemoryRows ApiServerPart::memory() const {
  telemetry::MemoryRows rows;
  if (embedded_ != nullptr) rows = embedded_->memory();
  if (http_) rows.push_back({"answers and events that wait for clients", 0, http_->waiting_bytes()});
  const host::OwnMemory own = host::read_own_memory();
  rows.push_back({"stacks", own.stack_count, own.stacks});
  rows.push_back({"allocator: in use, with the rows above", 0, own.allocator_used});
  rows.push_back({"allocator: of these mapped on their own", 0, own.allocator_mapped});
  rows.push_back({"allocator: free", 0, own.allocator_free});
  rows.push_back({"pages of program and libraries", 0, own.of_files});
  rows.push_back({"resident, most so far", 0, own.resident_most});
  rows.push_back({"resident", 0, own.resident});
  return rows;
}

std::vector<apiserver::HealthCheck> ApiServerPart::checks() const {
  if (!certificates_) return {};
  return {{.name = "certificates", .problem = certificates_->problem(process_.loop().now().wall)}};
}

/// Called after the server has its port: an address that leads back to it is refused.
void ApiServerPart::reach_nodes(std::shared_ptr<const wire::TlsContext> tls) {
  using Agents = wire::HttpsNodeGateway::Options::Agents;
  remote_nodes_ = std::make_unique<wire::HttpsNodeGateway>(
      process_.loop(),
      wire::HttpsNodeGateway::Options{.tls = std::move(tls),
                                      .agents = args_.kubelet_insecure_tls ? Agents::kUnverified : Agents::kVerified,
                                      .own_port = http_->port(),
                                      .bounds = {}});
  gateway_.set_remote(remote_nodes_.get());
}

std::unique_ptr<client::Transport> ApiServerPart::connect(std::string_view user) {
  api::UserInfo info{std::string(user), {}, {std::string(api::kAuthenticatedGroup)}};
  if (user.starts_with(api::kNodeUserPrefix)) info.groups.emplace_back(api::kNodesGroup);
  return std::make_unique<wire::InProcessTransport>(process_.loop(), *endpoint_, std::move(info));
}

std::unique_ptr<client::Transport> ApiServerPart::connect_administrator(std::string_view user) {
  api::UserInfo info{std::string(user), {}, {std::string(api::kMastersGroup), std::string(api::kAuthenticatedGroup)}};
  return std::make_unique<wire::InProcessTransport>(process_.loop(), *endpoint_, std::move(info));
}

void ApiServerPart::resign(const std::function<void()>& done) {
  const auto open = std::make_shared<std::size_t>(rosters_.size() + (addresses_ ? 1 : 0));
  const auto one_done = [open, done] {
    if (--*open == 0) done();
  };
  if (addresses_) addresses_->release(one_done);
  for (const auto& roster : rosters_) roster->release(one_done);
}

void ApiServerPart::stop(runtime::Loop::Task done) {
  if (certificate_timer_) process_.loop().cancel(*certificate_timer_);
  if (what_if_) what_if_->end();
  server_->stop();
  auto close_store = [this, done = std::move(done)]() mutable {
    http_.reset();
    if (embedded_ != nullptr) embedded_->stop();
    endpoint_.reset();
    server_.reset();
    lease_.reset();
    addresses_.reset();
    rosters_.clear();
    separate_.clear();
    store_.reset();
    done();
  };
  auto give_back = [this, close = std::make_shared<runtime::Loop::Task>(std::move(close_store))] {
    runtime::Loop& loop = process_.loop();
    // Called by the first of the two, and the other one may find this part destroyed; not from within a call of the
    // store.
    const auto once = [&loop, close] {
      loop.post([close] {
        if (auto task = std::exchange(*close, nullptr)) task();
      });
    };
    if (rosters_.empty()) return once();
    loop.at(loop.now().mono + kGiveBackMax, once);
    auto resign_all = [this, once] { resign(once); };
    if (!lease_) return resign_all();
    lease_->give_back(std::move(resign_all));
  };
  if (!http_ || http_->port() == 0) return give_back();
  http_->stop(kStopGrace, std::move(give_back));
}

}  // namespace spillway::apps
