// The greatest length of each part of a request, to the byte, and input that is no request.
#include "wire/server/client_connection.h"
#include "wire/server/http_server.h"
#include "wire/wire_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(RequestBounds, RefusesABodyOverTheLimitBeforeItArrives) {
  ServerRoom room;
  TestClient client(room.port);
  client.send("POST /big HTTP/1.1\r\nHost: x\r\nContent-Length: 3145729\r\nExpect: 100-continue\r\n\r\n");
  const api::Response refused = client.answer();
  EXPECT_EQ(refused.status, 413);
  EXPECT_THAT(status_message(refused), HasSubstr("limit is 3145728"));
  EXPECT_FALSE(client.receive()) << "the connection stayed open";
  EXPECT_TRUE(room.run([&] { return room.handler.targets; }).empty());
}

TEST(RequestBounds, AnswersAClientThatKeepsSendingThatItsBodyIsTooLarge) {
  ServerRoom room;
  const Instant end = runtime::RealClock::read_mono() + support::kPatience;
  for (const bool chunked : {false, true}) {
    const std::string block(1024 * 1024, 'x');
    for (;;) {
      const Instant began = runtime::RealClock::read_mono();
      TestClient client(room.port);
      client.send(chunked ? "POST /big HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                          : "POST /big HTTP/1.1\r\nHost: x\r\nContent-Length: 25165824\r\n\r\n");
      int sent = 0;
      while (sent < 24 && client.send(chunked ? "100000\r\n" + block + "\r\n" : block)) ++sent;
      const int status = client.answer().status;
      const Instant now = runtime::RealClock::read_mono();
      // The server reads on for a while only: a client that a busy machine holds up for longer is cut.
      const bool in_time = now - began < kLingerTime;
      if (!in_time && status != 413 && now < end) continue;
      EXPECT_TRUE(sent == 24 || !in_time) << sent << " MiB";
      EXPECT_EQ(status, 413) << (chunked ? "chunked" : "with a length");
      break;
    }
  }
}

TEST(RequestBounds, TakesABodyOfExactlyTheLimit) {
  ServerRoom room;
  std::size_t got = 0;
  room.run([&] {
    room.handler.on("/full", [&](ScriptedHandler::Seen& seen) {
      got = seen.request.body.size();
      seen.sink->on_response({});
    });
  });
  TestClient client(room.port);
  client.send(post("/full", std::string(3 * 1024 * 1024, 'x')));
  EXPECT_EQ(client.answer().status, 200);
  EXPECT_EQ(room.run([&] { return got; }), 3U * 1024 * 1024);
}

class MalformedRequest : public ::testing::TestWithParam<std::pair<const char*, std::string>> {};

TEST_P(MalformedRequest, Is400AndTheConnectionCloses) {
  ServerRoom room;
  TestClient client(room.port);
  client.send(GetParam().second);
  const api::Response refused = client.answer();
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(status_message(refused), StartsWith("malformed HTTP request: "));
  EXPECT_FALSE(client.receive());
  EXPECT_TRUE(room.run([&] { return room.handler.targets; }).empty());
}

/// A request of exactly `bytes` bytes of head.
std::string head_of(std::size_t bytes) {
  const std::string begin = "GET / HTTP/1.1\r\nHost: x\r\nBig: ";
  return begin + std::string(bytes - begin.size() - 4, 'x') + "\r\n\r\n";
}

std::string with_fields(int count) {
  std::string text = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 1; i < count; ++i) text += "a:b\r\n";
  return text + "\r\n";
}

struct BoundedRequest {
  const char* name;
  std::string text;
  int status;
};

class RequestBound : public ::testing::TestWithParam<BoundedRequest> {};

TEST_P(RequestBound, IsExact) {
  ServerRoom room;
  TestClient client(room.port);
  client.send(GetParam().text);
  const api::Response answer = client.answer();
  EXPECT_EQ(answer.status, GetParam().status);
  if (answer.status == 200) return;
  EXPECT_THAT(status_message(answer), StartsWith("malformed HTTP request: "));
  EXPECT_FALSE(client.receive());
  EXPECT_TRUE(room.run([&] { return room.handler.targets; }).empty());
}

