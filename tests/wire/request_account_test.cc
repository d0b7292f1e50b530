// The bytes of requests that a server holds: given back however a request ends. A leak in any of these ways would, in
// time, refuse all clients.
#include "wire/server/http_server.h"
#include "wire/wire_fixture.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace spillway::wire {
namespace {

constexpr std::size_t kBody = std::size_t{30} * 1024;
constexpr std::size_t kBound = std::size_t{40} * 1024;  // one body fits, two do not

std::string head(std::string_view target, std::size_t bytes, std::string_view headers = {}) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nContent-Length: {}\r\n{}\r\n",
                     target, bytes, headers);
}

using Sinks = std::vector<std::shared_ptr<api::ResponseSink>>;

struct Way {
  const char* name;
  /// Begins a request on a new connection and ends it in this way. `held`: of requests to /hold, on the loop.
  void (*take)(ServerRoom& room, Sinks& held);
  Duration body_max = seconds(60);
};

std::string name_of(const ::testing::TestParamInfo<Way>& way) {
  return way.param.name;
}

class RequestAccount : public ::testing::TestWithParam<Way> {
 protected:
  RequestAccount() : room_(options()) {
    room_.run([&] {
      room_.handler.on("/hold", [this](ScriptedHandler::Seen& seen) { held_.push_back(seen.sink); });
      room_.handler.on("/stream", [](ScriptedHandler::Seen& seen) {
        seen.sink->on_stream({});
        EXPECT_TRUE(seen.sink->write(shared("event\n")));
        seen.sink->on_end();
      });
      room_.handler.on("/drop", [](ScriptedHandler::Seen&) {});
    });
  }

  ~RequestAccount() override {
    room_.run([&] { held_.clear(); });
  }

  static HttpServer::Options options() {
    HttpServer::Options options;
    options.authenticator = std::make_shared<Authenticator>(
        Authenticator::Options{.tokens = {{"alice", {"alice", "", {"system:authenticated"}}}}});
    options.limits.ordinary_request_bytes_max = kBound;
    options.limits.request.body_bytes_max = std::size_t{64} * 1024;
    options.limits.body_max = GetParam().body_max;
    return options;
  }

  /// True once the server takes a body that fits only if no other bytes are held.
  bool takes_a_body_again() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    for (;;) {
      TestClient client(room_.port);
      client.send(head("/", kBody));
      client.send(std::string(kBody, 'x'));
      if (client.answer().status == 200) return true;
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
  }

  Sinks held_;  // loop
  ServerRoom room_;
};

TEST_P(RequestAccount, IsEvenAfterwards) {
  for (int i = 0; i < 3; ++i) {
    GetParam().take(room_, held_);
    ASSERT_TRUE(takes_a_body_again()) << "after " << i + 1 << " times";
  }
}

/// The connection stays open, and its bytes are released.
void answered_and_kept(ServerRoom& room, Sinks&) {
  TestClient kept(room.port);
  for (int i = 0; i < 2; ++i) {
    kept.send(head("/", kBody) + std::string(kBody, 'x'));
    EXPECT_EQ(kept.answer().status, 200);
    // The refusal comes while a body is being read: all but its last byte must have been read.
    TestClient other(room.port);
    other.send(head("/", kBody, "Expect: 100-continue\r\n"));
    EXPECT_TRUE(other.receive_until("100 Continue"));
    other.send(std::string(kBody - 1, 'x'));
    for (int turn = 0; turn < 3; ++turn) {
      TestClient passer_by(room.port);
      passer_by.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      EXPECT_GT(passer_by.answer().status, 0);
    }
    other.send("x");
    EXPECT_EQ(other.answer().status, 200) << "beside a connection whose request is answered";
  }
}

void left_in_the_head(ServerRoom& room, Sinks&) {
  TestClient client(room.port);
  client.send("POST / HTTP/1.1\r\nHost: x\r\nX-Long: " + std::string(kBody, 'x'));
}

void left_in_the_body(ServerRoom& room, Sinks&) {
  TestClient client(room.port);
  client.send(head("/", kBody + 1, "Expect: 100-continue\r\n"));
  EXPECT_TRUE(client.receive_until("100 Continue"));
  client.send(std::string(kBody, 'x'));
}

