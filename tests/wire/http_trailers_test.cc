// Fields behind a chunked body: they come after authentication and routing, so they must not change these.
#include "wire/server/http_server.h"
#include "wire/wire_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HttpTrailers : public ::testing::Test {
 protected:
  HttpTrailers() : room_(options()) {
    room_.run([&] {
      room_.handler.on("/headers", [](ScriptedHandler::Seen& seen) {
        std::string text = "by " + seen.user.name + ":";
        for (const auto& [name, value] : seen.request.headers) text += fmt::format(" {}={}", name, value);
        seen.sink->on_response({200, {}, text});
      });
    });
  }

  static HttpServer::Options options() {
    HttpServer::Options options;
    options.authenticator = std::make_shared<Authenticator>(
        Authenticator::Options{.tokens = {{"alice", {"alice", "", {"system:authenticated"}}},
                                          {"root", {"root", "", {"system:masters", "system:authenticated"}}}}});
    return options;
  }

  static std::string put(std::string_view headers, std::string_view trailers) {
    return fmt::format(
        "PUT /headers HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n{}\r\n3\r\nabc\r\n0\r\n{}\r\n", headers,
        trailers);
  }

  ServerRoom room_;
};

TEST_F(HttpTrailers, DoNotAuthenticate) {
  TestClient client(room_.port);
  client.send(put("", "Authorization: Bearer root\r\n"));
  EXPECT_THAT(client.answer().body, HasSubstr("by system:anonymous:"));
  client.send(put("Authorization: Bearer alice\r\n", "Authorization: Bearer root\r\n"));
  EXPECT_THAT(client.answer().body, HasSubstr("by alice:"));
  client.send(put("Authorization: Bearer nobody\r\n", "Authorization: Bearer root\r\n"));
  EXPECT_EQ(client.answer().status, 401);
}

TEST_F(HttpTrailers, AreNotHeadersOfTheRequest) {
  TestClient client(room_.port);
  client.send(put("",
                  "Impersonate-User: root\r\nAccept-Encoding: gzip\r\nContent-Type: application/json\r\n"
                  "X-Remote-User: root\r\nHost: other\r\n"));
  const std::string seen = client.answer().body;
  for (const char* name : {"impersonate-user", "accept-encoding", "content-type", "x-remote-user", "other"}) {
    EXPECT_THAT(seen, Not(HasSubstr(name)));
  }
}

TEST_F(HttpTrailers, AreNotHeadersOfTheNextRequest) {
  TestClient client(room_.port);
  client.send(put("", "Authorization: Bearer root\r\nX-A: b\r\n"));
  client.answer();
  client.send("GET /headers HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.answer().body, "by system:anonymous: host=x");
}

/// "Expect" in a trailer has no effect, because the body was received already.
TEST_F(HttpTrailers, AskForNothing) {
  TestClient client(room_.port);
  client.send(put("", "Expect: 100-continue\r\n"));
  EXPECT_TRUE(client.receive_until("\r\n\r\n"));
  EXPECT_THAT(client.received, Not(HasSubstr("100 Continue")));
}

TEST(HttpAnswerTrailers, AreNotHeadersOfTheAnswer) {
  ResponseParser parser(api::Method::kGet);
  std::string input =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nRetry-After: 9\r\nX-A: b\r\n\r\n";
  const auto step = parser.feed(input);
  ASSERT_TRUE(step) << step.error().text();
  EXPECT_EQ(*step, ResponseParser::Step::kDone);
  EXPECT_EQ(parser.take_body(), "abc");
  EXPECT_EQ(parser.head().header("Retry-After"), "");
  EXPECT_EQ(parser.head().header("X-A"), "");
}

}  // namespace
}  // namespace spillway::wire
