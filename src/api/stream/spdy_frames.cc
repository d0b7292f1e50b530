#include "api/stream/spdy_frames.h"

#include "api/stream/websocket.h"

#include <algorithm>
#include <span>
#include <utility>

namespace spillway::api {
namespace {

constexpr std::size_t kFrameHeadBytes = 8;
constexpr std::uint16_t kSpdyVersion = 3;
constexpr std::uint8_t kLast = 1;
constexpr std::uint16_t kSettings = 4;
constexpr std::uint16_t kWindowUpdate = 9;
constexpr std::size_t kDataBytesMax = 0xff'ffff;
constexpr std::uint32_t kIdBits = 0x7fff'ffff;

Error broken_frame(std::string_view why) {
  return make_error(ErrorCode::kBadRequest, "spdy: {}", why);
}

std::uint32_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < size; ++i) number = (number << 8U) | static_cast<std::uint8_t>(bytes[at + i]);
  return number;
}

void put(std::uint32_t number, int size, std::string& out) {
  for (int i = size - 1; i >= 0; --i) out.push_back(static_cast<char>(number >> static_cast<unsigned>(8 * i)));
}

std::string control(SpdyKind kind, std::string_view payload) {
  std::string frame;
  put(0x8000U | kSpdyVersion, 2, frame);
  put(std::to_underlying(kind), 2, frame);
  put(static_cast<std::uint32_t>(payload.size()), 4, frame);  // no flags
  frame += payload;
  return frame;
}

std::string control(SpdyKind kind, std::uint32_t first, std::uint32_t second) {
  std::string payload;
  put(first, 4, payload);
  put(second, 4, payload);
  return control(kind, payload);
}

/// The number of bytes of a control frame before its headers; nullopt: it has none.
std::optional<std::size_t> bytes_before_headers(SpdyKind kind) {
  if (kind == SpdyKind::kOpen) return 10;
  if (kind == SpdyKind::kReply || kind == SpdyKind::kHeaders) return 4;
  return std::nullopt;
}

std::size_t fixed_bytes(SpdyKind kind) {
  return kind == SpdyKind::kPing ? 4 : 8;
}

}  // namespace

Outcome SpdyReader::feed(std::string_view bytes, std::vector<SpdyFrame>& frames) {
  std::string held;
  if (!input_.empty()) {
    held = std::exchange(input_, std::string());
    held += bytes;
    bytes = held;
  }
  while (!bytes.empty()) {
    SPILLWAY_TRY(taken, take(bytes, frames));
    if (taken == 0) break;
    bytes.remove_prefix(taken);
  }
  input_ = bytes;
  return {};
}

std::size_t SpdyReader::take_data(std::string_view bytes, std::vector<SpdyFrame>& frames) {
  const std::size_t size = std::min(bytes.size(), data_left_);
  data_left_ -= size;
  const bool last = data_last_ && data_left_ == 0;
  if (size > 0 || last)
    frames.push_back({.kind = SpdyKind::kData,
                      .stream = data_stream_,
                      .last = last,
                      .headers = {},
                      .data = std::string(bytes.substr(0, size))});
  return size;
}

/// Decodes the next frame, or a part of its data, and returns the number of bytes used; 0: more bytes are needed.
Result<std::size_t> SpdyReader::take(std::string_view bytes, std::vector<SpdyFrame>& frames) {
  if (data_left_ > 0) return take_data(bytes, frames);
  if (bytes.size() < kFrameHeadBytes) return std::size_t{0};
  const auto flags = static_cast<std::uint8_t>(bytes[4]);
  const std::size_t size = number_at(bytes, 5, 3);
  if ((static_cast<std::uint8_t>(bytes[0]) & 0x80U) == 0) {
    data_stream_ = number_at(bytes, 0, 4);
    data_last_ = (flags & kLast) != 0;
    data_left_ = size;
    return kFrameHeadBytes + (size == 0 ? take_data({}, frames) : 0);
  }
  if ((number_at(bytes, 0, 2) & 0x7fffU) != kSpdyVersion) return broken_frame("a frame of another version");
  if (size > kControlBytesMax) return broken_frame("a control frame is too long");
  if (bytes.size() < kFrameHeadBytes + size) return std::size_t{0};
  SPILLWAY_TRY_VOID(take_control(static_cast<std::uint16_t>(number_at(bytes, 2, 2)), flags,
                                 bytes.substr(kFrameHeadBytes, size), frames));
  return kFrameHeadBytes + size;
}

