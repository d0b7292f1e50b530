#include "api/stream/websocket.h"

#include "api/text/base64.h"
#include "base/bytes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace spillway::api {
namespace {

constexpr std::string_view kHandshakeId = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
constexpr std::uint8_t kContinuation = 0;
constexpr std::size_t kControlBytesMax = 125;

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

void sha1_block(std::array<std::uint32_t, 5>& state, std::string_view block) {
  std::array<std::uint32_t, 80> w{};
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t k = 0; k < 4; ++k) w[i] = (w[i] << 8U) | byte_at(block, i * 4 + k);
  for (std::size_t i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  auto [a, b, c, d, e] = state;
  for (std::size_t i = 0; i < 80; ++i) {
    std::uint32_t f = b ^ c ^ d;
    std::uint32_t k = 0xCA62C1D6U;
    if (i < 20) {
      f = (b & c) | (~b & d);
      k = 0x5A827999U;
    } else if (i < 40) {
      k = 0x6ED9EBA1U;
    } else if (i < 60) {
      f = (b & c) | (b & d) | (c & d);
      k = 0x8F1BBCDCU;
    }
    const std::uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
    e = std::exchange(d, std::exchange(c, std::rotl(std::exchange(b, std::exchange(a, next)), 30)));
  }
  const std::array<std::uint32_t, 5> add{a, b, c, d, e};
  for (std::size_t i = 0; i < 5; ++i) state[i] += add[i];
}

/// FIPS 180-4. Not used for security: a handshake only identifies itself by it.
std::string sha1(std::string text) {
  const std::uint64_t bits = text.size() * 8;
  text.push_back('\x80');
  while (text.size() % 64 != 56) text.push_back('\0');
  for (int shift = 56; shift >= 0; shift -= 8) text.push_back(static_cast<char>(bits >> static_cast<unsigned>(shift)));
  std::array<std::uint32_t, 5> state{0x67452301U, 0xEFCDAB89U, 0x98BADCFEU, 0x10325476U, 0xC3D2E1F0U};
  for (std::size_t at = 0; at < text.size(); at += 64) sha1_block(state, std::string_view(text).substr(at, 64));
  std::string digest;
  for (const std::uint32_t word : state)
    for (int shift = 24; shift >= 0; shift -= 8)
      digest.push_back(static_cast<char>(word >> static_cast<unsigned>(shift)));
  return digest;
}

bool is_known(std::uint8_t opcode) {
  return opcode <= 2 || (opcode >= 8 && opcode <= 10);
}

char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Error broken(std::string_view why) {
  return make_error(ErrorCode::kBadRequest, "websocket: {}", why);
}

}  // namespace

bool asks_for_upgrade(const Request& request, std::string_view protocol) {
  const auto same = [](std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, {}, lower_case, lower_case);
  };
  std::string_view connection = request.header("connection");
  bool upgrades = false;
  while (!connection.empty()) {
    const std::size_t comma = connection.find(',');
    upgrades = upgrades || same(trimmed(connection.substr(0, comma)), "upgrade");
    connection = comma == std::string_view::npos ? std::string_view() : connection.substr(comma + 1);
  }
  return upgrades && same(request.header("upgrade"), protocol);
}

Result<WebSocketHandshake> accept_websocket(const Request& request, std::span<const std::string_view> supported) {
  const std::string_view key = request.header("sec-websocket-key");
  if (request.method != Method::kGet || request.header("sec-websocket-version") != "13" || key.size() != 24)
    return broken("this is no handshake of version 13");
  std::string offered;
  for (const auto& [name, value] : request.headers)
    if (name == "sec-websocket-protocol") offered += (offered.empty() ? "" : ",") + value;
  std::string protocol = choose_protocol(offered, supported);
  if (protocol.empty()) return broken(fmt::format("none of the protocols \"{}\" is supported", offered));
  Response head{.status = 101,
                .headers = {{"Upgrade", "websocket"},
                            {"Connection", "Upgrade"},
                            {"Sec-WebSocket-Accept", websocket_accept(key)},
                            {"Sec-WebSocket-Protocol", protocol}},
                .body = {}};
  return WebSocketHandshake{std::move(protocol), std::move(head)};
}

