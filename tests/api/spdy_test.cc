// Goal: SPDY is decoded however it is cut, input that is no SPDY or too large ends the connection, and header blocks
// are compatible with other programs; over it commands have their channels and forwarded ports their pairs, and no
// client gets more than its share.
#include "api/stream/port_streams.h"
#include "api/stream/spdy_channels.h"
#include "api/stream/spdy_frames.h"
#include "api/stream/stream_translation.h"

#include <gtest/gtest.h>

#include <array>

namespace spillway::api {
namespace {

using namespace std::string_view_literals;

/// The output of another program's zlib for {streamtype: error}, then for {streamtype: data, port: 80, requestid: 7}.
constexpr std::string_view kFirstBlock =
    "\x78\xf9\xe3\xc6\xa7\xc2\x02\xa6\x23\x46\x70\x3a\x2b\x29\x4a\x4d\xcc\x85\x16\x25\xac\xa9\xa0\x80\x06\x00\x00\x00\xff\xff"sv;
constexpr std::string_view kSecondBlock =
    "\x02\xa5\x47\x0c\x29\x50\x29\x93\x08\x29\xb0\x8b\x40\x89\x9b\xc9\xc2\x00\x48\x72\x16\x41\xa2\x37\x13\x94\xec\x19\xcd\x01\x00\x00\x00\xff\xff"sv;

std::string client_frame(std::uint8_t kind, std::uint8_t flags, std::string_view payload) {
  std::string frame("\x80\x03\0", 3);
  frame += static_cast<char>(kind);
  frame += static_cast<char>(flags);
  for (const unsigned shift : {16U, 8U, 0U}) frame += static_cast<char>(payload.size() >> shift);
  frame += payload;
  return frame;
}

/// The frames in order, since writers share a compression state.
std::string all(std::initializer_list<std::string> parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

/// A client that opens streams, with one writer for all, as they share a state.
class Client {
 public:
  std::string open(SpdyStreamId stream, const HeaderList& headers) { return writer_.open(stream, headers); }

  std::string open(SpdyStreamId stream, const std::string& type) { return open(stream, {{"streamType", type}}); }

 private:
  SpdyWriter writer_;
};

Result<std::vector<SpdyFrame>> read_all(std::string_view bytes, std::size_t cut) {
  SpdyReader reader;
  std::vector<SpdyFrame> frames;
  for (std::size_t at = 0; at < bytes.size(); at += cut) SPILLWAY_TRY_VOID(reader.feed(bytes.substr(at, cut), frames));
  return frames;
}

TEST(SpdyHeaders, AreThoseOfOthers) {
  SpdyHeaderReader reader;
  EXPECT_EQ(*reader.read(kFirstBlock), (HeaderList{{"streamtype", "error"}}));
  EXPECT_EQ(*reader.read(kSecondBlock), (HeaderList{{"streamtype", "data"}, {"port", "80"}, {"requestid", "7"}}));
  SpdyHeaderReader late;
  EXPECT_FALSE(late.read(kSecondBlock)) << "it goes on from the first";
  SpdyHeaderReader cut;
  EXPECT_FALSE(cut.read(kFirstBlock.substr(0, 20)));
}

TEST(SpdyHeaders, AreRefusedWhenTheyAreTooMuch) {
  SpdyHeaderWriter writer;
  SpdyHeaderReader reader;
  EXPECT_EQ(*reader.read(writer.write({{"A", "1"}, {"b", ""}})), (HeaderList{{"a", "1"}, {"b", ""}}));
  EXPECT_EQ(*reader.read(writer.write({})), HeaderList());
  EXPECT_FALSE(reader.read(writer.write({{"bomb", std::string(1'000'000, 'x')}})));
  SpdyHeaderWriter other;
  SpdyHeaderReader of_other;
  EXPECT_FALSE(of_other.read(other.write(HeaderList(65, {"a", "b"}))));
}

TEST(Spdy, TakesFramesApartHoweverTheyAreCut) {
  Client client;
  const std::string bytes =
      all({client.open(1, "error"), client_frame(4, 0, std::string(4, '\0')), SpdyWriter::data(1, "some data"),
           SpdyWriter::ping(3), client_frame(9, 0, std::string(8, '\0')), client.open(3, "stdin"),
           SpdyWriter::data(3, {}, true), SpdyWriter::reset(1, kSpdyCancelled), SpdyWriter::go_away(3)});
  for (const std::size_t cut : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
    const auto frames = read_all(bytes, cut);
    ASSERT_TRUE(frames) << frames.error().text();
    std::vector<SpdyFrame> expected{{.kind = SpdyKind::kOpen, .stream = 1, .headers = {{"streamtype", "error"}}}};
    const std::string_view data = "some data";
    for (std::size_t at = 0; at < data.size();) {  // data comes as it arrives
      const std::string& seen = frames->at(expected.size()).data;
      EXPECT_EQ(seen, data.substr(at, seen.size()));
      expected.push_back({.kind = SpdyKind::kData, .stream = 1, .data = seen});
      at += std::max<std::size_t>(1, seen.size());
    }
    expected.push_back({.kind = SpdyKind::kPing, .stream = 3});
    expected.push_back({.kind = SpdyKind::kOpen, .stream = 3, .headers = {{"streamtype", "stdin"}}});
    expected.push_back({.kind = SpdyKind::kData, .stream = 3, .last = true});
    expected.push_back({.kind = SpdyKind::kReset, .stream = 1});
    expected.push_back({.kind = SpdyKind::kGoAway, .stream = 3});
    EXPECT_EQ(*frames, expected) << cut;
  }
}

TEST(Spdy, EndsWithWhatIsNone) {
  std::string old = SpdyWriter::ping(1);
  old[1] = 2;
  const std::array<std::string, 7> broken = {old,
                                             client_frame(5, 0, "1234"),
                                             client_frame(6, 0, "12345"),
                                             client_frame(3, 0, "1234"),
                                             client_frame(1, 0, "123456789"),
                                             client_frame(2, 0, "1234no zlib"),
                                             client_frame(1, 0, std::string(SpdyReader::kControlBytesMax + 1, 'x'))};
  for (const std::string& bytes : broken) EXPECT_FALSE(read_all(bytes, bytes.size())) << bytes.substr(0, 20);
}

TEST(Spdy, HandshakeNamesWhatIsSpoken) {
  Request request{.headers = {{"connection", "Upgrade"}, {"upgrade", "SPDY/3.1"}}};
  EXPECT_EQ(accept_spdy(request, SpdyChannels::protocols()).error().code, ErrorCode::kBadRequest);
  request.headers.emplace_back("x-stream-protocol-version", "v9.channel.k8s.io");
  EXPECT_EQ(accept_spdy(request, SpdyChannels::protocols()).error().code, ErrorCode::kForbidden);
  request.headers.emplace_back("x-stream-protocol-version", "v4.channel.k8s.io");
  request.headers.emplace_back("x-stream-protocol-version", "channel.k8s.io");
  const auto accepted = accept_spdy(request, SpdyChannels::protocols());
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->protocol, "v4.channel.k8s.io");
  EXPECT_EQ(accepted->head.header("upgrade"), "SPDY/3.1");
}

std::string text_of(const Result<std::vector<ChannelInput>>& inputs) {
  if (!inputs) return "<broken>";
  std::string text;
  for (const ChannelInput& input : *inputs) {
    text += input.data;
    if (input.kind == ChannelInput::Kind::kEnd) text += "<end>";
    if (input.kind == ChannelInput::Kind::kResize) text += fmt::format("<{}x{}>", input.size.width, input.size.height);
  }
  return text;
}

TEST(SpdyChannels, AreReadyOnceTheirStreamsAreOpen) {
  SpdyChannels channels("v4.channel.k8s.io", {.in = true, .out = true});
  Client client;
  std::string reply;
  EXPECT_EQ(text_of(channels.feed(all({client.open(1, "error"), client.open(3, "stdout")}), reply)), "");
  EXPECT_EQ(channels.readiness(), Readiness::kAwaited);
  EXPECT_EQ(
      text_of(channels.feed(all({client.open(5, "stdin"), SpdyWriter::data(5, "in"), SpdyWriter::data(5, "put", true),
                                 client.open(7, "resize"), SpdyWriter::data(7, R"({"Width":80,"Height":24})")}),
                            reply)),
      "input<end><80x24>");
  EXPECT_EQ(channels.readiness(), Readiness::kCertain);
  EXPECT_EQ(channels.message(Channel::kOut, "out"), SpdyWriter::data(3, "out"));
  EXPECT_EQ(channels.message(Channel::kErr, "err"), "") << "nobody has opened it";
  EXPECT_EQ(text_of(channels.feed(SpdyWriter::reset(3, kSpdyCancelled), reply)), "");
  EXPECT_EQ(channels.message(Channel::kOut, "out"), "") << "nobody wants it any more";
  const auto answers = read_all(reply, reply.size());
  ASSERT_TRUE(answers);
  EXPECT_EQ(answers->size(), 4) << "one for each";
  EXPECT_EQ(channels.farewell(0), SpdyWriter::data(1, R"({"metadata":{},"status":"Success"})", true) +
                                      SpdyWriter::data(7, {}, true) + SpdyWriter::data(5, {}, true) +
                                      SpdyWriter::go_away(7));
}

TEST(SpdyChannels, OfOldClientsSayHowItEndedInWords) {
  for (const auto& [code, words] : {std::pair(0, ""), std::pair(3,
                                                                "command terminated with non-zero exit code: exit "
                                                                "status 3")}) {
    SpdyChannels channels("channel.k8s.io", {.out = true});
    Client client;
    std::string reply;
    EXPECT_EQ(text_of(channels.feed(client.open(1, "error"), reply)), "");
    EXPECT_EQ(channels.farewell(code), SpdyWriter::data(1, words, true) + SpdyWriter::go_away(1));
  }
}

TEST(SpdyChannels, RefuseWhatIsNotTheirs) {
  Client client;
  std::string reply;
  SpdyChannels channels("v2.channel.k8s.io", {.out = true});
  const auto inputs = channels.feed(all({client.open(1, "error"), client.open(3, "error"), client.open(5, "resize"),
                                         client.open(7, "other"), client.open(9, HeaderList{})}),
                                    reply);
  EXPECT_EQ(text_of(inputs), "");
  for (const SpdyStreamId refused : {3U, 5U, 7U, 9U})
    EXPECT_TRUE(reply.contains(SpdyWriter::reset(refused, kSpdyRefused))) << refused;
  EXPECT_EQ(text_of(channels.feed(client.open(9, "stdout"), reply)), "<broken>") << "not again";
  Client another;
  SpdyChannels even("v4.channel.k8s.io", {.out = true});
  EXPECT_EQ(text_of(even.feed(another.open(2, "error"), reply)), "<broken>") << "the other side's number";
}

HeaderList port_headers(std::string type, std::string port, std::string id) {
  return {{"streamType", std::move(type)}, {"port", std::move(port)}, {"requestID", std::move(id)}};
}

TEST(PortStreams, ArriveInPairs) {
  PortStreams streams(PortStreams::Carrier::kPlain);
  Client client;
  std::string reply;
  using Kind = PortEvent::Kind;
  const auto events = streams.feed(all({client.open(1, port_headers("error", "80", "0")), SpdyWriter::data(1, {}, true),
                                        client.open(3, port_headers("data", "80", "0")), SpdyWriter::data(3, "GET /"),
                                        SpdyWriter::data(3, {}, true)}),
                                   Instant{}, reply);
  ASSERT_TRUE(events);
  EXPECT_EQ(*events, (std::vector<PortEvent>{{.kind = Kind::kOpened, .pair = 3, .port = 80},
                                             {.kind = Kind::kData, .pair = 3, .data = "GET /"},
                                             {.kind = Kind::kEnd, .pair = 3}}));
  EXPECT_EQ(streams.data(3, "200"), SpdyWriter::data(3, "200"));
  EXPECT_EQ(streams.end(3), SpdyWriter::data(3, {}, true) + SpdyWriter::data(1, {}, true));
  EXPECT_EQ(streams.data(3, "more"), "");
  EXPECT_EQ(streams.close(3, "too late"), "");
  EXPECT_EQ(streams.pairs(), 0);
  ASSERT_TRUE(streams.feed(
      all({client.open(5, port_headers("error", "81", "1")), client.open(7, port_headers("data", "81", "1"))}),
      Instant{}, reply));
  EXPECT_EQ(streams.close(7, "refused"), SpdyWriter::data(5, "refused", true) + SpdyWriter::data(7, {}, true));
}

TEST(PortStreams, RefuseWhatMakesNoPair) {
  PortStreams streams(PortStreams::Carrier::kPlain);
  Client client;
  std::string reply;
  SpdyStreamId next = 1;
  const auto refuses = [&](HeaderList headers, Instant now = {}) {
    reply.clear();
    const auto events = streams.feed(client.open(next, headers), now, reply);
    const bool refused = reply.contains(SpdyWriter::reset(next, kSpdyRefused));
    next += 2;
    return events && refused;
  };
  for (const char* port : {"0", "65536", "-1", "80x", "", "0x50"})
    EXPECT_TRUE(refuses(port_headers("error", port, "0")));
  EXPECT_TRUE(refuses(port_headers("data", "80", "0"))) << "the other half comes first";
  EXPECT_TRUE(refuses(port_headers("error", "80", std::string(65, '1'))));
  EXPECT_FALSE(refuses(port_headers("error", "80", "0")));
  EXPECT_TRUE(refuses(port_headers("error", "80", "0"))) << "twice";
  EXPECT_TRUE(refuses(port_headers("data", "81", "0"))) << "another port";
  EXPECT_TRUE(refuses(port_headers("data", "80", "0"), Instant{} + PortStreams::kHalfMax)) << "too late";
  for (std::size_t i = 0; i < PortStreams::kPairsMax; ++i)
    EXPECT_FALSE(refuses(port_headers("error", "80", fmt::format("{}", i)), Instant{} + PortStreams::kHalfMax)) << i;
  EXPECT_TRUE(refuses(port_headers("error", "80", "one more"), Instant{} + PortStreams::kHalfMax));
}

TEST(PortStreams, GoThroughAWebSocket) {
  PortStreams streams(PortStreams::Carrier::kWebSocket);
  const std::string ping = SpdyWriter::ping(1);
  std::string message("\x82", 1);
  message += static_cast<char>(0x80U | ping.size());
  message += std::string(4, '\0') + ping;
  std::string reply;
  ASSERT_TRUE(streams.feed(message, Instant{}, reply));
  EXPECT_EQ(reply, websocket_frame(WebSocketKind::kBinary, ping));
  EXPECT_FALSE(streams.feed(ping, Instant{}, reply)) << "without a message around it";
}

TEST(StreamTranslation, MakesStreamsOfChannels) {
  const auto translation =
      translate_channels("v5.channel.k8s.io", {.in = true, .out = true, .err = false, .tty = true});
  const auto opened = read_all(translation->opening(), 1);
  ASSERT_TRUE(opened);
  std::vector<std::string> types;
  for (const SpdyFrame& frame : *opened) types.push_back(frame.headers.at(0).second);
  EXPECT_EQ(types, (std::vector<std::string>{"error", "stdin", "stdout", "resize"}));
  EXPECT_EQ(translation->greeting(), websocket_frame(WebSocketKind::kBinary, "\1"));
  const auto masked = [](std::string_view payload) {
    std::string frame("\x82", 1);
    frame += static_cast<char>(0x80U | payload.size());
    return frame + std::string(4, '\0') + std::string(payload);
  };
  std::string reply;
  EXPECT_EQ(
      *translation->to_server(
          masked("\0in"sv) + masked("\4{\"Width\":8,\"Height\":9}") + masked("\xff\0"sv) + masked("\0late"sv), reply),
      SpdyWriter::data(3, "in") + SpdyWriter::data(9, R"({"Width":8,"Height":9})") + SpdyWriter::data(3, {}, true));
  EXPECT_EQ(*translation->to_client(SpdyWriter::data(5, "out") + SpdyWriter::ping(2) + SpdyWriter::data(1, "{status}") +
                                        SpdyWriter::reset(1, kSpdyCancelled),
                                    reply),
            websocket_frame(WebSocketKind::kBinary, "\1out"));
  EXPECT_EQ(reply, SpdyWriter::ping(2));
  EXPECT_TRUE(translation->farewell().starts_with(websocket_frame(WebSocketKind::kBinary, "\3{status}")));
  EXPECT_FALSE(translation->to_server(std::string("\x88\x80", 2) + std::string(4, '\0'), reply)) << "the client leaves";
  EXPECT_FALSE(translation->to_client(std::string(8, '\xff'), reply));
}

TEST(StreamTranslation, TakesATunnelApart) {
  const auto tunnel = translate_tunnel();
  std::string reply;
  const std::string ping = SpdyWriter::ping(1);
  EXPECT_EQ(*tunnel->to_server(std::string("\x82\x8c", 2) + std::string(4, '\0') + ping, reply), ping);
  EXPECT_EQ(*tunnel->to_client(ping, reply), websocket_frame(WebSocketKind::kBinary, ping));
  EXPECT_EQ(tunnel->opening() + tunnel->greeting() + tunnel->farewell(), "");
}

}  // namespace
}  // namespace spillway::api
