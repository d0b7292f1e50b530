// Ports forwarded over SPDY: for each connection that a client has accepted a pair of streams, one for its data, one
// for errors. The client opens both, and names the port and the pair by headers. SPDY itself may be carried in the
// messages of a WebSocket.
// Thread: one at a time (pure). Bounds: kPairsMax at once; half a pair is dropped after kHalfMax.
// Source: spec "Pod lifecycle", 11.6.
#pragma once

#include "api/stream/spdy_frames.h"
#include "api/stream/websocket.h"
#include "base/error.h"
#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

/// An action of a client on a forwarded connection. `pair` is its data stream.
struct PortEvent {
  enum class Kind { kOpened, kData, kEnd, kReset };

  Kind kind = Kind::kData;  // kEnd: the client sends no more data; kReset: it takes no more either
  SpdyStreamId pair = 0;
  std::uint16_t port = 0;  // kOpened
  std::string data = {};

  friend bool operator==(const PortEvent&, const PortEvent&) = default;
};

/// The bytes that the messages of a tunnel carry; `reply` gets the bytes that must be sent back at once. An error: the
/// client disconnects, or sends a message that is no binary data.
Result<std::string> tunnelled_bytes(const std::vector<WebSocketMessage>& messages, std::string& reply);

class PortStreams {
 public:
  static constexpr std::size_t kPairsMax = 128;
  static constexpr Duration kHalfMax = seconds(30);
  static constexpr std::size_t kMessageBytesMax = std::size_t{1} << 20U;

  enum class Carrier { kPlain, kWebSocket };

  /// The protocols of the streams of an upgraded connection, and those of a WebSocket.
  static std::span<const std::string_view> protocols();
  static std::span<const std::string_view> tunnel_protocols();

  explicit PortStreams(Carrier carrier) : carrier_(carrier), messages_(kMessageBytesMax) {}

  /// Decodes bytes of the client, in order; `reply` gets the bytes that must be sent back at once. An error ends the
  /// connection.
  Result<std::vector<PortEvent>> feed(std::string_view bytes, Instant now, std::string& reply);

  /// Bytes for the client. Empty if it does not want them any more.
  std::string data(SpdyStreamId pair, std::string_view bytes);
  /// Ends the data from the port: the client may still send.
  std::string end(SpdyStreamId pair);
  /// Closes the pair. `why`: for people; empty: it ended well.
  std::string close(SpdyStreamId pair, std::string_view why);

  std::size_t pairs() const { return pairs_.size(); }

 private:
  struct Half {
    SpdyStreamId errors = 0;
    std::uint16_t port = 0;
    Instant since{};
  };

  struct Pair {
    SpdyStreamId errors = 0;
    bool open = true;       // data may be sent to the client
    bool end_sent = false;  // the end has been sent
  };

  Result<std::string> unwrap(std::string_view bytes, std::string& reply);
  std::string wrap(std::string frames) const;
  Outcome open(const SpdyFrame& frame, Instant now, std::vector<PortEvent>& events, std::string& frames);
  void take(SpdyFrame frame, std::vector<PortEvent>& events);
  void drop_old_halves(Instant now, std::string& frames);

  Carrier carrier_;
  WebSocketReader messages_;
  SpdyReader reader_;
  SpdyWriter writer_;
  SpdyStreamId last_id_ = 0;
  std::map<std::string, Half, std::less<>> halves_;  // by request ID
  std::map<SpdyStreamId, Pair> pairs_;               // by data stream
};

}  // namespace spillway::api
