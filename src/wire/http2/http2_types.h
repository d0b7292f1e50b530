// The words of HTTP/2 that both ends of a connection use, and what one end allows the other. Thread: any (plain
// values). Source: RFC 9113, 6.5.2, 7, 10.5; spec "HTTP/2", 3, 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spillway::wire {

using Http2StreamId = std::int32_t;

/// The reason why a stream or the connection ends.
enum class Http2Code : std::uint32_t {
  kNoError = 0,
  kProtocolError = 1,
  kInternalError = 2,
  kRefusedStream = 7,
  kCancel = 8,
  kEnhanceYourCalm = 11,
  kHttp11Required = 13,
};

/// The next bytes of a body. Neither bytes nor the last: more will follow later.
struct Http2BodyPart {
  std::string_view bytes;
  bool last = false;
};

struct Http2Bounds {
  std::uint32_t streams_max = 100;                                   // simultaneous streams
  std::uint32_t stream_window_bytes = std::uint32_t{256} * 1024;     // for a body, not yet consumed
  std::int32_t connection_window_bytes = std::int32_t{1024} * 1024;  // for all bodies together
  std::size_t head_bytes_max = std::size_t{64} * 1024;               // names and values, 32 more for each field
  std::size_t fields_max = 256;

  /// The bounds of a client: answers are larger than requests.
  static constexpr Http2Bounds client();
};

constexpr Http2Bounds Http2Bounds::client() {
  Http2Bounds bounds;
  bounds.stream_window_bytes = std::uint32_t{1024} * 1024;
  bounds.connection_window_bytes = std::int32_t{16} * 1024 * 1024;
  return bounds;
}

}  // namespace spillway::wire
