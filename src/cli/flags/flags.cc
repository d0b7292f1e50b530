#include "cli/flags/flags.h"

#include "api/text/duration.h"
#include "api/text/quantity.h"
#include "cli/flags/checks.h"
#include "cli/flags/help_text.h"

#include <CLI/CLI.hpp>
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace spillway::cli {

CLI::Option* add_taken(CLI::App& app, const std::string& flag, const Take& take, const std::string& help,
                       const std::string& type, const std::string& shown_default) {
  CLI::Option* option = app.add_option_function<std::string>(
      flag,
      [take, flag](const std::string& text) {
        if (const Outcome taken = take(text); !taken) throw CLI::ValidationError(flag, taken.error().text());
      },
      help);
  option->type_name(type);
  if (!shown_default.empty()) option->default_str(shown_default);
  return option;
}

Result<Duration> parse_positive_duration(const std::string& text) {
  SPILLWAY_TRY(duration, api::parse_duration(text));
  if (duration <= Duration::zero()) return make_error(ErrorCode::kInvalid, "must be positive, got \"{}\"", text);
  return duration;
}

Result<Duration> parse_duration_from_zero(const std::string& text) {
  SPILLWAY_TRY(duration, api::parse_duration(text));
  if (duration < Duration::zero()) return make_error(ErrorCode::kInvalid, "must not be negative, got \"{}\"", text);
  return duration;
}

Result<std::optional<Duration>> parse_optional_duration(const std::string& text) {
  SPILLWAY_TRY(duration, parse_positive_duration(text));
  return std::optional<Duration>(duration);
}

Result<std::string> parse_pages_address(const std::string& text) {
  if (text.empty() || text == "0") return std::string();
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return invalid({}, "expected ADDRESS:PORT, or 0 for none, got \"{}\"", text);
  SPILLWAY_TRY_VOID(parse_port(text.substr(colon + 1)));
  std::string address = text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  SPILLWAY_TRY_VOID(parse_address(address));
  return text;
}

CLI::Option* add_duration(CLI::App& app, const std::string& flag, Duration& into, const std::string& help) {
  return add_parsed(app, flag, into, parse_positive_duration, help, "DURATION", api::format_duration(into));
}

Result<Bytes> parse_bytes(const std::string& text) {
  const auto quantity = api::parse_quantity(text);
  if (!quantity) {
    return make_error(ErrorCode::kInvalid, "\"{}\" is no quantity; expected for example 256Mi or 1Gi", text);
  }
  if (quantity->sign() <= 0) return make_error(ErrorCode::kInvalid, "must be positive, got \"{}\"", text);
  return quantity->bytes();
}

Result<std::optional<Bytes>> parse_optional_bytes(const std::string& text) {
  SPILLWAY_TRY(bytes, parse_bytes(text));
  return std::optional<Bytes>(bytes);
}

Result<std::string> parse_address(const std::string& text) {
  in6_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) == 1 || inet_pton(AF_INET6, text.c_str(), &address) == 1) return text;
  return make_error(ErrorCode::kInvalid, "\"{}\" is no address; expected for example 192.0.2.7 or 2001:db8::7", text);
}

Result<bool> parse_switch(const std::string& text) {
  if (text != "on" && text != "off") return make_error(ErrorCode::kInvalid, "expected on or off, got \"{}\"", text);
  return text == "on";
}

Result<std::uint16_t> parse_port(const std::string& text) {
  std::uint16_t port = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (ec != std::errc{} || end != text.data() + text.size()) {
    return make_error(ErrorCode::kInvalid, "expected a port from 0 to 65535, got \"{}\"", text);
  }
  return port;
}