Outcome SpdyReader::take_control(std::uint16_t type, std::uint8_t flags, std::string_view payload,
                                 std::vector<SpdyFrame>& frames) {
  if (type == kSettings || type == kWindowUpdate) return {};
  if ((type < 1 || type > 3) && (type < 6 || type > 8)) return broken_frame("a frame of an unknown kind");
  SpdyFrame frame;
  frame.kind = static_cast<SpdyKind>(type);
  const auto before = bytes_before_headers(frame.kind);
  if (before ? payload.size() < *before : payload.size() != fixed_bytes(frame.kind))
    return broken_frame("a control frame of the wrong length");
  frame.stream = number_at(payload, 0, 4);
  if (frame.kind != SpdyKind::kPing) frame.stream &= kIdBits;
  frame.last = before && (flags & kLast) != 0;
  if (before) {
    SPILLWAY_TRY(headers, headers_.read(payload.substr(*before)));
    frame.headers = std::move(headers);
  }
  frames.push_back(std::move(frame));
  return {};
}

std::string SpdyWriter::open(SpdyStreamId stream, const HeaderList& headers) {
  std::string payload;
  put(stream, 4, payload);
  put(0, 4, payload);  // belongs to no other stream
  put(0, 2, payload);  // neither priority nor credential
  payload += headers_.write(headers);
  return control(SpdyKind::kOpen, payload);
}

std::string SpdyWriter::reply(SpdyStreamId stream) {
  std::string payload;
  put(stream, 4, payload);
  payload += headers_.write({});
  return control(SpdyKind::kReply, payload);
}

std::string SpdyWriter::data(SpdyStreamId stream, std::string_view data, bool last) {
  std::string frames;
  do {
    const std::string_view piece = data.substr(0, kDataBytesMax);
    data.remove_prefix(piece.size());
    put(stream & kIdBits, 4, frames);
    put(last && data.empty() ? kLast : 0, 1, frames);
    put(static_cast<std::uint32_t>(piece.size()), 3, frames);
    frames += piece;
  } while (!data.empty());
  return frames;
}

std::string SpdyWriter::reset(SpdyStreamId stream, std::uint32_t status) {
  return control(SpdyKind::kReset, stream, status);
}

std::string SpdyWriter::ping(std::uint32_t number) {
  std::string payload;
  put(number, 4, payload);
  return control(SpdyKind::kPing, payload);
}

std::string SpdyWriter::go_away(SpdyStreamId last_stream) {
  return control(SpdyKind::kGoAway, last_stream, 0);
}

Result<SpdyHandshake> accept_spdy(const Request& request, std::span<const std::string_view> supported) {
  std::string offered;
  for (const auto& [name, value] : request.headers)
    if (name == "x-stream-protocol-version") offered += (offered.empty() ? "" : ",") + value;
  if (offered.empty())
    return make_error(ErrorCode::kBadRequest, "unable to upgrade: X-Stream-Protocol-Version is required");
  std::string protocol = choose_protocol(offered, supported);
  if (protocol.empty())
    return make_error(ErrorCode::kForbidden, "unable to upgrade: unable to negotiate protocol: client supports [{}]",
                      offered);
  Response head{
      .status = 101,
      .headers = {{"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}, {"X-Stream-Protocol-Version", protocol}},
      .body = {},
      .document = {}};
  return SpdyHandshake{std::move(protocol), std::move(head)};
}

}  // namespace spillway::api
