#include "api/stream/spdy_channels.h"

#include <algorithm>
#include <utility>

namespace spillway::api {
namespace {

constexpr std::array<std::string_view, 4> kSpdyProtocols = {"v4.channel.k8s.io", "v3.channel.k8s.io",
                                                            "v2.channel.k8s.io", "channel.k8s.io"};
/// The types of streams, in the order of Channel.
constexpr std::array<std::string_view, 5> kStreamTypes = {"stdin", "stdout", "stderr", "error", "resize"};

ChannelInput input_of(ChannelInput::Kind kind) {
  return {.kind = kind, .data = {}, .size = {}};
}

}  // namespace

std::span<const std::string_view> SpdyChannels::protocols() {
  return kSpdyProtocols;
}

SpdyChannels::SpdyChannels(std::string_view protocol, StreamOptions wanted)
    : status_is_json_(protocol.starts_with("v4.")),
      resizes_(status_is_json_ || protocol.starts_with("v3.")),
      wanted_(wanted) {}

Readiness SpdyChannels::readiness() const {
  const auto is_there = [this](Channel channel) { return streams_[static_cast<std::size_t>(channel)].has_value(); };
  const bool all = is_there(Channel::kStatus) && (!wanted_.in || is_there(Channel::kIn)) &&
                   (!wanted_.out || is_there(Channel::kOut)) && (!wanted_.err || is_there(Channel::kErr));
  return all ? Readiness::kCertain : Readiness::kAwaited;
}

std::optional<Channel> SpdyChannels::channel_of(SpdyStreamId id) const {
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (streams_[i] && streams_[i]->id == id) return static_cast<Channel>(i);
  return std::nullopt;
}

Result<std::vector<ChannelInput>> SpdyChannels::feed(std::string_view bytes, std::string& reply) {
  std::vector<SpdyFrame> frames;
  SPILLWAY_TRY_VOID(reader_.feed(bytes, frames));
  std::vector<ChannelInput> inputs;
  for (SpdyFrame& frame : frames) {
    if (frame.kind == SpdyKind::kPing && frame.stream % 2 == 1) reply += SpdyWriter::ping(frame.stream);
    if (frame.kind == SpdyKind::kOpen) SPILLWAY_TRY_VOID(open(frame, reply));
    take(std::move(frame), inputs);
  }
  return inputs;
}

Outcome SpdyChannels::open(const SpdyFrame& frame, std::string& reply) {
  if (frame.stream % 2 == 0 || frame.stream <= last_id_)
    return make_error(ErrorCode::kBadRequest, "spdy: stream {} cannot be opened", frame.stream);
  last_id_ = frame.stream;
  const auto type = std::ranges::find(frame.headers, "streamtype", &std::pair<std::string, std::string>::first);
  const auto name = type == frame.headers.end() ? kStreamTypes.end() : std::ranges::find(kStreamTypes, type->second);
  const auto index = static_cast<std::size_t>(name - kStreamTypes.begin());
  const bool unknown = name == kStreamTypes.end() || (static_cast<Channel>(index) == Channel::kResize && !resizes_);
  if (unknown || streams_[index]) {
    reply += SpdyWriter::reset(frame.stream, kSpdyRefused);
    return {};
  }
  streams_[index] = Stream{frame.stream};
  reply += writer_.reply(frame.stream);
  return {};
}

void SpdyChannels::take(SpdyFrame frame, std::vector<ChannelInput>& inputs) {
  using Kind = ChannelInput::Kind;
  const auto channel = channel_of(frame.stream);
  if (!channel || frame.kind == SpdyKind::kPing || frame.kind == SpdyKind::kGoAway) return;
  const bool reset = frame.kind == SpdyKind::kReset;
  if (reset) stream_of(*channel)->writable = false;
  if (*channel == Channel::kIn) {
    if (!frame.data.empty()) inputs.push_back({.kind = Kind::kData, .data = std::move(frame.data), .size = {}});
    if (frame.last || reset) inputs.push_back(input_of(Kind::kEnd));
  } else if (*channel == Channel::kResize) {
    resize_ += frame.data;
    if (const auto size = parse_terminal_size(resize_))
      inputs.push_back({.kind = Kind::kResize, .data = {}, .size = *size});
  }
}

std::string SpdyChannels::message(Channel channel, std::string_view data) {
  const auto& stream = stream_of(channel);
  return stream && stream->writable ? SpdyWriter::data(stream->id, data) : std::string();
}

std::string SpdyChannels::farewell(const Result<std::int32_t>& exit_code) {
  std::string status;
  if (status_is_json_) status = command_status(exit_code);
  if (!status_is_json_ && !(exit_code && *exit_code == 0)) status = command_failure(exit_code);
  std::string last;
  for (const Channel channel : {Channel::kOut, Channel::kErr, Channel::kStatus, Channel::kResize, Channel::kIn}) {
    const auto& stream = stream_of(channel);
    if (!stream || !stream->writable) continue;
    last += SpdyWriter::data(stream->id, channel == Channel::kStatus ? status : std::string(), true);
  }
  return last + SpdyWriter::go_away(last_id_);
}

}  // namespace spillway::api
