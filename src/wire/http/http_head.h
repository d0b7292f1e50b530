// Heads of messages as text, and the framing of bodies. Thread: any. Source: RFC 9110, 9112.
#pragma once

#include "api/exchange/exchange.h"
#include "base/time.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace spillway::wire {

/// The way in which the receiver finds the end of the body.
enum class Framing {
  kLength,    // Content-Length
  kChunked,   // chunk by chunk
  kUntilEnd,  // until the connection closes
  kNone,      // neither body nor length (204, 304)
};

struct ResponseFrame {
  Framing framing = Framing::kLength;
  std::size_t body_bytes = 0;  // for kLength
  bool keep_alive = true;
  WallTime date;
};

/// True if an answer of this status has neither body nor length.
constexpr bool is_bodyless(int status) {
  return status == 204 || status == 304;
}

/// A value that cannot end its field: control characters become blanks.
std::string field_value(std::string_view text);

/// Status line and headers with the empty line. Headers of `response` that belong to the framing are left out; control
/// characters in values become blanks, so that no value can start a header of its own.
std::string format_response_head(const api::Response& response, const ResponseFrame& frame);

/// The head of an answer after which the connection is not HTTP any more: all headers as they are.
std::string format_upgrade_head(const api::Response& response);

/// Request line and headers with the empty line; `host`: the value of the Host header. Content-Length is set if there
/// is a body (of `body_bytes`; request.body is not used) or the method expects one.
std::string format_request_head(const api::Request& request, std::size_t body_bytes, std::string_view host);

/// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string format_http_date(WallTime time);

/// Adds `data`, which must not be empty, as one chunk.
void append_chunk(std::string_view data, std::string& out);

/// The end of a chunked body.
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace spillway::wire
