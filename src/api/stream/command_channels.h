// The channels of a connection on which a client talks with a program: its input, its outputs, the size of its
// terminal, and at last how it ended. Over WebSocket: v5 and v4 in binary messages, whose first byte names the channel;
// v4 in base64; over SPDY: spdy_channels.h. Thread: any (pure). Bounds: bytes of a message.
// Source: spec "Pod lifecycle", 11.3, 11.4, 11.5.
#pragma once

#include "api/stream/websocket.h"
#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

enum class Channel : std::uint8_t { kIn = 0, kOut = 1, kErr = 2, kStatus = 3, kResize = 4 };

struct TerminalSize {
  std::uint16_t width = 0;
  std::uint16_t height = 0;

  friend bool operator==(const TerminalSize&, const TerminalSize&) = default;
};

/// One input of a client.
struct ChannelInput {
  enum class Kind { kData, kEnd, kResize, kClosed };

  Kind kind = Kind::kData;  // kEnd: no more input; kClosed: the client disconnects
  std::string data;
  TerminalSize size;
};

/// The end of a program, as metav1.Status without a kind. `exit_code`: that of the program; an error: the reason why it
/// has none.
std::string command_status(const Result<std::int32_t>& exit_code);

/// Parses one or more {"Width":80,"Height":24}, back to back: the last whole one counts. The rest stays in `text`.
std::optional<TerminalSize> parse_terminal_size(std::string& text);

/// The reason why a program did not end well, in one line.
std::string command_failure(const Result<std::int32_t>& exit_code);

enum class Readiness {
  kAwaited,  // nothing may be sent to the client
  kLikely,   // not known to be unready; a message at the same moment may be lost
  kCertain,
};

/// The wait for a client that is likely to be ready. Without it 1 of 1,000 kubectl on a busy machine lost the first
/// line.
inline constexpr Duration kLikelyReadyWait = milliseconds(30);

/// The channels, however they are carried.
class CommandChannels {
 public:
  virtual ~CommandChannels() = default;
  /// Decodes bytes of the client, in order; `reply` gets the bytes that must be sent back at once. An error ends the
  /// connection.
  virtual Result<std::vector<ChannelInput>> feed(std::string_view bytes, std::string& reply) = 0;

  /// The readiness of the client: has it opened all requested channels?
  virtual Readiness readiness() const = 0;

  /// The first message, which announces the server.
  virtual std::string greeting(Channel lowest) = 0;
  virtual std::string message(Channel channel, std::string_view data) = 0;
  /// The last words: how it ended, and the end of the connection.
  virtual std::string farewell(const Result<std::int32_t>& exit_code) = 0;
};

class WebSocketChannels final : public CommandChannels {
 public:
  static constexpr std::size_t kMessageBytesMax = std::size_t{1} << 20U;

  /// Names this can speak, best first.
  static std::span<const std::string_view> protocols();

  /// `protocol`: one of protocols().
  explicit WebSocketChannels(std::string_view protocol);

  Result<std::vector<ChannelInput>> feed(std::string_view bytes, std::string& reply) override;

  /// Certain once the client has sent data on a channel. client-go 1.32 reads before it has opened its channels and
  /// drops data for unknown ones.
  Readiness readiness() const override { return received_ ? Readiness::kCertain : Readiness::kLikely; }

  std::string greeting(Channel lowest) override { return message(lowest, {}); }

  std::string message(Channel channel, std::string_view data) override;
  std::string farewell(const Result<std::int32_t>& exit_code) override;
  /// Makes a farewell() with a status that another server has written.
  std::string farewell_with(std::string_view status);

 private:
  void take(WebSocketMessage message, std::vector<ChannelInput>& inputs, std::string& reply);

  bool text_;        // base64
  bool ends_input_;  // v5
  bool received_ = false;
  WebSocketReader reader_;
  std::string resize_;
};

}  // namespace spillway::api
