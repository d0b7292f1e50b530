#include "wire/dashboard/dashboard_server.h"

#include "wire/dashboard/proxied_request.h"
#include "wire/server/http_exchange.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <array>
#include <optional>
#include <utility>

namespace spillway::wire {

namespace {

/// Limits for the browser of one person: few connections, small bodies.
HttpLimits dashboard_limits() {
  HttpLimits limits = HttpLimits::small();
  limits.connections = {.connections_max = 64, .unproven_max = 64, .unproven_per_address_max = 64, .ordinary_max = 64};
  limits.unproven_idle_max = seconds(120);  // clients do not authenticate here: the token in the path stands for that
  return limits;
}

/// 128 random bits as a path segment.
std::optional<std::string> random_token() {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return std::nullopt;
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

DashboardServer::DashboardServer(runtime::Loop& loop, Options options, std::string token)
    : address_(options.address),
      token_(std::move(token)),
      door_{.version = options.version,
            .through = "dashboard",
            .what_if = options.what_if != nullptr,
            .server = fmt::format("{}:{}", bracketed(options.endpoint.host), options.endpoint.port)},
      relay_(loop, {.endpoint = options.endpoint, .limits = {}}),
      controllers_(loop, relay_, options.controllers),
      what_if_(options.what_if) {
  HttpServer::Options http;
  http.address = options.address;
  http.port = options.port;
  http.limits = dashboard_limits();
  http.log = options.log;
  RequestHandler& handler = *this;
  http_ = std::make_unique<HttpServer>(loop, handler, std::move(http));
}

Result<std::unique_ptr<DashboardServer>> DashboardServer::start(runtime::Loop& loop, Options options) {
  auto token = random_token();
  if (!token) return make_error(ErrorCode::kInternalError, "there are no random bytes for the path");
  std::unique_ptr<DashboardServer> server(
      new DashboardServer(loop, std::move(options), *std::move(token)));  // NOLINT: private constructor
  SPILLWAY_TRY_VOID(server->http_->start());
  return server;
}

std::string DashboardServer::url() const {
  return fmt::format("http://{}:{}/{}/ui/", bracketed(address_), http_->port(), token_);
}

void DashboardServer::stop(runtime::Loop::Task done) {
  http_->stop(Duration::zero(), std::move(done));
}

void DashboardServer::on_abandoned(Ticket ticket) {
  controllers_.abandon(ticket);
  relay_.abandon(ticket);
  if (what_if_ != nullptr) what_if_->abandon(ticket);
}

void DashboardServer::ask_what_if(Ticket ticket, const api::Request& request, std::shared_ptr<api::ResponseSink> sink) {
  const auto question = read_what_if(request, "http");
  if (!question) {
    sink->on_response(status_response(question.error()));
    return;
  }
  what_if_->open(ticket, *question, std::move(sink));
}

RequestHandler::Ticket DashboardServer::on_request(Incoming incoming, std::shared_ptr<api::ResponseSink> sink) {
  api::Request& request = incoming.request;
  const Ticket ticket = ++last_ticket_;
  const auto refuse = [&](ErrorCode code, const char* why) {
    sink->on_response(status_response(make_error(code, "{}", why)));
    return ticket;
  };
  if (!is_own_host(request.header("host"), address_, http_->port()))
    return refuse(ErrorCode::kForbidden, "this server is not reached by that name");
  if (is_cross_origin(request))
    return refuse(ErrorCode::kForbidden, "pages of other origins may send no requests here");
  const std::string rest(behind_token(request.target, token_));
  if (rest.empty()) return refuse(ErrorCode::kNotFound, "open the address that `spillway dashboard` printed");
  if (request.method == api::Method::kGet) {
    if (auto page = dashboard_page(rest.substr(0, rest.find('?')), door_)) {
      sink->on_response(*std::move(page));
      return ticket;
    }
  }
  if (request.method == api::Method::kPost && rest == "/ui/what-if") {
    if (what_if_ == nullptr) return refuse(ErrorCode::kForbidden, "this dashboard was started with --what-if=off");
    ask_what_if(ticket, request, std::move(sink));
    return ticket;
  }
  request.target = rest;
  auto proxied = check_proxied(request);
  if (!proxied) {
    sink->on_response(status_response(proxied.error()));
    return ticket;
  }
  if (proxied->request.target.starts_with("/debug/spillway/")) {
    controllers_.open(ticket, std::move(proxied->request), std::move(sink));
    return ticket;
  }
  relay_.open(ticket, std::move(proxied->request),
              proxied->watches ? HttpClient::Kind::kStream : HttpClient::Kind::kCall, std::move(sink));
  return ticket;
}

}  // namespace spillway::wire
