// SPDY/3.1 as frames, in both directions. Windows are not kept: the peers of remote commands neither keep nor move
// them; TCP slows down a peer that is too fast. Thread: one at a time. Bounds: bytes of a control frame; data are
// passed on as they arrive.
// Source: SPDY Protocol, Draft 3.1, 2.2, 2.6; spec "Pod lifecycle", 11.3.
#pragma once

#include "api/exchange/exchange.h"
#include "api/stream/spdy_headers.h"
#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

using SpdyStreamId = std::uint32_t;

enum class SpdyKind : std::uint8_t {
  kData = 0,
  kOpen = 1,   // SYN_STREAM
  kReply = 2,  // SYN_REPLY
  kReset = 3,
  kPing = 6,
  kGoAway = 7,
  kHeaders = 8,
};

struct SpdyFrame {
  SpdyKind kind = SpdyKind::kData;
  SpdyStreamId stream = 0;  // kPing: its number; kGoAway: the last stream
  bool last = false;        // nothing follows on this stream
  HeaderList headers = {};  // names lower-case
  std::string data = {};    // kData: perhaps a part of a frame

  friend bool operator==(const SpdyFrame&, const SpdyFrame&) = default;
};

class SpdyReader {
 public:
  static constexpr std::size_t kControlBytesMax = std::size_t{32} * 1024;

  /// Decodes frames, in order. Settings and windows are passed over. An error ends the connection.
  Outcome feed(std::string_view bytes, std::vector<SpdyFrame>& frames);

 private:
  Result<std::size_t> take(std::string_view bytes, std::vector<SpdyFrame>& frames);
  std::size_t take_data(std::string_view bytes, std::vector<SpdyFrame>& frames);
  Outcome take_control(std::uint16_t type, std::uint8_t flags, std::string_view payload,
                       std::vector<SpdyFrame>& frames);

  SpdyHeaderReader headers_;
  std::string input_;  // an incomplete frame, without data
  SpdyStreamId data_stream_ = 0;
  std::size_t data_left_ = 0;  // bytes that are left of a data frame that has begun
  bool data_last_ = false;
};

class SpdyWriter {
 public:
  /// SYN_STREAM. `stream`: odd if this side made the connection.
  std::string open(SpdyStreamId stream, const HeaderList& headers);
  /// SYN_REPLY without headers.
  std::string reply(SpdyStreamId stream);

  static std::string data(SpdyStreamId stream, std::string_view data, bool last = false);
  /// `status`: 1 protocol error, 3 refused, 5 cancelled.
  static std::string reset(SpdyStreamId stream, std::uint32_t status);
  static std::string ping(std::uint32_t number);
  static std::string go_away(SpdyStreamId last_stream);

 private:
  SpdyHeaderWriter headers_;
};

inline constexpr std::uint32_t kSpdyRefused = 3;
inline constexpr std::uint32_t kSpdyCancelled = 5;

struct SpdyHandshake {
  std::string protocol;  // the protocol of its streams
  Response head;
};

/// The answer to a request that asks_for_upgrade() to "SPDY/3.1": its X-Stream-Protocol-Version headers offer
/// protocols. kBadRequest: there is none; kForbidden: none of `supported` is offered.
Result<SpdyHandshake> accept_spdy(const Request& request, std::span<const std::string_view> supported);

}  // namespace spillway::api