bool is_loopback(const std::string& address) {
  in_addr v4{};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  in6_addr v6{};
  if (inet_pton(AF_INET6, address.c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET);
}

/// Parses the address of the API server for the endpoints of its Service. A loopback address is refused: no other
/// machine could reach it.
Result<std::string> parse_advertised(const std::string& text) {
  SPILLWAY_TRY(address, parse_address(text));
  if (!is_loopback(address) && address != "0.0.0.0" && address != "::") return address;
  return make_error(ErrorCode::kInvalid, "expected an address that other machines can reach, got \"{}\"", text);
}

/// Agents renew a token no more often than every ten seconds.
Result<std::optional<Duration>> parse_token_life(const std::string& text) {
  constexpr Duration kLifeMin = seconds(20);
  constexpr Duration kLifeMax = seconds(std::int64_t{1} << 32);
  SPILLWAY_TRY(life, parse_positive_duration(text));
  if (life < kLifeMin || life > kLifeMax) {
    return make_error(ErrorCode::kInvalid, "must be between 20 seconds and 2^32 seconds, got \"{}\"", text);
  }
  return std::optional<Duration>(life);
}

Result<Duration> parse_event_ttl(const std::string& text) {
  SPILLWAY_TRY(ttl, parse_positive_duration(text));
  if (ttl < seconds(1)) return make_error(ErrorCode::kInvalid, "must be at least 1 second, got \"{}\"", text);
  return ttl;
}

constexpr const char* kEtcdOverrides = "--etcd-servers-overrides";

Result<std::optional<Duration>> parse_compaction_interval(const std::string& text) {
  constexpr Duration kIntervalMin = seconds(10);
  SPILLWAY_TRY(interval, api::parse_duration(text));
  if (interval < kIntervalMin && interval != Duration::zero()) {
    return make_error(ErrorCode::kInvalid, "must be 0, or at least 10 seconds, got \"{}\"", text);
  }
  return std::optional<Duration>(interval);
}

/// The host in "http://HOST:PORT"; empty: the text is not such a URL.
std::string_view plain_host(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return {};
  url.remove_prefix(kScheme.size());
  const std::string_view host = url.substr(0, url.rfind(':'));
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

bool is_server_url(std::string_view url) {
  const std::size_t scheme = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
  if (scheme == 0) return false;
  url.remove_prefix(scheme);
  if (url.ends_with('/')) url.remove_suffix(1);
  const std::size_t colon = url.rfind(':');
  return colon != std::string_view::npos && colon != 0 && colon + 1 != url.size() &&
         url.find_first_of("/?#@ ") == std::string_view::npos &&
         url.substr(colon + 1).find_first_not_of("0123456789") == std::string_view::npos;
}

void add_etcd(CLI::App& app, EtcdArgs& args) {
  app.add_option("--etcd-servers", args.servers, "Keep objects in this etcd cluster instead of the embedded database")
      ->type_name("URL,...")
      ->delimiter(',');
  add_etcd_access(app, args);
}

void add_etcd_access(CLI::App& app, EtcdArgs& args) {
  app.add_option("--etcd-prefix", args.prefix, "Prefix of all keys in etcd")
      ->type_name("PREFIX")
      ->check([](const std::string& text) {
        return text.size() > 1 && text.starts_with('/') && !text.ends_with('/')
                   ? std::string()
                   : fmt::format("must begin with a slash and not end with one, got \"{}\"", text);
      })
      ->capture_default_str();
  app.add_option("--etcd-cafile", args.ca_file, "PEM file: the authority that signs etcd's certificates")
      ->check(CLI::ExistingFile);
  auto* certificate =
      app.add_option("--etcd-certfile", args.certificate_file, "PEM file: the client certificate for etcd")
          ->check(CLI::ExistingFile);
  auto* key =
      app.add_option("--etcd-keyfile", args.key_file, "PEM file: the key of --etcd-certfile")->check(CLI::ExistingFile);
  certificate->needs(key);
  key->needs(certificate);
  auto* user = app.add_option("--etcd-username", args.username, "User name for an etcd with password authentication")
                   ->type_name("NAME");
  auto* password =
      app.add_option("--etcd-password-file", args.password_file, "File whose first line is the password for etcd")
          ->check(CLI::ExistingFile);
  user->needs(password);
  password->needs(user);
  app.add_flag("--etcd-insecure", args.insecure, "Allow plain HTTP to an etcd on another machine");
}

void check_etcd_servers(const std::string& flag, const std::vector<std::string>& servers, bool insecure) {
  for (const std::string& url : servers) {
    if (!is_server_url(url)) {
      throw CLI::ValidationError(flag, fmt::format("expected http://HOST:PORT or https://HOST:PORT, got \"{}\"", url));
    }
    const std::string_view host = plain_host(url);
    if (host.empty() || insecure || is_loopback(std::string(host))) continue;
    throw CLI::ValidationError(flag, fmt::format("plain HTTP can be read and changed on the network: use https or, "
                                                 "where the network is trusted, --etcd-insecure, got \"{}\"",
                                                 url));
  }
}

void check_etcd(const EtcdArgs& args) {
  check_etcd_servers("--etcd-servers", args.servers, args.insecure);
}

/// "GROUP/RESOURCE#URL;URL". The API server checks that the resource exists.
EtcdOverride parse_etcd_override(const std::string& text) {
  const std::size_t mark = text.find('#');
  const std::string resource = text.substr(0, mark);
  const bool named = std::ranges::count(resource, '/') == 1 && !resource.ends_with('/');
  if (mark == std::string::npos || mark + 1 == text.size() || !named) {
    throw CLI::ValidationError(
        kEtcdOverrides,
        fmt::format("expected GROUP/RESOURCE#URL;URL, as in /events#https://etcd-0:2379, got \"{}\"", text));
  }
  EtcdOverride found{resource, {}};
  for (std::size_t at = mark + 1; at <= text.size();) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    found.servers.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

void add_etcd_stores(CLI::App& app, EtcdArgs& args) {
  app.add_option_function<std::vector<std::string>>(
         kEtcdOverrides,
         [&args](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) args.overrides.push_back(parse_etcd_override(text));
         },
         "Keep the objects of these resources in an etcd of their own. The core group is empty, as in /events#URL")
      ->delimiter(',')
      ->type_name("GROUP/RESOURCE#URL[;URL],...");
  add_parsed(app, "--etcd-compaction-interval", args.compaction_interval, parse_compaction_interval,
             "Keep this much history in each etcd, for watches and consistent lists; 0: this server does not compact",
             "DURATION", "5m");
}

void check_etcd_stores(const EtcdArgs& args) {
  for (const auto& [given, flag] : {std::pair(!args.overrides.empty(), kEtcdOverrides),
                                    std::pair(args.compaction_interval.has_value(), "--etcd-compaction-interval")}) {
    if (!given || !args.servers.empty()) continue;
    throw CLI::ValidationError(flag, "needs --etcd-servers: the embedded database is one file");
  }
  for (const EtcdOverride& each : args.overrides) check_etcd_servers(kEtcdOverrides, each.servers, args.insecure);
}

void refuse_etcd_overrides(CLI::App& app, const std::string& why) {
  app.add_option_function<std::vector<std::string>>(
         kEtcdOverrides, [why](const auto&) { throw CLI::ValidationError(kEtcdOverrides, why); }, "")
      ->group("");
}

/// Flags are spelled as upstream; where the defaults differ the help states it.
void add_audit(CLI::App& app, AuditArgs& args) {
  constexpr std::int32_t kCountMax = 1'000'000;
  begin_group(app, "Audit log");
  app.add_option("--audit-policy-file", args.policy_file,
                 "Policy for the audit log (audit.k8s.io/v1): which requests are recorded, and in how much detail")
      ->type_name("FILE")
      ->default_str("metadata of all writes except those of leases and events");
  app.add_option("--audit-log-path", args.log_path, "Write the audit log to this file; - means standard output")
      ->type_name("FILE")
      ->default_str("no audit log");
  app.add_option("--audit-log-maxage", args.max_age_days, "Remove rotated audit logs after this many days; 0: never")
      ->check(between(0, kCountMax))
      ->capture_default_str();
  app.add_option("--audit-log-maxbackup", args.max_backups, "Keep this many rotated audit logs; 0: all")
      ->check(between(0, kCountMax))
      ->capture_default_str();
  app.add_option("--audit-log-maxsize", args.max_size_mb, "Rotate the audit log at this size in megabytes; 0: 100")
      ->check(between(0, kCountMax))
      ->capture_default_str();
  app.add_flag("--audit-log-compress", args.compress, "Compress rotated audit logs with gzip");
  app.add_option("--audit-log-format", args.format, "json")->check(one_of({"json"}))->capture_default_str();
  app.add_option("--audit-log-mode", args.mode,
                 "batch: requests never wait, and events are dropped when the log falls behind. blocking: requests "
                 "wait for the log. blocking-strict: they also fail if it cannot be written")
      ->check(one_of({"batch", "blocking", "blocking-strict"}))
      ->capture_default_str();
  app.add_flag("--audit-log-truncate-enabled", args.truncates,
               "Leave out the objects of audit events that are too long");
  constexpr std::int64_t kTruncateMin = 1'024;
  constexpr std::int64_t kTruncateMax = std::int64_t{1} << 30U;
  app.add_option("--audit-log-truncate-max-event-size", args.truncated_event_bytes,
                 "Size in bytes from which an audit event is too long")
      ->check(between(kTruncateMin, kTruncateMax))
      ->capture_default_str();
  app.add_option("--audit-log-truncate-max-batch-size", args.truncated_batch_bytes,
                 "Bytes of audit events in one write")
      ->check(between(kTruncateMin, kTruncateMax))
      ->capture_default_str();
}

/// All but the last are spelled as upstream.
void add_flow(CLI::App& app, FlowArgs& args) {
  constexpr std::int32_t kRequestsMax = 1'000'000;
  begin_group(app, "Priority and fairness");
  app.add_option("--enable-priority-and-fairness", args.enabled,
                 "Queue and reject requests by flow schemas and priority levels")
      ->default_str("true");
  app.add_option("--max-requests-inflight", args.requests_max,
                 "Concurrent requests that the priority levels share, together with --max-mutating-requests-inflight")
      ->check(between(1, kRequestsMax))
      ->capture_default_str();
  app.add_option("--max-mutating-requests-inflight", args.mutating_requests_max,
                 "Further concurrent requests, added to --max-requests-inflight")
      ->check(between(0, kRequestsMax))
      ->capture_default_str();
  app.add_option("--flow-config", args.config_file,
                 "File with FlowSchemas and PriorityLevelConfigurations (or a List of them). They replace built-in "
                 "ones of the same name")
      ->check(CLI::ExistingFile);
}

void add_certificate_files(CLI::App& app, ServingArgs& args) {
  app.add_option("--client-ca-file", args.client_ca_file,
                 "PEM file: also accept client certificates signed by one of these authorities. This file and the next "
                 "two are reloaded when they change")
      ->check(CLI::ExistingFile);
  CLI::Option* certificate = app.add_option("--tls-cert-file", args.tls_certificate_file,
                                            "PEM file: serve with this certificate (or chain, leaf first)")
                                 ->check(CLI::ExistingFile)
                                 ->default_str("one of DATA_DIR/pki");
  CLI::Option* key = app.add_option("--tls-private-key-file", args.tls_key_file,
                                    "PEM file: the key of --tls-cert-file. It must not be readable by other users")
                         ->check(CLI::ExistingFile);
  certificate->needs(key);
  key->needs(certificate);
}

void add_serving(CLI::App& app, ServingArgs& args) {
  begin_group(app, "Store");
  app.add_option("--data-dir", args.data_dir, "Directory of the database, the certificates and the kubeconfig")
      ->type_name("DIR")
      ->default_str("/var/lib/spillway as root, else ~/.local/share/spillway");
  add_etcd(app, args.etcd);
  add_etcd_stores(app, args.etcd);
  app.add_option("--storage-media-type", args.storage_media_type, "Encoding of stored objects; both can be read")
      ->check(one_of({"application/json", "application/vnd.kubernetes.protobuf"}))
      ->default_str("that of the store, application/json if it is empty");
  app.add_flag("--storage-drop-unknown-fields", args.drop_unknown_fields,
               "Allow writes of objects from a newer version, and drop the fields that this version does not know");
  add_parsed(app, "--event-ttl", args.event_ttl, parse_event_ttl, "Delete Events this long after their last write",
             "DURATION", "1h");
  app.add_option("--lease-reuse-duration-seconds", args.etcd.lease_reuse_seconds,
                 "Share one etcd lease among the events of this many seconds, at most a twentieth of --event-ttl")
      ->check(between(1, 3'600))
      ->capture_default_str();
  begin_group(app, "Serving");
  add_parsed(app, "--bind-address", args.bind_address, parse_address, "Address to listen on", "ADDRESS",
             args.bind_address);
  add_parsed(
      app, "--advertise-address", args.advertise_address, parse_advertised,
      "Address of this server for pods: the endpoint of the Service kubernetes, and a name in the server's certificate",
      "ADDRESS", "--bind-address; the machine's address if that is 0.0.0.0 or ::; none if it is a loopback address");
  add_parsed(app, "--port", args.port, parse_port, "Port to listen on; 0 picks a free one", "PORT", "6443");
  app.add_option(
         "--tls-san", args.names_to_clients,
         "Additional name or address in the server's certificate, for example that of a load balancer; may be repeated")
      ->type_name("NAME");
  app.add_option("--write-kubeconfig", args.write_kubeconfig,
                 "Write the administrator's kubeconfig to this file once the server is ready")
      ->type_name("FILE")
      ->default_str("DATA_DIR/kubeconfig");
  begin_group(app, "Callers and certificates");
  app.add_option("--token-auth-file", args.token_auth_file,
                 "Static bearer tokens: lines of token,user,uid[,\"groups\"]")
      ->check(CLI::ExistingFile);
  app.add_option("--service-account-signing-key-file", args.token_signing_key_file,
                 "PEM file: the private key (RSA or ECDSA P-256) that signs service account tokens")
      ->default_str("DATA_DIR/pki/sa.key")
      ->check(CLI::ExistingFile);
  app.add_option(
         "--service-account-key-file", args.token_key_files,
         "PEM file with keys or certificates: also accept service account tokens signed by these; may be repeated")
      ->check(CLI::ExistingFile);
  add_certificate_files(app, args);
  app.add_option(
         "--kubelet-certificate-authority", args.kubelet_certificate_authority,
         "PEM file: also trust serving certificates of agents and kubelets (system:node:NAME) signed by this authority")
      ->check(CLI::ExistingFile);
  app.add_flag("--kubelet-insecure-tls", args.kubelet_insecure_tls,
               "Do not verify the serving certificates of nodes: for kubelets with self-signed certificates");
  app.add_flag("--enable-bootstrap-token-auth", args.bootstrap_tokens,
               "Accept the bootstrap tokens in Secrets of kube-system, with which new nodes join");
  add_parsed(app, "--service-account-max-token-expiration", args.token_life_max, parse_token_life,
             "Longest lifetime of service account tokens; longer requests are shortened to it", "DURATION", "no limit");
  begin_group(app, "Admission");
  app.add_option("--disable-admission-plugins", args.admission_off,
                 "Switch off these admission plug-ins. PodTolerationRestriction here only adds the toleration of "
                 "memory pressure to pods that are not BestEffort")
      ->check(one_of({"LimitRanger", "MutatingAdmissionWebhook", "PodSecurity", "PodTolerationRestriction",
                      "ResourceQuota", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook"}))
      ->delimiter(',');
  app.add_option("--admission-control-config-file", args.admission_config_file,
                 "AdmissionConfiguration file: defaults and exemptions of PodSecurity, and resources that "
                 "ResourceQuota limits without a quota")
      ->check(CLI::ExistingFile);
  begin_group(app, "Connections");
  app.add_flag("--disable-http2-serving", args.http2_off, "Speak HTTP/1.1 only");
  app.add_option("--http-threads", args.http_threads,
                 "Threads that serve connections, 1 to 64 (default: half as many as processors, 1 to 4)")
      ->check(between(1, 64));
  app.add_option("--goaway-chance", args.goaway_chance,
                 "Share of HTTP/2 requests after which the client is asked to reconnect, 0 to 0.02 (default 0). Lets a "
                 "load balancer redistribute clients; needs --etcd-servers")
      ->check(between_shares(0.0, 0.02));
  add_audit(app, args.audit);
  add_flow(app, args.flow);
  begin_group(app, "Serving");
  add_parsed(app, "--what-if", args.what_if, parse_switch,
             "Allow what-if simulations on the page /ui/, for users with the verb post on /ui/what-if. One runs at a "
             "time, for two minutes at most, with 2Gi",
             "on|off", "on");
  app.add_flag("--insecure-http", args.insecure_http,
               "Serve plain HTTP and treat every client as administrator (for tests, on a loopback address only)");
  app.parse_complete_callback([&args] {
    check_etcd(args.etcd);
    check_etcd_stores(args.etcd);
    if (args.insecure_http && !(args.client_ca_file + args.tls_certificate_file).empty()) {
      throw CLI::ValidationError(
          "--insecure-http",
          "plain HTTP has no certificates: it cannot be combined with --client-ca-file or --tls-cert-file");
    }
    if (args.goaway_chance > 0 && args.etcd.servers.empty()) {
      throw CLI::ValidationError("--goaway-chance",
                                 "needs --etcd-servers: with an embedded database this server is the only one");
    }
    if (!args.insecure_http || is_loopback(args.bind_address)) return;
    throw CLI::ValidationError("--insecure-http",
                               fmt::format("makes every client an administrator, so --bind-address must be a loopback "
                                           "address such as 127.0.0.1 or ::1, got \"{}\"",
                                           args.bind_address));
  });
}

void add_api(CLI::App& app, ClusterArgs& args) {
  app.add_option("--kubeconfig", args.kubeconfig, "Kubeconfig file that names the API server and the credentials")
      ->check(CLI::ExistingFile)
      ->default_str("the files of $KUBECONFIG");
  app.add_option("--context", args.context, "Context of the kubeconfig")
      ->type_name("NAME")
      ->default_str("its current-context");
  app.add_option("--cluster", args.cluster, "Cluster of the kubeconfig")
      ->type_name("NAME")
      ->default_str("that of the context");
  app.add_option("--user", args.user, "User of the kubeconfig")->type_name("NAME")->default_str("that of the context");
}

void add_client_api(CLI::App& app, ClusterArgs& args) {
  add_api(app, args);
  app.get_option("--kubeconfig")
      ->default_str("the files of $KUBECONFIG, else the one that `spillway up` wrote, else ~/.kube/config");
}

namespace {

template <typename T>
void add_choice(CLI::App& app, const std::string& flag, T& into, const std::string& help,
                const std::vector<std::pair<std::string, T>>& words) {
  std::vector<std::pair<std::string, int>> numbers;
  for (const auto& [word, value] : words) numbers.emplace_back(word, static_cast<int>(value));
  app.add_option(flag, into, help)->transform(choice_of(std::move(numbers)))->default_str(words.front().first);
}

}  // namespace

void add_log(CLI::App& app, LogArgs& args) {
  using telemetry::Level;
  add_choice<Level>(
      app, "--log-level", args.level, "Log lines of this level and above",
      {{"info", Level::kInfo}, {"debug", Level::kDebug}, {"warning", Level::kWarning}, {"error", Level::kError}});
  using telemetry::LogFormat;
  add_choice<LogFormat>(app, "--log-format", args.format, "Format of log lines",
                        {{"logfmt", LogFormat::kLogfmt}, {"json", LogFormat::kJson}});
  for (const char* flag : {"--log-level", "--log-format"})
    app.get_option(flag)->each([&args](const std::string&) { args.given = true; });
}

void add_output(CLI::App& app, OutputFormat& output) {
  add_choice<OutputFormat>(
      app, "-o,--output", output, "Output format",
      {{"text", OutputFormat::kText}, {"json", OutputFormat::kJson}, {"yaml", OutputFormat::kYaml}});
}

void add_table_output(CLI::App& app, OutputFormat& output) {
  add_choice<OutputFormat>(app, "-o,--output", output, "Output format; wide: more columns or rows",
                           {{"text", OutputFormat::kText},
                            {"wide", OutputFormat::kWide},
                            {"json", OutputFormat::kJson},
                            {"yaml", OutputFormat::kYaml}});
}

void add_colour(CLI::App& app, Colour& colour) {
  add_choice<Colour>(app, "--color", colour, "Colours; auto: on a terminal, unless NO_COLOR is set",
                     {{"auto", Colour::kAuto}, {"always", Colour::kAlways}, {"never", Colour::kNever}});
}

void add_without_effect(CLI::App& app, std::span<const StockFlag> flags, std::vector<FlagWithoutEffect>& given) {
  for (const auto& [flag, why] : flags) {
    app.add_option_function<std::string>(flag,
                                         [&given, flag, why](const std::string&) { given.push_back({flag, why}); })
        ->expected(0, 1)
        ->group("");
  }
}

}  // namespace spillway::cli
