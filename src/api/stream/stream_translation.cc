#include "api/stream/stream_translation.h"

#include "api/stream/port_streams.h"
#include "api/stream/websocket.h"

#include <tuple>
#include <utility>
#include <vector>

namespace spillway::api {
namespace {

constexpr std::size_t kTunnelMessageBytesMax = std::size_t{1} << 20U;
constexpr std::size_t kStatusBytesMax = std::size_t{64} * 1024;

class NoTranslation final : public StreamTranslation {
 public:
  Result<std::string> to_server(std::string_view bytes, std::string&) override { return std::string(bytes); }

  Result<std::string> to_client(std::string_view bytes, std::string&) override { return std::string(bytes); }
};

class TunnelTranslation final : public StreamTranslation {
 public:
  Result<std::string> to_server(std::string_view bytes, std::string& reply) override {
    std::vector<WebSocketMessage> messages;
    SPILLWAY_TRY_VOID(reader_.feed(bytes, messages));
    return tunnelled_bytes(messages, reply);
  }

  Result<std::string> to_client(std::string_view bytes, std::string&) override {
    return websocket_frame(WebSocketKind::kBinary, bytes);
  }

 private:
  WebSocketReader reader_{kTunnelMessageBytesMax};
};

/// A client of SPDY streams on one side, a server of WebSocket channels on the other.
class ChannelTranslation final : public StreamTranslation {
 public:
  ChannelTranslation(std::string_view client_protocol, StreamOptions options)
      : channels_(client_protocol), options_(options) {}

  Readiness readiness() const override { return channels_.readiness(); }

  std::string opening() override {
    std::string frames = writer_.open(kStatusStream, {{"streamType", "error"}});
    for (const auto& [wanted, stream, type] :
         {std::tuple(options_.in, kInStream, "stdin"), std::tuple(options_.out, kOutStream, "stdout"),
          std::tuple(options_.err, kErrStream, "stderr"), std::tuple(options_.tty, kResizeStream, "resize")})
      if (wanted) frames += writer_.open(stream, {{"streamType", type}});
    return frames;
  }

  std::string greeting() override {
    return channels_.greeting(options_.out ? Channel::kOut : options_.err ? Channel::kErr : Channel::kStatus);
  }

  Result<std::string> to_server(std::string_view bytes, std::string& reply) override {
    using Kind = ChannelInput::Kind;
    SPILLWAY_TRY(inputs, channels_.feed(bytes, reply));
    std::string frames;
    for (const ChannelInput& input : inputs) {
      if (input.kind == Kind::kClosed) return make_error(ErrorCode::kBadRequest, "the client leaves");
      if (input.kind == Kind::kResize && options_.tty)
        frames += SpdyWriter::data(kResizeStream,
                                   fmt::format(R"({{"Width":{},"Height":{}}})", input.size.width, input.size.height));
      if (!options_.in || in_ended_) continue;
      if (input.kind == Kind::kData) frames += SpdyWriter::data(kInStream, input.data);
      if (input.kind == Kind::kEnd) {
        in_ended_ = true;
        frames += SpdyWriter::data(kInStream, {}, true);
      }
    }
    return frames;
  }

  Result<std::string> to_client(std::string_view bytes, std::string& reply) override {
    std::vector<SpdyFrame> frames;
    SPILLWAY_TRY_VOID(reader_.feed(bytes, frames));
    std::string messages;
    for (const SpdyFrame& frame : frames) {
      if (frame.kind == SpdyKind::kPing && frame.stream % 2 == 0) reply += SpdyWriter::ping(frame.stream);
      if (frame.kind != SpdyKind::kData || frame.data.empty()) continue;
      if (frame.stream == kOutStream) messages += channels_.message(Channel::kOut, frame.data);
      if (frame.stream == kErrStream) messages += channels_.message(Channel::kErr, frame.data);
      if (frame.stream == kStatusStream && status_.size() + frame.data.size() <= kStatusBytesMax) status_ += frame.data;
    }
    return messages;
  }

  std::string farewell() override {
    if (!status_.empty()) return channels_.farewell_with(status_);
    return channels_.farewell(make_error(ErrorCode::kInternalError, "the container runtime has ended the connection"));
  }

 private:
  static constexpr SpdyStreamId kStatusStream = 1;
  static constexpr SpdyStreamId kInStream = 3;
  static constexpr SpdyStreamId kOutStream = 5;
  static constexpr SpdyStreamId kErrStream = 7;
  static constexpr SpdyStreamId kResizeStream = 9;

  WebSocketChannels channels_;
  StreamOptions options_;
  SpdyWriter writer_;
  SpdyReader reader_;
  std::string status_;
  bool in_ended_ = false;
};

}  // namespace

std::unique_ptr<StreamTranslation> translate_nothing() {
  return std::make_unique<NoTranslation>();
}

std::unique_ptr<StreamTranslation> translate_tunnel() {
  return std::make_unique<TunnelTranslation>();
}

std::unique_ptr<StreamTranslation> translate_channels(std::string_view client_protocol, StreamOptions options) {
  return std::make_unique<ChannelTranslation>(client_protocol, options);
}

}  // namespace spillway::api
