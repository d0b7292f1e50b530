// Goal: what a client of a WebSocket sends is taken apart as RFC 6455 says, whatever it is cut into, and what is no
// WebSocket, or too much, ends it; channels are those of remote commands.
#include "api/stream/command_channels.h"
#include "api/stream/stream_options.h"
#include "api/stream/websocket.h"

#include <gtest/gtest.h>

#include <array>

namespace spillway::api {
namespace {

/// A frame as a client sends it.
std::string masked(char first, std::string_view payload) {
  std::string frame(1, first);
  if (payload.size() < 126) {
    frame.push_back(static_cast<char>(0x80U | payload.size()));
  } else {
    frame.push_back(static_cast<char>(0x80U | 126U));
    frame.push_back(static_cast<char>(payload.size() >> 8U));
    frame.push_back(static_cast<char>(payload.size()));
  }
  const std::string_view mask = "mask";
  frame += mask;
  for (std::size_t i = 0; i < payload.size(); ++i) frame.push_back(static_cast<char>(payload[i] ^ mask[i % 4]));
  return frame;
}

constexpr char kText = '\x81';
constexpr char kBinary = '\x82';

std::string text_of(const std::vector<ChannelInput>& inputs) {
  std::string text;
  for (const ChannelInput& input : inputs) {
    if (input.kind == ChannelInput::Kind::kData) text += input.data;
    if (input.kind == ChannelInput::Kind::kEnd) text += "<end>";
    if (input.kind == ChannelInput::Kind::kClosed) text += "<closed>";
    if (input.kind == ChannelInput::Kind::kResize) text += fmt::format("<{}x{}>", input.size.width, input.size.height);
  }
  return text;
}

TEST(WebSocket, AnswersTheHandshakeOfTheStandard) {
  EXPECT_EQ(websocket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  Request request{.method = Method::kGet,
                  .target = "/",
                  .headers = {{"connection", "keep-alive, Upgrade"},
                              {"upgrade", "WebSocket"},
                              {"sec-websocket-version", "13"},
                              {"sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="},
                              {"sec-websocket-protocol", "unknown, v4.channel.k8s.io"},
                              {"sec-websocket-protocol", "v5.channel.k8s.io"}},
                  .body = {},
                  .document = {}};
  EXPECT_TRUE(asks_for_upgrade(request, "websocket"));
  EXPECT_FALSE(asks_for_upgrade(request, "SPDY/3.1"));
  const auto accepted = accept_websocket(request, WebSocketChannels::protocols());
  ASSERT_TRUE(accepted) << accepted.error().text();
  EXPECT_EQ(accepted->protocol, "v4.channel.k8s.io") << "the first that the client names";
  EXPECT_EQ(accepted->head.status, 101);
  request.headers[2].second = "8";
  EXPECT_FALSE(accept_websocket(request, WebSocketChannels::protocols()));
  request.headers[0].second = "close";
  EXPECT_FALSE(asks_for_upgrade(request, "websocket"));
}

TEST(WebSocket, TakesMessagesApartHoweverTheyAreCut) {
  const std::string stream = masked(kText, "one") + masked('\x02', "tw") + masked('\x89', "ping") +
                             masked('\x80', std::string(300, 'o')) + masked('\x88', "");
  const std::vector<WebSocketMessage> expected{{WebSocketKind::kText, "one"},
                                               {WebSocketKind::kPing, "ping"},
                                               {WebSocketKind::kBinary, "tw" + std::string(300, 'o')},
                                               {WebSocketKind::kClose, ""}};
  for (const std::size_t cut : {std::size_t{1}, std::size_t{7}, stream.size()}) {
    WebSocketReader reader(1000);
    std::vector<WebSocketMessage> messages;
    for (std::size_t at = 0; at < stream.size(); at += cut)
      ASSERT_TRUE(reader.feed(std::string_view(stream).substr(at, cut), messages));
    EXPECT_EQ(messages, expected) << cut;
  }
}

TEST(WebSocket, EndsWithWhatIsNone) {
  const std::string huge = std::string("\x82\xff", 2) + std::string(8, '\x7f');
  const std::array<std::string, 8> broken = {websocket_frame(WebSocketKind::kBinary, "not masked"),
                                             masked('\xc2', "a bit more"),
                                             masked('\x83', "of no kind"),
                                             masked('\x80', "goes on"),
                                             masked('\x02', "one") + masked('\x82', "another"),
                                             masked('\x09', "a part of a ping"),
                                             masked(kBinary, std::string(1001, 'x')),
                                             huge};
  for (const std::string& bytes : broken) {
    WebSocketReader reader(1000);
    std::vector<WebSocketMessage> messages;
    EXPECT_FALSE(reader.feed(bytes, messages)) << bytes.substr(0, 20);
  }
  WebSocketReader parts(1000);
  std::vector<WebSocketMessage> messages;
  EXPECT_TRUE(parts.feed(masked('\x02', std::string(600, 'x')), messages));
  EXPECT_FALSE(parts.feed(masked('\x00', std::string(600, 'x')), messages)) << "together they are too long";
}

TEST(WebSocketChannels, AreThoseOfRemoteCommands) {
  WebSocketChannels channels("v5.channel.k8s.io");
  std::string reply;
  const auto inputs = channels.feed(masked(kBinary, std::string("\0in", 3)) +
                                        masked(kBinary, "\x04{\"Width\":80,\"Height\":24}{\"Width\":81,") +
                                        masked(kBinary, "\x04\"Height\":25}") + masked('\x89', "p") +
                                        masked(kBinary, std::string("\xff\0", 2)) + masked('\x88', ""),
                                    reply);
  ASSERT_TRUE(inputs);
  EXPECT_EQ(text_of(*inputs), "in<80x24><81x25><end><closed>");
  EXPECT_EQ(reply, websocket_frame(WebSocketKind::kPong, "p"));
  EXPECT_EQ(channels.message(Channel::kOut, "out"), "\x82\x04\x01out");
  EXPECT_EQ(channels.greeting(Channel::kErr), "\x82\x01\x02");

  WebSocketChannels older("v4.channel.k8s.io");
  EXPECT_EQ(text_of(*older.feed(masked(kBinary, std::string("\xff\0", 2)), reply)), "") << "v4 cannot end its input";

  WebSocketChannels letters("v4.base64.channel.k8s.io");
  EXPECT_EQ(text_of(*letters.feed(masked(kText, "0aW4="), reply)), "in");
  EXPECT_EQ(letters.message(Channel::kOut, "out"),
            "\x81\x05"
            "1b3V0");
}

TEST(WebSocketChannels, AreCertainlyReadyOnceTheClientHasUsedOne) {
  WebSocketChannels channels("v5.channel.k8s.io");
  std::string reply;
  EXPECT_EQ(channels.readiness(), Readiness::kLikely);
  ASSERT_TRUE(channels.feed(masked('\x89', "p") + masked(kBinary, ""), reply));
  EXPECT_EQ(channels.readiness(), Readiness::kLikely) << "its connection speaks, no channel of it";
  ASSERT_TRUE(channels.feed(masked(kBinary, std::string("\0in", 3)), reply));
  EXPECT_EQ(channels.readiness(), Readiness::kCertain);
}

TEST(CommandStatus, SaysHowItEnded) {
  EXPECT_EQ(command_status(0), R"({"metadata":{},"status":"Success"})");
  const auto failed = command_status(3);
  EXPECT_TRUE(failed.contains(R"("causes":[{"message":"3","reason":"ExitCode"}])")) << failed;
  EXPECT_TRUE(failed.contains(R"("reason":"NonZeroExitCode")")) << failed;
  const auto broken = command_status(make_error(ErrorCode::kInternalError, "no such file"));
  EXPECT_TRUE(broken.contains(R"("code":500)")) << broken;
  EXPECT_TRUE(broken.contains("error executing command in container: no such file")) << broken;
}

TEST(StreamOptions, OfAClientAreFormatted) {
  const auto target = parse_target("/x?stdin=true&stdout=1&stderr=false&tty");
  const StreamOptions options = requested_streams(*target);
  EXPECT_EQ(options, (StreamOptions{.in = true, .out = true, .err = false, .tty = true}));
  EXPECT_EQ(to_query(options), "input=1&output=1&tty=1");
  EXPECT_EQ(to_query({}), "");
}

}  // namespace
}  // namespace spillway::api