/// As above, wherever the bytes are divided on the way.
TEST_P(RequestBound, IsExactInPieces) {
  std::string input;
  RequestParser parser{RequestBounds()};
  int status = 0;
  for (std::size_t at = 0; at < GetParam().text.size() && status == 0; at += 997) {
    input += GetParam().text.substr(at, 997);
    const auto step = parser.feed(input);
    if (!step) status = parser.http_status();
    if (step && *step == RequestParser::Step::kDone) status = 200;
  }
  EXPECT_EQ(status, GetParam().status);
}

constexpr std::size_t kHeadMax = std::size_t{64} * 1024;

INSTANTIATE_TEST_SUITE_P(
    RequestBounds, RequestBound,
    ::testing::Values(BoundedRequest{"HeadOfTheLimit", head_of(kHeadMax), 200},
                      BoundedRequest{"HeadOneByteOver", head_of(kHeadMax + 1), 431},
                      BoundedRequest{"HeadFarOver", head_of(100'000), 431},
                      BoundedRequest{"EndlessHead", "GET / HTTP/1.1\r\nBig: " + std::string(100'000, 'x'), 431},
                      BoundedRequest{"AllFields", with_fields(256), 200},
                      BoundedRequest{"OneFieldMore", with_fields(257), 431},
                      BoundedRequest{"TwentyThousandFields", with_fields(20'000), 431},
                      BoundedRequest{"LongLine", get("/" + std::string(kHeadMax - 27, 'x')), 200},
                      BoundedRequest{"LineOneByteOver", get("/" + std::string(kHeadMax - 15, 'x')), 414},
                      BoundedRequest{"EndlessLine", "GET /" + std::string(100'000, 'x'), 414}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(RequestBounds, BoundsWhatChunksCostBesidesTheirBytes) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string extended = "1;" + std::string(1000, 'e') + "\r\nx\r\n";
  const auto chunks = [&](int count) {
    std::string text = head;
    for (int i = 0; i < count; ++i) text += extended;
    return text + "0\r\n\r\n";
  };
  ServerRoom room;
  TestClient modest(room.port);
  modest.send(chunks(10));
  EXPECT_EQ(modest.answer().status, 200);
  TestClient wasteful(room.port);
  wasteful.send(chunks(100));
  EXPECT_EQ(wasteful.answer().status, 400);
  TestClient trailing(room.port);
  trailing.send(head + "0\r\nT: " + std::string(100'000, 't') + "\r\n\r\n");
  EXPECT_EQ(trailing.answer().status, 400);
  TestClient small(room.port);  // a byte in each chunk, as some clients send
  std::string bytes = head;
  for (int i = 0; i < 50'000; ++i) bytes += "1\r\nx\r\n";
  small.send(bytes + "0\r\n\r\n");
  EXPECT_EQ(small.answer().status, 200);
}

INSTANTIATE_TEST_SUITE_P(
    RequestBounds, MalformedRequest,
    ::testing::Values(
        std::pair{"NoHttp", std::string("\x16\x03\x01 this is no request\r\n\r\n")},
        std::pair{"Http2Preface", std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")},
        std::pair{"NoHost", std::string("GET / HTTP/1.1\r\n\r\n")},
        std::pair{"TwoHosts", std::string("GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n")},
        std::pair{"NoNameInHost", std::string("GET / HTTP/1.1\r\nHost: x y/z\r\n\r\n")},
        std::pair{"RelativeTarget", std::string("GET nodes HTTP/1.1\r\nHost: x\r\n\r\n")},
        std::pair{"BlankInHeaderName", std::string("GET / HTTP/1.1\r\nHost: x\r\nBad Name: y\r\n\r\n")},
        std::pair{"TwoLengths",
                  std::string("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")},
        std::pair{"NegativeLength", std::string("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n")},
        std::pair{
            "LengthAndChunked",
            std::string(
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
        std::pair{"UnknownCoding",
                  std::string("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")},
        std::pair{"BadChunkSize",
                  std::string("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n")},
        std::pair{"EndlessChunkLine",
                  "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(100'000, 'x')}),
    [](const auto& row) { return std::string(row.param.first); });

}  // namespace
}  // namespace spillway::wire