std::string websocket_accept(std::string_view key) {
  return encode_base64(sha1(fmt::format("{}{}", key, kHandshakeId)));
}

std::string choose_protocol(std::string_view offered, std::span<const std::string_view> supported) {
  while (!offered.empty()) {
    const std::size_t comma = offered.find(',');
    const std::string_view name = trimmed(offered.substr(0, comma));
    offered = comma == std::string_view::npos ? std::string_view() : offered.substr(comma + 1);
    if (std::ranges::find(supported, name) != supported.end()) return std::string(name);
  }
  return {};
}

std::string websocket_frame(WebSocketKind kind, std::string_view payload) {
  std::string frame;
  frame.reserve(payload.size() + 10);
  frame.push_back(static_cast<char>(0x80U | std::to_underlying(kind)));
  const std::uint64_t size = payload.size();
  int length_bytes = 0;
  if (size < 126) {
    frame.push_back(static_cast<char>(size));
  } else {
    length_bytes = size <= 0xffff ? 2 : 8;
    frame.push_back(length_bytes == 2 ? '\x7e' : '\x7f');
  }
  for (int i = length_bytes - 1; i >= 0; --i) frame.push_back(static_cast<char>(size >> static_cast<unsigned>(8 * i)));
  frame.append(payload);
  return frame;
}

Result<WebSocketReader::Head> WebSocketReader::head_of(std::string_view bytes) const {
  Head head;
  if (bytes.size() < 2) return head;
  const std::uint8_t first = byte_at(bytes, 0);
  const std::uint8_t second = byte_at(bytes, 1);
  head.last = (first & 0x80U) != 0;
  head.opcode = first & 0x0fU;
  if ((first & 0x70U) != 0) return broken("a frame uses bits that were not agreed on");
  if (!is_known(head.opcode)) return broken("a frame is of an unknown kind");
  if ((second & 0x80U) == 0) return broken("a frame of a client is not masked");
  std::uint64_t size = second & 0x7fU;
  const std::size_t length_bytes = size == 126 ? 2 : size == 127 ? 8 : 0;
  if (bytes.size() < 2 + length_bytes) return head;
  if (length_bytes > 0) size = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) size = (size << 8U) | byte_at(bytes, 2 + i);
  if (head.opcode >= 8 && (!head.last || size > kControlBytesMax)) return broken("a control frame is too long");
  if (size > message_bytes_max_ || parts_.size() > message_bytes_max_ - size) return broken("a message is too long");
  head.payload = static_cast<std::size_t>(size);
  if (bytes.size() >= 2 + length_bytes + 4) head.bytes = 2 + length_bytes + 4;
  return head;
}

Outcome WebSocketReader::take(const Head& head, std::string payload, std::vector<WebSocketMessage>& messages) {
  if (head.opcode >= 8) {
    messages.push_back({static_cast<WebSocketKind>(head.opcode), std::move(payload)});
    return {};
  }
  if ((head.opcode == kContinuation) != (kind_ != 0)) return broken("the frames of a message are out of order");
  if (head.opcode != kContinuation) kind_ = head.opcode;
  parts_ += payload;
  if (!head.last) return {};
  messages.push_back(
      {static_cast<WebSocketKind>(std::exchange(kind_, std::uint8_t{0})), std::exchange(parts_, std::string())});
  return {};
}

Outcome WebSocketReader::feed(std::string_view bytes, std::vector<WebSocketMessage>& messages) {
  input_.append(bytes);
  std::string_view rest = input_;
  while (true) {
    SPILLWAY_TRY(head, head_of(rest));
    if (head.bytes == 0 || rest.size() < head.bytes + head.payload) break;
    const std::string_view mask = rest.substr(head.bytes - 4, 4);
    std::string payload(rest.substr(head.bytes, head.payload));
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(payload[i] ^ mask[i % 4]);
    rest.remove_prefix(head.bytes + head.payload);
    SPILLWAY_TRY_VOID(take(head, std::move(payload), messages));
  }
  input_.erase(0, input_.size() - rest.size());
  return {};
}

}  // namespace spillway::api
