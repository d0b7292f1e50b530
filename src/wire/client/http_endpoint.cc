#include "wire/client/http_endpoint.h"

#include "wire/net/socket.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace spillway::wire {

namespace {

constexpr std::uint16_t kHttpsPort = 443;
constexpr std::uint16_t kHttpPort = 80;

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc() || end != text.data() + text.size() || port == 0) {
    return make_error(ErrorCode::kInvalid, "expected a port between 1 and 65535, got \"{}\"", text);
  }
  return port;
}

/// Splits "https://host:port/prefix".
Outcome parse_server(std::string_view url, HttpEndpoint& endpoint) {
  const bool tls = url.starts_with("https://");
  url.remove_prefix(tls ? 8 : 7);
  const std::size_t path = url.find_first_of("/?#");
  std::string_view authority = url.substr(0, path);
  std::string_view prefix = path == std::string_view::npos ? std::string_view() : url.substr(path);
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (prefix.find_first_of("?# \r\n") != std::string_view::npos) {
    return make_error(ErrorCode::kInvalid, "expected a path without query, got \"{}\"", prefix);
  }
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return make_error(ErrorCode::kInvalid, "\"[\" without \"]\"");
    const std::string_view rest = authority.substr(end + 1);
    if (!rest.empty() && !rest.starts_with(':')) return make_error(ErrorCode::kInvalid, "expected :PORT after \"]\"");
    port = rest.empty() ? rest : rest.substr(1);
    authority = authority.substr(1, end - 1);
  } else if (const std::size_t colon = authority.rfind(':'); colon != std::string_view::npos) {
    port = authority.substr(colon + 1);
    authority = authority.substr(0, colon);
  }
  constexpr std::string_view kHostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";
  if (authority.empty() || authority.find_first_not_of(kHostCharacters) != std::string_view::npos) {
    return make_error(ErrorCode::kInvalid, "expected a host name or address, got \"{}\"", authority);
  }
  endpoint.host = authority;
  endpoint.path_prefix = prefix;
  endpoint.port = tls ? kHttpsPort : kHttpPort;
  if (!port.empty()) {
    SPILLWAY_TRY(number, parse_port(port));
    endpoint.port = number;
  }
  return {};
}

}  // namespace

std::string HttpEndpoint::server_text() const {
  return (tls ? "https://" : "http://") + format_endpoint(host, port);
}

std::string HttpEndpoint::host_text() const {
  if (!authority.empty()) return authority;
  std::string text = format_endpoint(host, port);
  if (port == (tls ? kHttpsPort : kHttpPort)) text.erase(text.rfind(':'));
  return text;
}

Result<HttpEndpoint> make_endpoint(const Kubeconfig& config, const std::string& path, Protocols offered) {
  HttpEndpoint endpoint;
  if (const Outcome parsed = parse_server(config.server, endpoint); !parsed) {
    return invalid(path + ": server", "{}", parsed.error().message);
  }
  endpoint.tls_name = config.tls_server_name;
  auto token = BearerToken::make(config.token, config.token_file);
  if (!token) return invalid(path + ": " + token.error().at, "{}", token.error().message);
  endpoint.credentials.token = *std::move(token);
  if (!config.username.empty()) endpoint.credentials.basic = config.username + ":" + config.password;
  const bool has_own = !config.token.empty() || !config.username.empty() || !config.certificate_pem.empty();
  if (config.program && !has_own) {
    endpoint.credentials.program = config.program;
    endpoint.credentials.program_info = exec_info(*config.program, config);
  }
  if (!config.server.starts_with("https://")) return endpoint;
  TlsContext::ClientOptions tls{config.authority_pem, config.verify, std::nullopt, offered};
  if (!config.certificate_pem.empty()) tls.identity = KeyPair{config.certificate_pem, config.key_pem};
  auto context = TlsContext::make_client(tls);
  if (!context) return invalid(path + ": " + context.error().at, "{}", context.error().message);
  endpoint.tls = *std::move(context);
  endpoint.credentials.tls = std::move(tls);
  return endpoint;
}

}  // namespace spillway::wire
