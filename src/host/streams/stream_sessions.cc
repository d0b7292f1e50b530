#include "host/streams/stream_sessions.h"

#include "api/exchange/upgrade.h"
#include "api/stream/spdy_channels.h"
#include "host/streams/relay_session.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::size_t kPortsMax = 64;  // ports in one request

void refuse_spdy(api::ResponseSink& sink, const Error& why, std::span<const std::string_view> supported) {
  if (why.code != ErrorCode::kForbidden) return refuse_stream(sink, 400, why.text());
  api::HeaderList headers{{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}};
  for (const std::string_view protocol : supported)
    headers.emplace_back("X-Accepted-Stream-Protocol-Versions", std::string(protocol));
  sink.on_response({.status = 403, .headers = std::move(headers), .body = why.text() + "\n"});
}

std::vector<std::string> values_of(const api::Target& target, std::string_view name) {
  std::vector<std::string> values;
  for (const auto& [key, value] : target.query)
    if (key == name) values.push_back(value);
  return values;
}

std::vector<std::string> spdy_offers(const api::Request& request) {
  std::vector<std::string> offers;
  for (const auto& [name, value] : request.headers)
    if (name == "x-stream-protocol-version") offers.push_back(value);
  return offers;
}

/// The client's side of a relay, without its sink yet.
Result<RelayedClient> relayed_client(const api::Request& request, const StreamWish& wish) {
  const bool ports = wish.what == StreamWish::What::kPorts;
  RelayedClient client;
  if (api::asks_for_upgrade(request, "SPDY/3.1")) {
    client.offers = spdy_offers(request);
    if (client.offers.empty())
      return make_error(ErrorCode::kBadRequest, "unable to upgrade: X-Stream-Protocol-Version is required");
    client.head = {.status = 101, .headers = {{"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}}, .body = {}};
    client.names_protocol = true;
    client.translation = api::translate_nothing();
    return client;
  }
  if (!api::asks_for_upgrade(request, "websocket"))
    return make_error(ErrorCode::kBadRequest, "Upgrade request required");
  SPILLWAY_TRY(handshake, api::accept_websocket(request, ports ? api::PortStreams::tunnel_protocols()
                                                               : api::WebSocketChannels::protocols()));
  client.head = std::move(handshake.head);
  client.offers = {ports ? "portforward.k8s.io" : "v4.channel.k8s.io"};
  client.translation = ports ? api::translate_tunnel() : api::translate_channels(handshake.protocol, wish.options);
  return client;
}

std::vector<std::int32_t> ports_of(const api::Target& target) {
  std::vector<std::int32_t> ports;
  for (const std::string& value : values_of(target, "port"))
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view text = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), text.size() + 1));
      std::uint16_t port = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
      if (error == std::errc() && end == text.data() + text.size() && port != 0 && ports.size() < kPortsMax)
        ports.push_back(port);
    }
  return ports;
}

int status_of(const Error& error) {
  return error.code == ErrorCode::kNotFound ? 404 : error.code == ErrorCode::kInvalid ? 400 : 500;
}

}  // namespace

void refuse_stream(api::ResponseSink& sink, int status, const std::string& text) {
  api::HeaderList headers{{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}};
  if (status == 429) headers.emplace_back("Retry-After", "60");
  sink.on_response({.status = status, .headers = std::move(headers), .body = text + "\n"});
}

StreamSessions::~StreamSessions() {
  for (const auto& session : sessions_) session->cut();
}

std::optional<StreamSessions::Upgrade> StreamSessions::accept(const api::Request& request,
                                                              const api::StreamOptions& options,
                                                              const std::shared_ptr<api::ResponseSink>& sink) {
  const auto give_up = [&](int status, const std::string& text) {
    refuse_stream(*sink, status, text);
    return std::nullopt;
  };
  const auto upgraded = api::upgrading(sink);
  const bool spdy = api::asks_for_upgrade(request, "SPDY/3.1");
  if (upgraded == nullptr || (!spdy && !api::asks_for_upgrade(request, "websocket")))
    return give_up(400, "Upgrade request required");
  if (spdy) {
    Result<api::SpdyHandshake> handshake = api::accept_spdy(request, api::SpdyChannels::protocols());
    if (!handshake) {
      refuse_spdy(*sink, handshake.error(), api::SpdyChannels::protocols());
      return std::nullopt;
    }
    if (sessions_.size() >= kSessionsMax) return give_up(429, "too many streams are open");
    return Upgrade{upgraded, std::move(handshake->head),
                   std::make_unique<api::SpdyChannels>(handshake->protocol, options)};
  }
  Result<api::WebSocketHandshake> handshake = api::accept_websocket(request, api::WebSocketChannels::protocols());
  if (!handshake) return give_up(400, handshake.error().text());
  if (sessions_.size() >= kSessionsMax) return give_up(429, "too many streams are open");
  return Upgrade{upgraded, std::move(handshake->head), std::make_unique<api::WebSocketChannels>(handshake->protocol)};
}

void StreamSessions::relay(StreamServer& server, const api::Request& request, StreamWish wish,
                           const std::shared_ptr<api::ResponseSink>& sink) {
  if (const Outcome there = server.check(wish); !there)
    return refuse_stream(*sink, status_of(there.error()), there.error().text());
  Result<RelayedClient> client = relayed_client(request, wish);
  if (!client) return refuse_stream(*sink, 400, client.error().text());
  client->sink = api::upgrading(sink);
  if (client->sink == nullptr) return refuse_stream(*sink, 400, "Upgrade request required");
  if (sessions_.size() >= kSessionsMax) return refuse_stream(*sink, 429, "too many streams are open");
  const auto session = std::make_shared<RelaySession>(loop_, *std::move(client));
  session->set_idle_max(idle_max_);
  sessions_.push_back(session);
  session->open();
  server.ask(wish, [weak = std::weak_ptr(session)](const Result<std::string>& url) {
    if (const auto alive = weak.lock()) alive->connect(url);
  });
}

