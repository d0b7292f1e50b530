// The channels of a remote command over SPDY: one stream for each, opened by the client.
// Thread: one at a time (pure). Bounds: one stream for each channel. Source: spec "Pod lifecycle", 11.3.
#pragma once

#include "api/stream/command_channels.h"
#include "api/stream/spdy_frames.h"
#include "api/stream/stream_options.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace spillway::api {

class SpdyChannels final : public CommandChannels {
 public:
  /// Names this can speak, best first.
  static std::span<const std::string_view> protocols();

  /// `protocol`: one of protocols(). `wanted`: the streams without which nothing begins.
  SpdyChannels(std::string_view protocol, StreamOptions wanted);

  Result<std::vector<ChannelInput>> feed(std::string_view bytes, std::string& reply) override;
  Readiness readiness() const override;

  std::string greeting(Channel) override { return {}; }

  std::string message(Channel channel, std::string_view data) override;
  std::string farewell(const Result<std::int32_t>& exit_code) override;

 private:
  struct Stream {
    SpdyStreamId id = 0;
    bool writable = true;
  };

  std::optional<Stream>& stream_of(Channel channel) { return streams_[static_cast<std::size_t>(channel)]; }

  std::optional<Channel> channel_of(SpdyStreamId id) const;
  Outcome open(const SpdyFrame& frame, std::string& reply);
  void take(SpdyFrame frame, std::vector<ChannelInput>& inputs);

  bool status_is_json_;
  bool resizes_;
  StreamOptions wanted_;
  SpdyReader reader_;
  SpdyWriter writer_;
  std::array<std::optional<Stream>, 5> streams_;
  SpdyStreamId last_id_ = 0;
  std::string resize_;
};

}  // namespace spillway::api
