#include "api/stream/command_channels.h"

#include "api/json/json.h"
#include "api/text/base64.h"

#include <array>
#include <utility>

namespace spillway::api {
namespace {

constexpr std::array<std::string_view, 3> kProtocols = {"v5.channel.k8s.io", "v4.channel.k8s.io",
                                                        "v4.base64.channel.k8s.io"};
constexpr char kEndOfChannel = '\xff';
constexpr std::size_t kResizeBytesMax = 4096;
constexpr std::string_view kNormalEnd = "\x03\xe8";  // close code 1000

std::uint16_t side_of(const Json& size, std::string_view name) {
  const Json* value = size.at({name});
  const auto number = value == nullptr ? std::nullopt : value->if_int64();
  return number && *number > 0 && *number <= 0xffff ? static_cast<std::uint16_t>(*number) : std::uint16_t{0};
}

}  // namespace

std::string command_failure(const Result<std::int32_t>& exit_code) {
  return exit_code ? fmt::format("command terminated with non-zero exit code: exit status {}", *exit_code)
                   : fmt::format("error executing command in container: {}", exit_code.error().text());
}

std::string command_status(const Result<std::int32_t>& exit_code) {
  if (exit_code && *exit_code == 0) return R"({"metadata":{},"status":"Success"})";
  const std::string message = exit_code ? fmt::format("{}", *exit_code) : exit_code.error().text();
  JsonObject cause{{"message", message}};
  JsonObject status{{"metadata", JsonObject{}}, {"status", "Failure"}, {"message", command_failure(exit_code)}};
  if (exit_code) {
    cause["reason"] = "ExitCode";
    status["reason"] = "NonZeroExitCode";
  } else {
    status["reason"] = "InternalError";
    status["code"] = 500;
  }
  status["details"] = JsonObject{{"causes", Json::array({Json(std::move(cause))})}};
  return to_text(Json(std::move(status)));
}

std::optional<TerminalSize> parse_terminal_size(std::string& text) {
  std::optional<TerminalSize> last;
  for (std::size_t end = text.find('}'); end != std::string::npos; end = text.find('}')) {
    const auto size = parse_json(std::string_view(text).substr(0, end + 1));
    text.erase(0, end + 1);
    if (size) last = TerminalSize{side_of(*size, "Width"), side_of(*size, "Height")};
  }
  if (text.size() > kResizeBytesMax) text.clear();
  return last;
}

std::span<const std::string_view> WebSocketChannels::protocols() {
  return kProtocols;
}

WebSocketChannels::WebSocketChannels(std::string_view protocol)
    : text_(protocol.contains("base64")), ends_input_(protocol.starts_with("v5.")), reader_(kMessageBytesMax) {}

Result<std::vector<ChannelInput>> WebSocketChannels::feed(std::string_view bytes, std::string& reply) {
  std::vector<WebSocketMessage> messages;
  SPILLWAY_TRY_VOID(reader_.feed(bytes, messages));
  std::vector<ChannelInput> inputs;
  for (WebSocketMessage& message : messages) take(std::move(message), inputs, reply);
  return inputs;
}

void WebSocketChannels::take(WebSocketMessage message, std::vector<ChannelInput>& inputs, std::string& reply) {
  using Kind = ChannelInput::Kind;
  if (message.kind == WebSocketKind::kPong) return;
  if (message.kind == WebSocketKind::kPing) {
    reply += websocket_frame(WebSocketKind::kPong, message.payload);
    return;
  }
  if (message.kind == WebSocketKind::kClose) {
    inputs.push_back({.kind = Kind::kClosed, .data = {}, .size = {}});
    return;
  }
  if (message.payload.empty()) return;
  received_ = true;
  char channel = message.payload.front();
  message.payload.erase(0, 1);
  if (text_) {
    channel = static_cast<char>(channel - '0');
    auto decoded = decode_base64(message.payload);
    if (!decoded) return;
    message.payload = *std::move(decoded);
  }
  if (ends_input_ && channel == kEndOfChannel) {
    if (message.payload == std::string_view("\0", 1)) inputs.push_back({.kind = Kind::kEnd, .data = {}, .size = {}});
  } else if (channel == static_cast<char>(Channel::kIn)) {
    if (!message.payload.empty())
      inputs.push_back({.kind = Kind::kData, .data = std::move(message.payload), .size = {}});
  } else if (channel == static_cast<char>(Channel::kResize)) {
    resize_ += message.payload;
    if (const auto size = parse_terminal_size(resize_))
      inputs.push_back({.kind = Kind::kResize, .data = {}, .size = *size});
  }
}

std::string WebSocketChannels::message(Channel channel, std::string_view data) {
  const auto number = static_cast<char>(channel);
  if (text_)
    return websocket_frame(WebSocketKind::kText,
                           fmt::format("{}{}", static_cast<char>('0' + number), encode_base64(data)));
  std::string payload(1, number);
  payload.append(data);
  return websocket_frame(WebSocketKind::kBinary, payload);
}

std::string WebSocketChannels::farewell(const Result<std::int32_t>& exit_code) {
  return farewell_with(command_status(exit_code));
}

std::string WebSocketChannels::farewell_with(std::string_view status) {
  return message(Channel::kStatus, status) + websocket_frame(WebSocketKind::kClose, kNormalEnd);
}

}  // namespace spillway::api