void StreamSessions::begin(api::UpgradingSink& sink, api::Response head,
                           const std::shared_ptr<StreamSession>& session) {
  session->set_idle_max(idle_max_);
  sessions_.push_back(session);
  sink.on_upgrade(std::move(head), session);
  if (!session->over()) session->open();
}

void StreamSessions::exec(const api::Request& request, const api::Target& target,
                          const std::shared_ptr<api::ResponseSink>& sink) {
  std::erase_if(sessions_, [](const auto& session) { return session->over(); });
  const std::vector<std::string>& path = target.segments;
  const Result<api::StreamOptions> options = api::parse_stream_options(target);
  if (!options) return refuse_stream(*sink, 400, options.error().text());
  if (StreamServer* server = containers_.stream_server())
    return relay(*server, request,
                 {.what = StreamWish::What::kExec,
                  .pod = {path[1], path[2]},
                  .uid = path.size() == 5 ? path[3] : std::string(),
                  .container = path.back(),
                  .argv = values_of(target, "command"),
                  .options = *options,
                  .ports = {}},
                 sink);
  const auto enter = [this, pod = api::PodKey{path[1], path[2]}, uid = path.size() == 5 ? path[3] : std::string(),
                      container = path.back(),
                      argv = values_of(target, "command")] { return containers_.enter(pod, uid, container, argv); };
  if (const Result<ContainerAccess> access = enter(); !access)
    return refuse_stream(*sink, status_of(access.error()), access.error().text());
  std::optional<Upgrade> upgrade = accept(request, *options, sink);
  if (!upgrade) return;
  const auto session =
      std::make_shared<ExecSession>(loop_, upgrade->sink, std::move(upgrade->channels), *options, enter);
  begin(*upgrade->sink, std::move(upgrade->head), session);
}

void StreamSessions::attach(const api::Request& request, const api::Target& target,
                            const std::shared_ptr<api::ResponseSink>& sink) {
  std::erase_if(sessions_, [](const auto& session) { return session->over(); });
  const std::vector<std::string>& path = target.segments;
  Result<api::StreamOptions> options = api::parse_stream_options(target);
  if (!options) return refuse_stream(*sink, 400, options.error().text());
  const api::PodKey pod{path[1], path[2]};
  if (StreamServer* server = containers_.stream_server())
    return relay(*server, request,
                 {.what = StreamWish::What::kAttach,
                  .pod = pod,
                  .uid = path.size() == 5 ? path[3] : std::string(),
                  .container = path.back(),
                  .argv = {},
                  .options = *options,
                  .ports = {}},
                 sink);
  const auto console = containers_.console(pod, path.size() == 5 ? path[3] : std::string(), path.back());
  if (!console && console.error().code == ErrorCode::kNotFound)
    return refuse_stream(*sink, 404, console.error().text());
  if (!console)
    return refuse_stream(*sink, 500, fmt::format("container {} not found in pod {}_{}", path.back(), pod.name, pod.ns));
  options->tty = (*console)->has_terminal();  // even if the client expects none
  std::optional<Upgrade> upgrade = accept(request, *options, sink);
  if (!upgrade) return;
  const auto session =
      std::make_shared<AttachSession>(loop_, upgrade->sink, std::move(upgrade->channels), *options, *console);
  begin(*upgrade->sink, std::move(upgrade->head), session);
}

void StreamSessions::forward(const api::Request& request, const api::Target& target,
                             const std::shared_ptr<api::ResponseSink>& sink) {
  std::erase_if(sessions_, [](const auto& session) { return session->over(); });
  const std::vector<std::string>& path = target.segments;
  const api::PodKey pod{path[1], path[2]};
  if (StreamServer* server = containers_.stream_server())
    return relay(*server, request,
                 {.what = StreamWish::What::kPorts,
                  .pod = pod,
                  .uid = path.size() == 4 ? path[3] : std::string(),
                  .container = {},
                  .argv = {},
                  .options = {},
                  .ports = ports_of(target)},
                 sink);
  auto dial = containers_.dial(pod, path.size() == 4 ? path[3] : std::string());
  if (!dial) return refuse_stream(*sink, status_of(dial.error()), dial.error().text());
  const auto upgraded = api::upgrading(sink);
  const bool spdy = api::asks_for_upgrade(request, "SPDY/3.1");
  if (upgraded == nullptr || (!spdy && !api::asks_for_upgrade(request, "websocket")))
    return refuse_stream(*sink, 400, "Upgrade request required");
  api::Response head;
  if (spdy) {
    auto handshake = api::accept_spdy(request, api::PortStreams::protocols());
    if (!handshake) return refuse_spdy(*sink, handshake.error(), api::PortStreams::protocols());
    head = std::move(handshake->head);
  } else {
    auto handshake = api::accept_websocket(request, api::PortStreams::tunnel_protocols());
    if (!handshake) return refuse_stream(*sink, 400, handshake.error().text());
    head = std::move(handshake->head);
  }
  if (sessions_.size() >= kSessionsMax) return refuse_stream(*sink, 429, "too many streams are open");
  using enum api::PortStreams::Carrier;
  begin(*upgraded, std::move(head),
        std::make_shared<PortSession>(loop_, upgraded, spdy ? kPlain : kWebSocket,
                                      fmt::format("{}_{}", pod.name, pod.ns), *std::move(dial), forwards_));
}

}  // namespace spillway::host
