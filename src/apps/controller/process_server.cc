#include "apps/controller/process_server.h"

#include "api/exchange/strict_target.h"
#include "apps/process/host_name.h"
#include "apps/server/certificates.h"
#include "base/rng.h"
#include "wire/server/authenticator.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::apps {

namespace {

/// True for pages that need no credentials, as upstream.
bool is_health_path(std::string_view path) {
  return std::ranges::any_of(
      std::array<std::string_view, 3>{"/healthz", "/livez", "/readyz"},
      [&](std::string_view each) { return path == each || path == std::string(each) + "/ping"; });
}

api::Response text_response(int status, std::string text, std::string_view type = "text/plain; charset=utf-8") {
  return {.status = status,
          .headers = {{"Content-Type", std::string(type)}, {"X-Content-Type-Options", "nosniff"}},
          .body = std::move(text)};
}

agent::RequestGate::Caller caller_of(const api::Request& request, api::UserInfo user) {
  agent::RequestGate::Caller caller;
  if (user.name != wire::Authenticator::Options().anonymous.name) {
    caller.certified = std::move(user);
  } else if (const auto token = wire::bearer_token(request.header("authorization"))) {
    caller.token = *token;
  }
  return caller;
}

std::string advertised(const cli::ProcessServingArgs& args) {
  if (!args.advertise_address.empty()) return args.advertise_address;
  return args.bind_address == "0.0.0.0" || args.bind_address == "::" ? host_name() : args.bind_address;
}

}  // namespace

ProcessServer::ProcessServer(Process& process, std::unique_ptr<DebugPages> pages,
                             std::unique_ptr<client::Transport> transport)
    : process_(process),
      transport_(std::move(transport)),
      gate_({}, Rng(fnv1a64(host_name())).fork("request-gate")),
      driver_(process.loop(), gate_, *transport_),
      pages_(std::move(pages)) {}

void ProcessServer::serve_recording(host::RecordingRing* ring) {
  if (!recording_) recording_.emplace(process_.loop());
  recording_->set_ring(ring);
}

Result<std::unique_ptr<ProcessServer>> ProcessServer::create(Process& process, const cli::ProcessServingArgs& args,
                                                             std::unique_ptr<DebugPages> pages,
                                                             std::unique_ptr<client::Transport> transport,
                                                             const std::string& client_authority_pem) {
  std::unique_ptr<ProcessServer> server(
      new ProcessServer(process, std::move(pages), std::move(transport)));  // NOLINT: private
  const std::string host = advertised(args);
  SPILLWAY_TRY(tls, prepare_process_server({.certificate_file = args.tls_cert_file,
                                            .key_file = args.tls_private_key_file,
                                            .hosts = {host, args.bind_address},
                                            .client_authority_pem = client_authority_pem},
                                           process.loop().now().wall));
  server->authority_pem_ = std::move(tls.authority_pem);
  wire::HttpServer::Options http;
  http.address = args.bind_address;
  http.port = args.secure_port;
  http.tls = std::move(tls.context);
  http.authenticator = std::make_shared<wire::Authenticator>(
      wire::Authenticator::Options{.tokens = {}, .verified = wire::Authenticator::Tokens::kHandler});
  http.limits = wire::HttpLimits::small();
  http.log = process.log();
  http.metrics = &process.metrics();
  wire::RequestHandler& handler = *server;
  server->http_ = std::make_unique<wire::HttpServer>(process.loop(), handler, std::move(http));
  SPILLWAY_TRY_VOID(server->http_->start());
  const bool v6 = host.find(':') != std::string::npos;
  server->url_ = fmt::format("https://{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", server->http_->port());
  server->driver_.start();
  process.log().info("serving", {{"url", server->url_}});
  return server;
}

wire::RequestHandler::Ticket ProcessServer::on_request(wire::Incoming incoming,
                                                       std::shared_ptr<api::ResponseSink> sink) {
  const api::Request& request = incoming.request;
  const Ticket ticket = ++last_ticket_;
  const Result<api::Target> target = api::parse_strict_target(request.target);
  if (!target) {
    const int status = target.error().code == ErrorCode::kBadRequest ? 400 : 404;
    sink->on_response(text_response(status, target.error().text() + "\n"));
    return ticket;
  }
  const agent::NodeAccess access = agent::path_access(request.method, *target);
  if (is_health_path(access.path)) {
    sink->on_response(text_response(200, "ok"));
    return ticket;
  }
  open_.insert(ticket);
  const bool reads = request.method == api::Method::kGet;
  agent::RequestGate::Caller caller = caller_of(request, *incoming.user);
  driver_.step([this, ticket, access, reads, caller = std::move(caller), sink = std::move(sink)](Now now) {
    gate_.ask(
        caller, access,
        [this, ticket, reads, path = access.path, sink](const agent::RequestGate::Verdict& verdict) {
          if (verdict.code == 200 && reads) return answer(ticket, path, sink);
          if (open_.erase(ticket) == 0) return;  // the client has disconnected
          sink->on_response(verdict.code == 200 ? text_response(405, "405: Method Not Allowed\n")
                                                : text_response(verdict.code, verdict.text + "\n"));
        },
        now);
  });
  return ticket;
}

void ProcessServer::answer(Ticket ticket, const std::string& path, const std::shared_ptr<api::ResponseSink>& sink) {
  const auto respond = [this, ticket, sink](api::Response response) {
    if (open_.erase(ticket) > 0) sink->on_response(std::move(response));  // otherwise the client has disconnected
  };
  if (recording_ && host::RecordingPages::serves(path)) {
    recording_->get(path, respond);
  } else {
    respond(page(path));
  }
}

api::Response ProcessServer::page(std::string_view path) const {
  if (path == "/metrics")
    return text_response(200, process_.metrics().text(), "text/plain; version=0.0.4; charset=utf-8");
  if (path == "/configz") return json_response(200, configuration_);
  if (auto page = pages_->answer(path)) return *std::move(page);
  return text_response(404, "404 page not found\n");
}

void ProcessServer::stop(runtime::Loop::Task done) {
  driver_.stop();
  http_->stop(Duration::zero(), std::move(done));
}

}  // namespace spillway::apps