void left_in_a_chunk(ServerRoom& room, Sinks&) {
  TestClient client(room.port);
  client.send(
      "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nTransfer-Encoding: chunked\r\n\r\n8000\r\n");
  client.send(std::string(kBody, 'x'));
}

void left_before_the_answer(ServerRoom& room, Sinks& held) {
  {
    TestClient client(room.port);
    client.send(head("/hold", kBody) + std::string(kBody, 'x'));
    while (room.run([&] { return held.empty(); })) std::this_thread::yield();
  }
  room.run([&] {
    for (const auto& sink : std::exchange(held, {})) sink->on_response({200, {}, std::string(100'000, 'y')});
  });
}

void too_slow_in_the_body(ServerRoom& room, Sinks&) {
  TestClient client(room.port);
  client.send(head("/", kBody + 1) + std::string(kBody, 'x'));
  EXPECT_FALSE(client.receive()) << "closed by the server";
}

void malformed_after_a_chunk(ServerRoom& room, Sinks&) {
  TestClient client(room.port);
  client.send(
      "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nTransfer-Encoding: chunked\r\n\r\n7000\r\n" +
      std::string(0x7000, 'x') + "\r\nno number\r\n");
  EXPECT_EQ(client.answer().status, 400);
}

void too_large(ServerRoom& room, Sinks&) {
  TestClient client(room.port);
  client.send(head("/", std::size_t{100} * 1024) + std::string(kBody, 'x'));
  EXPECT_EQ(client.answer().status, 413);
}

void unknown_token(ServerRoom& room, Sinks&) {
  TestClient client(room.port);
  client.send(fmt::format("POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer nobody\r\nContent-Length: {}\r\n\r\n",
                          kBody + 1));
  client.send(std::string(kBody, 'x'));
  EXPECT_EQ(client.answer().status, 401);
}

void no_room(ServerRoom& room, Sinks&) {
  TestClient first(room.port);
  first.send(head("/", kBody + 1, "Expect: 100-continue\r\n"));
  EXPECT_TRUE(first.receive_until("100 Continue"));
  first.send(std::string(kBody, 'x'));
  TestClient second(room.port);
  second.send(head("/", kBody) + std::string(kBody, 'x'));
  second.answer();  // 429, or 200 if the first has not been read yet
}

void pipelined_and_left(ServerRoom& room, Sinks& held) {
  {
    TestClient client(room.port);
    client.send(head("/hold", 10) + std::string(10, 'x') + head("/", kBody) + std::string(kBody, 'x'));
    while (room.run([&] { return held.empty(); })) std::this_thread::yield();
  }
  room.run([&] {
    for (const auto& sink : std::exchange(held, {})) sink->on_response({200, {}, "late"});
  });
}

void a_stream(ServerRoom& room, Sinks&) {
  TestClient client(room.port);
  client.send(head("/stream", kBody) + std::string(kBody, 'x'));
  EXPECT_EQ(client.answer().body, "event\n");
}

void handler_without_answer(ServerRoom& room, Sinks&) {
  TestClient client(room.port);
  client.send(head("/drop", kBody) + std::string(kBody, 'x'));
  EXPECT_EQ(client.answer().status, 500);
}

INSTANTIATE_TEST_SUITE_P(Ways, RequestAccount,
                         ::testing::Values(Way{"AnsweredAndKept", answered_and_kept},
                                           Way{"LeftInTheHead", left_in_the_head},
                                           Way{"LeftInTheBody", left_in_the_body}, Way{"LeftInAChunk", left_in_a_chunk},
                                           Way{"LeftBeforeTheAnswer", left_before_the_answer},
                                           Way{"TooSlowInTheBody", too_slow_in_the_body, milliseconds(50)},
                                           Way{"MalformedAfterAChunk", malformed_after_a_chunk},
                                           Way{"TooLarge", too_large}, Way{"UnknownToken", unknown_token},
                                           Way{"NoRoom", no_room}, Way{"PipelinedAndLeft", pipelined_and_left},
                                           Way{"AStream", a_stream},
                                           Way{"HandlerWithoutAnswer", handler_without_answer}),
                         name_of);

}  // namespace
}  // namespace spillway::wire
