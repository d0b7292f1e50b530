// Every bound of an HTTP server, in one place. Source: RFC 9110, 9112; spec "API server contract", 4.
#pragma once

#include "base/time.h"

#include <cstddef>

namespace spillway::wire {

/// Bounds of the parts of one request.
struct RequestBounds {
  std::size_t head_bytes_max = std::size_t{64} * 1024;  // request line, fields, and the empty line that ends them
  /// The request line with its line end. As much as the head: selectors and continue tokens are long.
  std::size_t request_line_bytes_max = std::size_t{64} * 1024;
  std::size_t fields_max = 256;
  std::size_t body_bytes_max = std::size_t{3} * 1024 * 1024;
  /// Chunk sizes, chunk extensions and trailers: so many bytes, and so many more per byte of body.
  std::size_t chunking_bytes_max = std::size_t{64} * 1024;
  std::size_t chunking_bytes_per_byte = 8;
};

/// Shares of the connections (connection_table.h). Vital clients have those that the others may not take.
struct ConnectionBounds {
  std::size_t connections_max = 4096;
  /// Connections of clients that have not authenticated, all together and from one address; an older one is closed for
  /// a newer one.
  std::size_t unproven_max = 1024;
  std::size_t unproven_per_address_max = 512;
  /// Connections of clients that are not vital; an idle one is closed for a new one.
  std::size_t ordinary_max = 2048;
};

/// Bytes of answers and streams that wait for their clients (byte_ledger.h).
struct WaitingBounds {
  std::size_t total_bytes_max = std::size_t{256} * 1024 * 1024;
  /// The last part is for vital clients.
  std::size_t ordinary_bytes_max = std::size_t{192} * 1024 * 1024;
  /// Bytes of one client that is not vital, unless they are a single answer.
  std::size_t client_bytes_max = std::size_t{64} * 1024 * 1024;
  /// A request is answered before it is carried out (429) when less room than this is left.
  std::size_t room_bytes = std::size_t{16} * 1024 * 1024;
  /// Bytes that may wait for a connection in any case.
  std::size_t connection_bytes_free = std::size_t{32} * 1024;
};

/// Bounds of requests that wait for the loop (request_line.h).
struct QueueBounds {
  // Requests that are being carried out.
  std::size_t vital_seats = 1024;
  std::size_t ordinary_seats = 512;  // more than requests to nodes can hold (node_gateway.h)
  // Requests that wait for a seat, all together and of one client.
  std::size_t vital_waiting_max = 4096;
  std::size_t ordinary_waiting_max = 1024;
  std::size_t client_waiting_max = 512;
};

struct HttpLimits {
  RequestBounds request;
  ConnectionBounds connections;
  WaitingBounds waiting;
  QueueBounds queue;
  /// Bytes of requests that are being received or answered, over all connections; the last part is for vital clients.
  std::size_t request_bytes_max = std::size_t{256} * 1024 * 1024;
  std::size_t ordinary_request_bytes_max = std::size_t{192} * 1024 * 1024;
  /// Bytes of a body from a client that has not authenticated.
  std::size_t unproven_body_bytes_max = std::size_t{64} * 1024;
  /// Bytes of one stream that wait for a slow client. Most of them are shared with other watchers.
  std::size_t stream_bytes_max = std::size_t{64} * 1024 * 1024;
  std::size_t gzip_bytes_min = std::size_t{128} * 1024;

  Duration handshake_max = seconds(5);
  Duration header_max = seconds(10);        // from the first byte of a request to the end of its header
  Duration body_max = seconds(60);          // time from the head to the end of the body
  Duration unproven_idle_max = seconds(5);  // between requests, and before the first, of an unknown client
  Duration idle_max = seconds(120);         // time between requests of other clients
  /// A client has to take so much of what waits for it within this time, or the connection is closed; within the
  /// shorter one when half of the bytes that may wait do.
  std::size_t taken_bytes_min = std::size_t{16} * 1024;
  Duration stalled_max = seconds(30);
  Duration stalled_pressed_max = seconds(5);

  /// The limits of a server that few clients ask, such as a node's: an eighth of the memory, small bodies.
  static HttpLimits small();
};

inline HttpLimits HttpLimits::small() {
  constexpr std::size_t kMebibyte = std::size_t{1024} * 1024;
  HttpLimits limits;
  limits.request.body_bytes_max = kMebibyte / 16;
  limits.connections = {
      .connections_max = 512, .unproven_max = 192, .unproven_per_address_max = 128, .ordinary_max = 192};
  limits.waiting = {.total_bytes_max = 32 * kMebibyte,
                    .ordinary_bytes_max = 24 * kMebibyte,
                    .client_bytes_max = 16 * kMebibyte,
                    .room_bytes = 2 * kMebibyte,
                    .connection_bytes_free = kMebibyte / 32};
  limits.request_bytes_max = 16 * kMebibyte;
  limits.ordinary_request_bytes_max = 12 * kMebibyte;
  limits.stream_bytes_max = 4 * kMebibyte;
  return limits;
}

}  // namespace spillway::wire
