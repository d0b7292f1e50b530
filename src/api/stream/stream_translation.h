// Between a client of a remote command or a forwarded port and a server of container streams, which speaks SPDY: the
// client may speak SPDY, too, or WebSocket.
// Thread: one at a time (pure). Source: spec "Pod lifecycle", 11.2-11.6.
#pragma once

#include "api/stream/command_channels.h"
#include "api/stream/spdy_frames.h"
#include "api/stream/stream_options.h"
#include "base/error.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::api {

class StreamTranslation {
 public:
  virtual ~StreamTranslation() = default;

  /// Readiness of the client: neither side is sent anything before it is ready.
  virtual Readiness readiness() const { return Readiness::kCertain; }

  /// For the server, first of all.
  virtual std::string opening() { return {}; }

  /// For the client, first of all.
  virtual std::string greeting() { return {}; }

  /// For the server, of what the client sent; `reply`: for the client at once. An error ends both.
  virtual Result<std::string> to_server(std::string_view bytes, std::string& reply) = 0;
  /// For the client, of what the server sent; `reply`: for the server at once.
  virtual Result<std::string> to_client(std::string_view bytes, std::string& reply) = 0;

  /// For the client, when the server has said its last.
  virtual std::string farewell() { return {}; }
};

/// Both speak the same.
std::unique_ptr<StreamTranslation> translate_nothing();

/// The client's SPDY comes in the messages of a WebSocket.
std::unique_ptr<StreamTranslation> translate_tunnel();

/// The client's channels are messages of a WebSocket, those of the server streams of v4.channel.k8s.io.
std::unique_ptr<StreamTranslation> translate_channels(std::string_view client_protocol, StreamOptions options);

}  // namespace spillway::api
