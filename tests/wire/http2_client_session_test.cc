// A client's side of HTTP/2 against frames of a scripted server: answers, what is untouched, flow, and servers that
// make work.
#include "wire/http2/http2_client_session.h"

#include "wire/http2_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;

constexpr int kAcknowledged = 1;
constexpr FrameType kPushPromise{5};
constexpr std::size_t kEverything = std::size_t{64} * 1024 * 1024;
/// ":status: 200" and ":status: 103", of the static table and beside it (RFC 7541, 6).
const std::string kStatus200 = "\x88";
const std::string kStatus103 = std::string("\x08\x03", 2) + "103";

/// A field outside any table; names and values shorter than 127 bytes.
std::string plain_field(std::string_view name, std::string_view value) {
  std::string out(1, '\0');
  out += static_cast<char>(name.size());
  out += name;
  out += static_cast<char>(value.size());
  return out.append(value);
}

struct SentFrame {
  FrameType type{};
  int flags = 0;
  std::uint32_t stream = 0;
  std::string payload;
};

std::uint32_t number_in(std::string_view bytes) {
  std::uint32_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

/// A session and the events of its handler; the test plays the server.
class ClientSession : public ::testing::Test, protected Http2ClientSession::Handler {
 protected:
  struct Received {
    api::Response head{.status = 0, .headers = {}, .body = {}, .document = {}};
    bool ended = false;
    std::optional<Http2ClientSession::Failure> failure;
  };

  ClientSession() {
    std::string greeting;
    EXPECT_TRUE(session_.pull(greeting, kEverything));
    EXPECT_TRUE(greeting.starts_with("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    greeting_ = frames_of(std::string_view(greeting).substr(24));
    EXPECT_TRUE(say(frame_of(FrameType::kSettings, 0, 0, "") + frame_of(FrameType::kSettings, kAcknowledged, 0, "")));
  }

  void on_head(Http2StreamId stream, api::Response head) override { received_[stream].head = std::move(head); }

  void on_body(Http2StreamId stream, std::string_view bytes) override {
    received_[stream].head.body += bytes;
    if (consumes_) session_.consume(stream, bytes.size());
  }

  void on_end(Http2StreamId stream, std::optional<Http2ClientSession::Failure> failure) override {
    EXPECT_FALSE(received_[stream].ended) << "twice";
    received_[stream].ended = true;
    received_[stream].failure = std::move(failure);
  }

  Http2StreamId ask(api::Method method = api::Method::kGet, std::string body = {}) {
    const api::Request head{.method = method, .target = "/x", .headers = {{"a", "b"}}, .body = {}, .document = {}};
    const auto stream = session_.ask(head, "server", std::make_shared<const std::string>(std::move(body)));
    EXPECT_TRUE(stream);
    return stream.value_or(0);
  }

  /// Sends frames as the server. False: the client closes the connection at once.
  bool say(std::string_view frames, Instant now = Instant{} + hours(1)) { return session_.feed(frames, now); }

  /// The frames that the client has sent since the last call.
  std::vector<SentFrame> sent() {
    std::string out;
    EXPECT_TRUE(session_.pull(out, kEverything));
    return frames_of(out);
  }

  std::vector<SentFrame> sent(FrameType type, std::uint32_t stream) {
    std::vector<SentFrame> all = sent();
    std::erase_if(all, [&](const SentFrame& frame) { return frame.type != type || frame.stream != stream; });
    return all;
  }

  static std::vector<SentFrame> frames_of(std::string_view bytes) {
    std::vector<SentFrame> frames;
    while (bytes.size() >= 9) {
      const std::size_t size = number_in(bytes.substr(0, 3));
      frames.push_back({FrameType{static_cast<std::uint8_t>(bytes[3])}, bytes[4], number_in(bytes.substr(5, 4)),
                        std::string(bytes.substr(9, size))});
      bytes.remove_prefix(9 + size);
    }
    return frames;
  }

  static std::string head_frame(Http2StreamId stream, const std::string& fields, int flags = kEndHeaders) {
    return frame_of(FrameType::kHeaders, flags, static_cast<std::uint32_t>(stream), fields);
  }

  static std::string data_frame(Http2StreamId stream, std::string_view bytes, int flags = 0) {
    return frame_of(FrameType::kData, flags, static_cast<std::uint32_t>(stream), bytes);
  }

  static std::string answer(Http2StreamId stream, std::string_view body) {
    return head_frame(stream, kStatus200) + data_frame(stream, body, kEndStream);
  }

  static std::string reset_frame(Http2StreamId stream, Http2Code code) {
    return frame_of(FrameType::kReset, 0, static_cast<std::uint32_t>(stream),
                    big_endian(static_cast<std::uint32_t>(code)));
  }

  static std::string goaway_frame(Http2StreamId last) {
    return frame_of(FrameType::kGoAway, 0, 0, big_endian(static_cast<std::uint32_t>(last)) + big_endian(0));
  }

  static std::string ping_frame() { return frame_of(FrameType::kPing, 0, 0, "12345678"); }

  /// True once the connection has ended and its last bytes are sent.
  bool over() {
    last_word_ = sent();
    return session_.is_over();
  }

  Http2ClientSession session_{*this, Http2Bounds::client()};
  bool consumes_ = false;
  std::map<Http2StreamId, Received> received_;
  std::vector<SentFrame> greeting_;
  std::vector<SentFrame> last_word_;
};

TEST_F(ClientSession, SaysWhatItTakes) {
  ASSERT_FALSE(greeting_.empty());
  std::map<std::uint32_t, std::uint32_t> settings;
  for (std::string_view left = greeting_.front().payload; left.size() >= 6; left.remove_prefix(6))
    settings[number_in(left.substr(0, 2))] = number_in(left.substr(2, 4));
  EXPECT_EQ(settings.at(NGHTTP2_SETTINGS_ENABLE_PUSH), 0U);
  EXPECT_EQ(settings.at(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE), 1U << 20);
  EXPECT_EQ(settings.at(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE), 1U << 16);
  ASSERT_EQ(greeting_.size(), 2U);
  EXPECT_EQ(greeting_.back().type, FrameType::kWindowUpdate);
  EXPECT_EQ(number_in(greeting_.back().payload), (16U << 20) - 65'535U);
}

TEST_F(ClientSession, AsksAndIsAnswered) {
  const Http2StreamId first = ask();
  const Http2StreamId second = ask(api::Method::kPost, "question");
  const std::vector<SentFrame> asked = sent();
  ASSERT_EQ(asked.size(), 4U);  // an acknowledgement, two heads, a body
  EXPECT_EQ(asked[1].flags & kEndStream, kEndStream);
  EXPECT_EQ(asked[2].flags & kEndStream, 0);
  EXPECT_EQ(asked[3].payload, "question");
  EXPECT_EQ(asked[3].flags & kEndStream, kEndStream);
  EXPECT_TRUE(say(head_frame(second, kStatus200 + plain_field("x", "y")) + answer(first, "one")));
  EXPECT_TRUE(say(data_frame(second, "t") + data_frame(second, "wo", kEndStream)));
  EXPECT_EQ(received_[first].head.body, "one");
  EXPECT_EQ(received_[second].head.status, 200);
  EXPECT_EQ(received_[second].head.header("x"), "y");
  EXPECT_EQ(received_[second].head.body, "two");
  EXPECT_TRUE(received_[first].ended && received_[second].ended);
  EXPECT_FALSE(received_[first].failure || received_[second].failure);
}

TEST_F(ClientSession, ABodyFollowsTheWindowOfTheServer) {
  EXPECT_TRUE(
      say(frame_of(FrameType::kSettings, 0, 0, big_endian(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 2) + big_endian(10))));
  const Http2StreamId stream = ask(api::Method::kPut, std::string(25, 'b'));
  const auto data = [&] { return sent(FrameType::kData, static_cast<std::uint32_t>(stream)); };
  EXPECT_EQ(data().at(0).payload.size(), 10U);
  EXPECT_TRUE(say(frame_of(FrameType::kWindowUpdate, 0, static_cast<std::uint32_t>(stream), big_endian(100))));
  const auto rest = data();
  EXPECT_EQ(rest.at(0).payload.size(), 15U);
  EXPECT_EQ(rest.at(0).flags & kEndStream, kEndStream);
}

TEST_F(ClientSession, AnAnswerBeforeTheWholeQuestionEndsIt) {
  EXPECT_TRUE(
      say(frame_of(FrameType::kSettings, 0, 0, big_endian(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 2) + big_endian(10))));
  const Http2StreamId stream = ask(api::Method::kPut, std::string(25, 'b'));
  sent();
  EXPECT_TRUE(say(head_frame(stream, std::string("\x08\x03", 2) + "413", kEndHeaders | kEndStream)));
  EXPECT_EQ(received_[stream].head.status, 413);
  EXPECT_TRUE(received_[stream].ended && !received_[stream].failure);
  EXPECT_EQ(sent(FrameType::kReset, static_cast<std::uint32_t>(stream)).size(), 1U);
}

// A paused watch must not hold up the heartbeats, lists and watches beside it.
TEST_F(ClientSession, WhatOneStreamHoldsUpHoldsUpNoOther) {
  constexpr int kStreams = 20;
  const std::string block(16'384, 'x');
  std::vector<Http2StreamId> streams;
  for (int i = 0; i < kStreams; ++i) streams.push_back(ask());
  sent();
  std::size_t granted = std::size_t{16} << 20;
  std::size_t used = 0;
  for (const Http2StreamId stream : streams) {
    ASSERT_TRUE(say(head_frame(stream, kStatus200)));
    for (int i = 0; i < 64; ++i) {
      ASSERT_TRUE(say(data_frame(stream, block)));
      used += block.size();
    }
    std::size_t for_streams = 0;
    for (const SentFrame& frame : sent()) {
      if (frame.type != FrameType::kWindowUpdate) continue;
      (frame.stream == 0 ? granted : for_streams) += number_in(frame.payload);
    }
    EXPECT_EQ(for_streams, 0U) << "nothing was consumed";
    ASSERT_LE(used, granted);
  }
  EXPECT_EQ(used, std::size_t{kStreams} << 20);
  session_.consume(streams[3], 1 << 20);
  const auto updates = sent(FrameType::kWindowUpdate, static_cast<std::uint32_t>(streams[3]));
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_EQ(number_in(updates[0].payload), 1U << 20);
}

TEST_F(ClientSession, BytesBeyondAWindowAreRefused) {
  const Http2StreamId stream = ask();
  sent();
  EXPECT_TRUE(say(head_frame(stream, kStatus200)));
  for (int i = 0; i < 65; ++i) static_cast<void>(say(data_frame(stream, std::string(16'384, 'x'))));
  sent();
  EXPECT_LE(received_[stream].head.body.size(), (std::size_t{1} << 20) + 16'384);
  EXPECT_TRUE(received_[stream].failure || session_.is_over());
}

TEST_F(ClientSession, StreamsAboveTheLastOfAGoawayAreUntouched) {
  const Http2StreamId first = ask();
  const Http2StreamId second = ask();
  sent();
  EXPECT_TRUE(say(head_frame(first, kStatus200) + goaway_frame(first)));
  EXPECT_FALSE(session_.takes_requests());
  EXPECT_EQ(session_.ask({}, "server", nullptr), std::nullopt);
  ASSERT_TRUE(received_[second].failure);
  EXPECT_TRUE(received_[second].failure->untouched);
  EXPECT_FALSE(received_[first].ended);
  EXPECT_FALSE(over());
  EXPECT_TRUE(say(data_frame(first, "rest", kEndStream)));
  EXPECT_EQ(received_[first].head.body, "rest");
  EXPECT_FALSE(received_[first].failure);
  EXPECT_TRUE(over());
}

TEST_F(ClientSession, WhatWasNotSentBeforeAGoawayIsUntouched) {
  const Http2StreamId stream = ask();
  EXPECT_TRUE(say(goaway_frame(0)));
  sent();
  ASSERT_TRUE(received_[stream].failure);
  EXPECT_TRUE(received_[stream].failure->untouched);
}

TEST_F(ClientSession, OnlyARefusedStreamIsUntouched) {
  const Http2StreamId refused = ask();
  const Http2StreamId failed = ask();
  const Http2StreamId cut_off = ask();
  sent();
  EXPECT_TRUE(say(reset_frame(refused, Http2Code::kRefusedStream) + reset_frame(failed, Http2Code::kInternalError) +
                  head_frame(cut_off, kStatus200) + data_frame(cut_off, "a") +
                  reset_frame(cut_off, Http2Code::kNoError)));
  ASSERT_TRUE(received_[refused].failure && received_[failed].failure && received_[cut_off].failure);
  EXPECT_TRUE(received_[refused].failure->untouched);
  EXPECT_FALSE(received_[failed].failure->untouched);
  EXPECT_EQ(received_[failed].failure->problem, "the stream was reset (INTERNAL_ERROR)");
  EXPECT_FALSE(received_[cut_off].failure->untouched);
  EXPECT_TRUE(session_.takes_requests());
}

TEST_F(ClientSession, NothingIsReportedOfACancelledRequest) {
  const Http2StreamId stream = ask();
  sent();
  session_.take_back(stream);
  const auto resets = sent(FrameType::kReset, static_cast<std::uint32_t>(stream));
  ASSERT_EQ(resets.size(), 1U);
  EXPECT_EQ(number_in(resets[0].payload), static_cast<std::uint32_t>(Http2Code::kCancel));
  EXPECT_TRUE(say(answer(stream, "late")));
  EXPECT_FALSE(received_.contains(stream));
  const Http2StreamId unsent = ask();
  session_.take_back(unsent);
  sent();
  EXPECT_FALSE(received_.contains(unsent));
}

// Without the limit the server would keep its connection, and the reader at work for ever.
TEST_F(ClientSession, AServerThatIgnoresACancelledRequestIsDisconnected) {
  for (const int blocks : {64, 1'000}) {
    Http2ClientSession session{*this, Http2Bounds::client()};
    const auto stream = session.ask({}, "server", nullptr);
    std::string out;
    ASSERT_TRUE(session.pull(out, kEverything));
    std::string frames =
        frame_of(FrameType::kSettings, 0, 0, "") + frame_of(FrameType::kSettings, kAcknowledged, 0, "");
    ASSERT_TRUE(session.feed(frames + head_frame(*stream, kStatus200), Instant{}));
    session.take_back(*stream);
    ASSERT_TRUE(session.pull(out, kEverything));
    for (int i = 0; i < blocks; ++i) {
      static_cast<void>(session.feed(data_frame(*stream, std::string(16'384, 'x')), Instant{}));
      ASSERT_TRUE(session.pull(out, kEverything));
    }
    EXPECT_EQ(session.is_over(), blocks > 64);
  }
}

// The window is given back in the middle of a frame, which counts when it is whole.
TEST_F(ClientSession, ALongAnswerInPiecesIsWanted) {
  consumes_ = true;
  const Http2StreamId stream = ask();
  sent();
  ASSERT_TRUE(say(head_frame(stream, kStatus200)));
  std::string frames;
  for (int i = 0; i < 2500; ++i) frames += data_frame(stream, std::string(10'007, 'x'));  // 24 MiB
  for (std::string_view left = frames; !left.empty(); left.remove_prefix(std::min<std::size_t>(left.size(), 5'000))) {
    ASSERT_TRUE(say(left.substr(0, 5'000)));
    sent();
    ASSERT_FALSE(session_.is_over());
  }
  EXPECT_EQ(received_[stream].head.body.size(), std::size_t{2500} * 10'007);
}

TEST_F(ClientSession, TakesAsManyStreamsAsBothAllow) {
  const auto settings = [&](std::uint32_t most) {
    return frame_of(FrameType::kSettings, 0, 0,
                    big_endian(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 2) + big_endian(most));
  };
  EXPECT_EQ(session_.streams_max(), 100U);
  EXPECT_TRUE(say(settings(7)));
  EXPECT_EQ(session_.streams_max(), 7U);
  EXPECT_TRUE(say(settings(5000)));
  EXPECT_EQ(session_.streams_max(), 100U);
}

TEST_F(ClientSession, InterimAnswersAreSkippedButNotForEver) {
  const Http2StreamId stream = ask();
  const Http2StreamId endless = ask();
  sent();
  EXPECT_TRUE(say(head_frame(stream, kStatus103) + head_frame(stream, kStatus103) + answer(stream, "ok")));
  EXPECT_EQ(received_[stream].head.status, 200);
  EXPECT_EQ(received_[stream].head.body, "ok");
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(say(head_frame(endless, kStatus103)));
  ASSERT_TRUE(received_[endless].failure);
  EXPECT_EQ(received_[endless].failure->problem, "too many interim answers");
}

TEST_F(ClientSession, AStatusThatIsNoneIsNoInterimAnswer) {
  const Http2StreamId stream = ask();
  sent();
  EXPECT_TRUE(say(head_frame(stream, std::string("\x08\x03", 2) + "065") + data_frame(stream, "x", kEndStream)));
  EXPECT_EQ(received_[stream].head.body, "");
  ASSERT_TRUE(received_[stream].failure);
}

TEST_F(ClientSession, LargeHeadsCostTheirStream) {
  const Http2StreamId many = ask();
  const Http2StreamId long_ones = ask();
  const Http2StreamId fair = ask();
  sent();
  std::string fields = kStatus200;
  for (int i = 0; i < 300; ++i) fields += plain_field("a", "b");
  EXPECT_TRUE(say(head_frame(many, fields)));
  ASSERT_TRUE(received_[many].failure);
  EXPECT_EQ(received_[many].failure->problem, "the fields of the answer are too large");
  // One entry that fills the table, then a reference to it, again and again: 12 MB from 7 kB.
  std::string bomb =
      kStatus200 + "\x40\x01" + "a" + "\x7f\x81\x1e" + std::string(4000, 'v') + std::string(3000, '\xbe');
  EXPECT_TRUE(say(head_frame(long_ones, bomb)));
  sent();
  EXPECT_TRUE(received_[long_ones].failure);
  EXPECT_EQ(received_[long_ones].head.status, 0);
  fields = kStatus200;
  for (int i = 0; i < 250; ++i) fields += plain_field("a", "b");
  EXPECT_TRUE(say(head_frame(fair, fields, kEndHeaders | kEndStream)));
  EXPECT_TRUE(received_[fair].ended && !received_[fair].failure);
}

TEST_F(ClientSession, AHeadWithoutEndIsRefused) {
  for (const int frames : {8, 9}) {
    Http2ClientSession session{*this, Http2Bounds::client()};
    const auto stream = session.ask({}, "server", nullptr);
    std::string out;
    ASSERT_TRUE(session.pull(out, kEverything));
    std::string head = frame_of(FrameType::kSettings, 0, 0, "") + head_frame(*stream, kStatus200, 0);
    for (int i = 0; i < frames; ++i)
      head += frame_of(FrameType::kContinuation, i + 1 == frames ? kEndHeaders : 0, static_cast<std::uint32_t>(*stream),
                       plain_field("a", "b"));
    EXPECT_EQ(session.feed(head, Instant{}), frames <= 8) << frames;
  }
}

/// Promises are refused even before the server has acknowledged the setting.
TEST_F(ClientSession, PromisesAreRefused) {
  for (const char* acknowledged : {"", "yes"}) {
    Http2ClientSession session{*this, Http2Bounds::client()};
    const auto stream = session.ask({}, "server", nullptr);
    std::string out;
    ASSERT_TRUE(session.pull(out, kEverything));
    std::string frames = frame_of(FrameType::kSettings, 0, 0, "");
    if (*acknowledged != 0) frames += frame_of(FrameType::kSettings, kAcknowledged, 0, "");
    frames += frame_of(kPushPromise, kEndHeaders, static_cast<std::uint32_t>(*stream), big_endian(2) + kGetHead);
    static_cast<void>(session.feed(frames, Instant{}));
    out.clear();
    ASSERT_TRUE(session.pull(out, kEverything));
    EXPECT_TRUE(session.is_over()) << acknowledged;
    EXPECT_EQ(frames_of(out).back().type, FrameType::kGoAway);
  }
}

TEST_F(ClientSession, PingsAreAnsweredWhileAnswersWait) {
  const Http2StreamId stream = ask();
  sent();
  EXPECT_TRUE(say(head_frame(stream, kStatus200) + data_frame(stream, "held") + ping_frame()));
  const auto answers = sent(FrameType::kPing, 0);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].flags, kAcknowledged);
}

/// Frames of a server that answers nothing, and how many of them are no flood.
struct FloodRow {
  const char* name;
  std::string frame;
  int allowed;
};

class ServerFlood : public ClientSession, public ::testing::WithParamInterface<FloodRow> {};

TEST_P(ServerFlood, EndsTheConnection) {
  const FloodRow& row = GetParam();
  const Http2StreamId stream = ask();
  sent();
  ASSERT_TRUE(say(head_frame(stream, kStatus200) + data_frame(stream, "a")));
  for (int i = 0; i < row.allowed; ++i) ASSERT_TRUE(say(row.frame)) << i;
  EXPECT_FALSE(session_.flood());
  EXPECT_FALSE(over());
  static_cast<void>(say(row.frame));
  EXPECT_EQ(to_string(session_.flood().value()), row.name);
  EXPECT_TRUE(over());
  ASSERT_EQ(last_word_.back().type, FrameType::kGoAway);
  EXPECT_EQ(number_in(std::string_view(last_word_.back().payload).substr(4, 4)),
            static_cast<std::uint32_t>(Http2Code::kEnhanceYourCalm));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, ServerFlood,
    ::testing::Values(FloodRow{"pings", frame_of(FrameType::kPing, 0, 0, "12345678"), 100},
                      // the client has sent one such frame already
                      FloodRow{"settings", frame_of(FrameType::kSettings, 0, 0, ""), 4},
                      FloodRow{"empty frames", frame_of(FrameType::kData, 0, 1, ""), 10},
                      FloodRow{"window updates", frame_of(FrameType::kWindowUpdate, 0, 0, big_endian(1)), 102},
                      FloodRow{"priorities", frame_of(FrameType::kPriority, 0, 1, big_endian(0) + "\x10"), 200}),
    [](const auto& row) {
      std::string name = row.param.name;
      std::erase(name, ' ');
      return name;
    });

TEST_F(ClientSession, ResetsWithoutEndEndTheConnection) {
  int answered = 0;
  for (; answered < 300 && session_.takes_requests(); ++answered) {
    const Http2StreamId stream = ask();
    sent();
    static_cast<void>(say(reset_frame(stream, Http2Code::kRefusedStream)));
  }
  EXPECT_EQ(answered, 201);
  EXPECT_EQ(to_string(session_.flood().value()), "resets");
}

TEST_F(ClientSession, WhatIsNotHttp2IsRefused) {
  Http2ClientSession session{*this, Http2Bounds::client()};
  std::string out;
  ASSERT_TRUE(session.pull(out, kEverything));
  const bool fed = session.feed("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", Instant{});
  ASSERT_TRUE(session.pull(out, kEverything));
  EXPECT_TRUE(!fed || session.is_over());
}

}  // namespace
}  // namespace spillway::wire
