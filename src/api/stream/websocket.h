// WebSocket as a server speaks it: the handshake, messages from frames, frames from messages.
// Thread: any (pure). Bounds: bytes of a message. Source: RFC 6455.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

enum class WebSocketKind : std::uint8_t { kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10 };

struct WebSocketMessage {
  WebSocketKind kind = WebSocketKind::kBinary;
  std::string payload;

  friend bool operator==(const WebSocketMessage&, const WebSocketMessage&) = default;
};

/// True if a client requests an upgrade to `protocol` ("websocket", "SPDY/3.1").
bool asks_for_upgrade(const Request& request, std::string_view protocol);

struct WebSocketHandshake {
  std::string protocol;  // the agreed protocol
  Response head;
};

/// The answer to a request that asks_for_upgrade(). kBadRequest: it is no handshake, or offers nothing of `supported`.
Result<WebSocketHandshake> accept_websocket(const Request& request, std::span<const std::string_view> supported);

/// The value of Sec-WebSocket-Accept for a Sec-WebSocket-Key.
std::string websocket_accept(std::string_view key);

/// The first of the names in Sec-WebSocket-Protocol ("a, b") that is supported; empty: none.
std::string choose_protocol(std::string_view offered, std::span<const std::string_view> supported);

/// One whole frame, not masked.
std::string websocket_frame(WebSocketKind kind, std::string_view payload);

/// Puts together what a client sends.
class WebSocketReader {
 public:
  explicit WebSocketReader(std::size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  /// Adds the messages that `bytes` complete. An error ends the connection: a frame that is not masked, of an unknown
  /// kind, with bits that were not agreed on, out of order, or a message that is too long. `messages` has those before.
  Outcome feed(std::string_view bytes, std::vector<WebSocketMessage>& messages);

 private:
  struct Head {
    std::size_t bytes = 0;  // bytes of the head itself; 0: it is not complete
    std::size_t payload = 0;
    std::uint8_t opcode = 0;
    bool last = false;
  };

  Result<Head> head_of(std::string_view bytes) const;
  Outcome take(const Head& head, std::string payload, std::vector<WebSocketMessage>& messages);

  std::size_t message_bytes_max_;
  std::string input_;
  std::string parts_;      // the payload so far of a message in several frames
  std::uint8_t kind_ = 0;  // its kind; 0: none has begun
};

}  // namespace spillway::api
