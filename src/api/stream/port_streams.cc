#include "api/stream/port_streams.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace spillway::api {
namespace {

constexpr std::array<std::string_view, 1> kPortProtocols = {"portforward.k8s.io"};
constexpr std::array<std::string_view, 1> kTunnelProtocols = {"SPDY/3.1+portforward.k8s.io"};
constexpr std::size_t kRequestIdBytesMax = 64;
constexpr std::size_t kReasonBytesMax = 1024;

std::string_view header_of(const SpdyFrame& frame, std::string_view name) {
  const auto found = std::ranges::find(frame.headers, name, &std::pair<std::string, std::string>::first);
  return found == frame.headers.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

}  // namespace

std::span<const std::string_view> PortStreams::protocols() {
  return kPortProtocols;
}

std::span<const std::string_view> PortStreams::tunnel_protocols() {
  return kTunnelProtocols;
}

Result<std::string> tunnelled_bytes(const std::vector<WebSocketMessage>& messages, std::string& reply) {
  std::string bytes;
  for (const WebSocketMessage& message : messages) {
    if (message.kind == WebSocketKind::kBinary) bytes += message.payload;
    if (message.kind == WebSocketKind::kPing) reply += websocket_frame(WebSocketKind::kPong, message.payload);
    if (message.kind == WebSocketKind::kClose) return make_error(ErrorCode::kBadRequest, "the client leaves");
    if (message.kind == WebSocketKind::kText) return make_error(ErrorCode::kBadRequest, "websocket: text in a tunnel");
  }
  return bytes;
}

/// The SPDY bytes in what the carrier brought.
Result<std::string> PortStreams::unwrap(std::string_view bytes, std::string& reply) {
  if (carrier_ == Carrier::kPlain) return std::string(bytes);
  std::vector<WebSocketMessage> messages;
  SPILLWAY_TRY_VOID(messages_.feed(bytes, messages));
  return tunnelled_bytes(messages, reply);
}

std::string PortStreams::wrap(std::string frames) const {
  if (carrier_ == Carrier::kPlain || frames.empty()) return frames;
  return websocket_frame(WebSocketKind::kBinary, frames);
}

Result<std::vector<PortEvent>> PortStreams::feed(std::string_view bytes, Instant now, std::string& reply) {
  SPILLWAY_TRY(plain, unwrap(bytes, reply));
  std::vector<SpdyFrame> frames;
  SPILLWAY_TRY_VOID(reader_.feed(plain, frames));
  std::vector<PortEvent> events;
  std::string answers;
  for (SpdyFrame& frame : frames) {
    if (frame.kind == SpdyKind::kPing && frame.stream % 2 == 1) answers += SpdyWriter::ping(frame.stream);
    if (frame.kind == SpdyKind::kOpen) SPILLWAY_TRY_VOID(open(frame, now, events, answers));
    take(std::move(frame), events);
  }
  reply += wrap(std::move(answers));
  return events;
}

void PortStreams::drop_old_halves(Instant now, std::string& frames) {
  std::erase_if(halves_, [&](const auto& entry) {
    const bool old = now - entry.second.since >= kHalfMax;
    if (old) frames += SpdyWriter::reset(entry.second.errors, kSpdyCancelled);
    return old;
  });
}

Outcome PortStreams::open(const SpdyFrame& frame, Instant now, std::vector<PortEvent>& events, std::string& frames) {
  if (frame.stream % 2 == 0 || frame.stream <= last_id_)
    return make_error(ErrorCode::kBadRequest, "spdy: stream {} cannot be opened", frame.stream);
  last_id_ = frame.stream;
  drop_old_halves(now, frames);
  const std::string_view type = header_of(frame, "streamtype");
  const std::string_view id = header_of(frame, "requestid");
  const auto port = port_of(header_of(frame, "port"));
  const auto half = halves_.find(id);
  const bool begins = type == "error" && half == halves_.end() && halves_.size() + pairs_.size() < kPairsMax;
  const bool completes = type == "data" && half != halves_.end() && port && half->second.port == *port;
  if (!port || id.size() > kRequestIdBytesMax || (!begins && !completes)) {
    frames += SpdyWriter::reset(frame.stream, kSpdyRefused);
    return {};
  }
  frames += writer_.reply(frame.stream);
  if (begins) {
    halves_.emplace(id, Half{.errors = frame.stream, .port = *port, .since = now});
    return {};
  }
  pairs_.emplace(frame.stream, Pair{.errors = half->second.errors});
  halves_.erase(half);
  events.push_back({.kind = PortEvent::Kind::kOpened, .pair = frame.stream, .port = *port});
  return {};
}

void PortStreams::take(SpdyFrame frame, std::vector<PortEvent>& events) {
  using Kind = PortEvent::Kind;
  if (frame.kind == SpdyKind::kPing || frame.kind == SpdyKind::kGoAway) return;
  const auto pair = pairs_.find(frame.stream);
  if (pair == pairs_.end()) return;
  if (frame.kind == SpdyKind::kReset) {
    pair->second.open = false;
    events.push_back({.kind = Kind::kReset, .pair = frame.stream});
    return;
  }
  if (!frame.data.empty()) events.push_back({.kind = Kind::kData, .pair = frame.stream, .data = std::move(frame.data)});
  if (frame.last) events.push_back({.kind = Kind::kEnd, .pair = frame.stream});
}

std::string PortStreams::data(SpdyStreamId pair, std::string_view bytes) {
  const auto found = pairs_.find(pair);
  if (found == pairs_.end() || !found->second.open || found->second.end_sent) return {};
  return wrap(SpdyWriter::data(pair, bytes));
}

std::string PortStreams::end(SpdyStreamId pair) {
  const auto found = pairs_.find(pair);
  if (found == pairs_.end() || std::exchange(found->second.end_sent, true)) return {};
  std::string frames;
  if (found->second.open) frames += SpdyWriter::data(pair, {}, true);
  return wrap(frames + SpdyWriter::data(found->second.errors, {}, true));
}

std::string PortStreams::close(SpdyStreamId pair, std::string_view why) {
  const auto found = pairs_.find(pair);
  if (found == pairs_.end()) return {};
  std::string frames;
  if (!found->second.end_sent) {
    frames += SpdyWriter::data(found->second.errors, why.substr(0, kReasonBytesMax), true);
    if (found->second.open) frames += SpdyWriter::data(pair, {}, true);
  }
  pairs_.erase(found);
  return wrap(std::move(frames));
}

}  // namespace spillway::api
