#include "apps/view/remote.h"

#include "apps/server/data_dir.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apps {

namespace {

constexpr const char* kExpected =
    "expected --kubeconfig FILE, KUBECONFIG=FILE[:FILE…], a running `spillway up` or ~/.kube/config";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// "a:b", empty parts left out.
std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t colon = text.find(':');
    if (colon != 0) parts.emplace_back(text.substr(0, colon));
    text = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  }
  return parts;
}

Result<std::vector<std::string>> kubeconfig_files(const cli::ClusterArgs& args) {
  if (auto named = named_kubeconfigs(args)) return named;
  const std::string home = environment("HOME");
  const std::string of_up = resolve_data_dir({}) + "/kubeconfig";
  for (const std::string& file : {of_up, home + "/.kube/config"}) {
    if (::access(file.c_str(), F_OK) == 0) return std::vector{file};
  }
  return invalid(of_up, "no such kubeconfig; {}", kExpected);
}

}  // namespace

wire::Protocols offered_protocols() {
  return environment("DISABLE_HTTP2").empty() ? wire::Protocols::kHttp2AndHttp11 : wire::Protocols::kHttp11;
}

Result<std::vector<std::string>> named_kubeconfigs(const cli::ClusterArgs& args) {
  if (!args.kubeconfig.empty()) return std::vector{args.kubeconfig};
  auto named = split_list(environment("KUBECONFIG"));
  if (named.empty()) return invalid("--kubeconfig", "is required; or KUBECONFIG=FILE[:FILE…]");
  return named;
}

Result<wire::Kubeconfig> find_kubeconfig(const cli::ClusterArgs& args) {
  SPILLWAY_TRY(files, kubeconfig_files(args));
  auto config = wire::read_kubeconfig(files, {args.context, args.cluster, args.user, {}});
  if (!config && config.error().code == ErrorCode::kNotFound && args.kubeconfig.empty()) {
    return invalid(config.error().at, "{} (from KUBECONFIG); {}", config.error().message, kExpected);
  }
  return config;
}

Result<Remote> connect_remote(runtime::Loop& loop, const cli::ClusterArgs& args,
                              const wire::HttpClient::Limits& limits) {
  SPILLWAY_TRY(config, find_kubeconfig(args));
  return connect_remote(loop, config, limits);
}

Result<Remote> connect_remote(runtime::Loop& loop, const wire::Kubeconfig& config,
                              const wire::HttpClient::Limits& limits) {
  wire::HttpsTransport::Options options;
  options.limits = limits;
  SPILLWAY_TRY(endpoint, wire::make_endpoint(config, config.path, offered_protocols()));
  Remote remote{.transport = nullptr,
                .authority_pem = config.authority_pem,
                .host = fmt::format("{}:{}", endpoint.host, endpoint.port),
                .host_name = endpoint.host,
                .port = endpoint.port,
                .speaks_tls = endpoint.tls != nullptr};
  options.endpoint = std::move(endpoint);
  remote.transport = std::make_unique<wire::HttpsTransport>(loop, std::move(options));
  return remote;
}

}  // namespace spillway::apps
