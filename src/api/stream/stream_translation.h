// Translates between a client of a remote command or a forwarded port and a server of container streams, which uses
// SPDY: the client may use SPDY, too, or WebSocket.
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

  /// The first bytes for the server.
  virtual std::string opening() { return {}; }

  /// The first bytes for the client.
  virtual std::string greeting() { return {}; }

  /// Translates bytes of the client for the server; `reply`: bytes for the client at once. An error ends both.
  virtual Result<std::string> to_server(std::string_view bytes, std::string& reply) = 0;
  /// Translates bytes of the server for the client; `reply`: bytes for the server at once.
  virtual Result<std::string> to_client(std::string_view bytes, std::string& reply) = 0;

  /// The last bytes for the client, when the server has ended.
  virtual std::string farewell() { return {}; }
};

/// A translation for two sides that speak the same protocol.
std::unique_ptr<StreamTranslation> translate_nothing();

/// The client's SPDY is carried in the messages of a WebSocket.
std::unique_ptr<StreamTranslation> translate_tunnel();

/// The client's channels are messages of a WebSocket, those of the server streams of v4.channel.k8s.io.
std::unique_ptr<StreamTranslation> translate_channels(std::string_view client_protocol, StreamOptions options);

}  // namespace spillway::api
