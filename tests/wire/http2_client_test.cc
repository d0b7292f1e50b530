// The HTTP client over HTTP/2: what shares a connection and what does not, how one goes for another, and servers that
// are silent, go away or are none.
#include "wire/http2_client.h"

#include "wire/transport_engine.h"
#include "wire/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <fstream>
#include <thread>

namespace spillway::wire {
namespace {

using client::CloseWatch;
using client::OpenWatch;
using client::SendCall;
using ::testing::HasSubstr;

/// Accepts connections over TLS one after the other and does with each what the test says.
class FrameServer {
 public:
  class Peer {
   public:
    explicit Peer(ByteStream& stream) : stream_(stream) {}

    void say(std::string_view frames) {
      while (!frames.empty()) {
        const ByteStream::Moved moved = stream_.write(frames);
        if (moved.step != ByteStream::Step::kDone) return;
        frames.remove_prefix(moved.bytes);
      }
    }

    /// The payload of the next frame of that type; nullopt: the client has disconnected.
    std::optional<std::string> next(FrameType type) {
      for (;;) {
        while (input_.size() >= 9) {
          const std::size_t size = static_cast<unsigned char>(input_[0]) << 16 |
                                   static_cast<unsigned char>(input_[1]) << 8 | static_cast<unsigned char>(input_[2]);
          if (input_.size() < 9 + size) break;
          const std::string frame = input_.substr(0, 9 + size);
          input_.erase(0, 9 + size);
          if (frame[3] == static_cast<char>(type)) return frame.substr(9);
        }
        if (!read()) return std::nullopt;
      }
    }

    /// Reads until the client's preface has arrived.
    bool greet() {
      while (input_.size() < 24)
        if (!read()) return false;
      input_.erase(0, 24);
      say(frame_of(FrameType::kSettings, 0, 0, ""));
      return true;
    }

    void wait_for_end() {
      while (read()) {
      }
    }

   private:
    bool read() {
      std::array<char, 4096> buffer{};
      for (;;) {
        const ByteStream::Moved moved = stream_.read(buffer);
        if (moved.step == ByteStream::Step::kDone) {
          input_.append(buffer.data(), moved.bytes);
          return true;
        }
        if (moved.step != ByteStream::Step::kWaitRead) return false;
        pollfd waiting{stream_.socket().fd(), POLLIN, 0};
        if (::poll(&waiting, 1, kPatienceMs) != 1) return false;
      }
    }

    ByteStream& stream_;
    std::string input_;
  };

  using Manner = std::function<void(Peer&)>;

  FrameServer(const Trust& trust, std::vector<Manner> manners) : listener_(*listen_on("127.0.0.1", 0)) {
    port = local_port(listener_);
    thread_ = std::thread([this, tls = trust.server, manners = std::move(manners)] {
      for (const Manner& manner : manners) serve_one(*tls, manner);
    });
  }

  ~FrameServer() { thread_.join(); }

  FrameServer(const FrameServer&) = delete;
  FrameServer& operator=(const FrameServer&) = delete;

  std::uint16_t port = 0;

 private:
  void serve_one(const TlsContext& tls, const Manner& manner) {
    pollfd waiting{listener_.fd(), POLLIN, 0};
    ::poll(&waiting, 1, kPatienceMs);
    auto socket = accept_from(listener_);
    if (!socket || !*socket) return;
    const auto stream = tls.accept_stream(**std::move(socket));
    for (;;) {
      const ByteStream::Step step = stream->handshake();
      if (step == ByteStream::Step::kDone) break;
      if (step != ByteStream::Step::kWaitRead) return;
      pollfd quiet{stream->socket().fd(), POLLIN, 0};
      if (::poll(&quiet, 1, kPatienceMs) != 1) return;
    }
    Peer peer(*stream);
    if (peer.greet()) manner(peer);
  }

  Socket listener_;
  std::thread thread_;
};

const std::string kOkHead = "\x88";

std::string ok_answer(std::uint32_t stream) {
  return frame_of(FrameType::kHeaders, kEndHeaders, stream, kOkHead) +
         frame_of(FrameType::kData, kEndStream, stream, "ok");
}

std::string goaway(std::uint32_t last) {
  return frame_of(FrameType::kGoAway, 0, 0, big_endian(last) + big_endian(0));
}

class ClientOfHttp2 : public ::testing::Test {
 protected:
  static const Trust& trust() {
    static const Trust made;
    return made;
  }

  static HttpEndpoint reach(std::uint16_t port) {
    HttpEndpoint endpoint = endpoint_at(port);
    endpoint.tls = trust().client;
    return endpoint;
  }

  HttpServer::Options counted() {
    HttpServer::Options options = trust().serving();
    options.metrics = &metrics_;
    return options;
  }

  /// True as soon as this number of connections is open at the server.
  bool open_connections(ServerRoom& room, int count) {
    const std::string line = fmt::format("spillway_http_connections {}\n", count);
    const Instant end = runtime::RealClock::read_mono() + milliseconds(kPatienceMs);
    while (!room.run([&] { return metrics_.text().contains(line); })) {
      if (runtime::RealClock::read_mono() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  telemetry::Registry metrics_;
};

/// Keeps the events of an exchange, on the loop.
class Ear final : public HttpClient::Listener {
 public:
  void on_head(const api::Response& response) override {
    head = response;
    if (when_head) when_head();
  }

  void on_data(std::string data) override { body += data; }

  void on_done(std::optional<Error> error) override { done.put(error ? error->text() : ""); }

  api::Response head;
  std::string body;
  std::function<void()> when_head;
  Mailbox<std::string> done;
};

TEST_F(ClientOfHttp2, APausedStreamHoldsUpNoOther) {
  ServerRoom room(counted());
  constexpr std::size_t kBlocks = 400;
  const auto block = shared(std::string(64 * 1024, 'x'));  // 25 MiB: more than the connection's window
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      seen.sink->on_stream({});
      for (std::size_t i = 0; i < kBlocks; ++i) EXPECT_TRUE(seen.sink->write(block));
      seen.sink->on_end();
    });
  });
  LoopRoom loops;
  std::optional<HttpClient> client;
  const auto watch = std::make_shared<Ear>();
  watch->when_head = [&] { client->pause(1); };
  loops.run([&] {
    client.emplace(loops.loop(), reach(room.port), HttpClient::Limits{.connect_max = support::kPatience});
    client->start(1, request_of("/watch"), HttpClient::Kind::kStream, support::kPatience, watch);
  });
  for (std::uint64_t id = 2; id < 20; ++id) {
    const auto call = std::make_shared<Ear>();
    loops.run([&] { client->start(id, request_of("/x"), HttpClient::Kind::kCall, support::kPatience, call); });
    EXPECT_EQ(call->done.take(), "");
    EXPECT_EQ(loops.run([&] { return call->body; }), "GET /x  by system:anonymous");
  }
  EXPECT_EQ(loops.run([&] { return watch->head.status; }), 200);
  EXPECT_EQ(loops.run([&] { return watch->body.size(); }), 0U);
  EXPECT_TRUE(open_connections(room, 1));
  loops.run([&] { client->resume(1); });
  EXPECT_EQ(watch->done.take(), "");
  EXPECT_EQ(loops.run([&] { return watch->body.size(); }), kBlocks * block->size());
  loops.run([&] { client.reset(); });
}

TEST_F(ClientOfHttp2, HeartbeatsHaveAConnectionOfTheirOwn) {
  ServerRoom room(counted());
  Engine engine(room.loops, {.endpoint = reach(room.port)});
  EXPECT_TRUE(engine.call(request_of("/api/v1/pods")));
  EXPECT_TRUE(open_connections(room, 1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(engine.call(request_of("/api/v1/nodes/n1/status?timeout=60s", api::Method::kPatch, "{}")));
    EXPECT_TRUE(engine.call(request_of("/api/v1/pods")));
    EXPECT_TRUE(open_connections(room, 2));
  }
}

TEST_F(ClientOfHttp2, WatchesShareAConnectionUpToAHundred) {
  ServerRoom room(counted());
  std::vector<std::shared_ptr<api::ResponseSink>> sinks;
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      sinks.push_back(seen.sink);
      seen.sink->on_stream({});
      EXPECT_TRUE(seen.sink->write(shared("{}\n")));
    });
  });
  Engine engine(room.loops, {.endpoint = reach(room.port)});
  for (client::CallId id = 1; id <= 100; ++id) engine.execute(OpenWatch{id, request_of("/watch")});
  engine.wait(100);
  EXPECT_TRUE(open_connections(room, 1));
  for (client::CallId id = 101; id <= 150; ++id) engine.execute(OpenWatch{id, request_of("/watch")});
  engine.wait(150);
  EXPECT_TRUE(open_connections(room, 2));
  room.run([&] { sinks.clear(); });
}

TEST_F(ClientOfHttp2, ANewCertificateGetsANewConnectionAndTheOldOneDrains) {
  HttpServer::Options options = counted();
  options.authenticator = std::make_shared<const Authenticator>(Authenticator::Options{});
  ServerRoom room(std::move(options));
  std::shared_ptr<api::ResponseSink> sink;
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      sink = seen.sink;
      sink->on_stream({});
      EXPECT_TRUE(sink->write(shared("{}\n")));
    });
  });
  HttpEndpoint endpoint = reach(room.port);
  endpoint.tls = trust().client_as("first");
  Engine engine(room.loops, {.endpoint = endpoint});
  engine.execute(OpenWatch{1, request_of("/watch")});
  engine.wait(1);
  engine.use_certificate(trust().client_as("second"));
  EXPECT_EQ(engine.call(request_of("/x"))->body, "GET /x  by second");
  EXPECT_TRUE(open_connections(room, 2));
  room.run([&] { EXPECT_TRUE(sink->write(shared("{\"still\":1}\n"))); });
  engine.wait(3);
  EXPECT_EQ(engine.log.frame(2), "{\"still\":1}");
  engine.execute(CloseWatch{1});
  EXPECT_TRUE(open_connections(room, 1));
  EXPECT_EQ(engine.call(request_of("/x"))->body, "GET /x  by second");
  room.run([&] { sink.reset(); });
}

TEST_F(ClientOfHttp2, ANewTokenGetsANewConnection) {
  const TempFolder folder;
  const auto write_token = [&](const std::string& token) { std::ofstream(folder / "token") << token; };
  HttpServer::Options options = counted();
  options.authenticator = std::make_shared<const Authenticator>(Authenticator::Options{
      .tokens = {{"one", {"first", "", {"system:authenticated"}}}, {"two", {"second", "", {"system:authenticated"}}}}});
  ServerRoom room(std::move(options));
  std::shared_ptr<api::ResponseSink> sink;
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      sink = seen.sink;
      sink->on_stream({});
      EXPECT_TRUE(sink->write(shared("{}\n")));
    });
    room.handler.on("/old", [&](ScriptedHandler::Seen& seen) { seen.sink->on_response({401, {}, "", {}}); });
  });
  write_token("one");
  HttpEndpoint endpoint = reach(room.port);
  endpoint.credentials.token = *BearerToken::make("", folder / "token");
  Engine engine(room.loops, {.endpoint = endpoint});
  engine.execute(OpenWatch{1, request_of("/watch")});
  engine.wait(1);
  EXPECT_EQ(engine.call(request_of("/x"))->body, "GET /x  by first");
  EXPECT_TRUE(open_connections(room, 1));
  write_token("two");
  EXPECT_EQ(engine.call(request_of("/old"))->status, 401);  // the file is read again
  EXPECT_EQ(engine.call(request_of("/x"))->body, "GET /x  by second");
  EXPECT_TRUE(open_connections(room, 2));
  engine.execute(CloseWatch{1});
  EXPECT_TRUE(open_connections(room, 1));
  room.run([&] { sink.reset(); });
}

TEST_F(ClientOfHttp2, WhatLeavesHttpGoesOverHttp11) {
  ServerRoom room(counted());
  std::string upgrade;
  room.run([&] {
    room.handler.on("/exec", [&](ScriptedHandler::Seen& seen) {
      upgrade = seen.request.header("upgrade");  // HTTP/2 has no such field
      seen.sink->on_response({400, {}, "no", {}});
    });
  });
  LoopRoom loops;
  std::optional<HttpClient> client;
  const auto ear = std::make_shared<Ear>();
  api::Request request = request_of("/exec");
  request.headers.emplace_back("upgrade", "websocket");
  loops.run([&] {
    client.emplace(loops.loop(), reach(room.port), HttpClient::Limits{.connect_max = support::kPatience});
    client->start(1, request, HttpClient::Kind::kUpgrade, support::kPatience, ear);
  });
  EXPECT_EQ(ear->done.take(), "");
  EXPECT_EQ(room.run([&] { return upgrade; }), "websocket");
  const auto call = std::make_shared<Ear>();
  loops.run([&] { client->start(2, request, HttpClient::Kind::kCall, support::kPatience, call); });
  EXPECT_EQ(call->done.take(), "");
  EXPECT_EQ(room.run([&] { return upgrade; }), "") << "a call goes over HTTP/2 all the same";
  loops.run([&] { client.reset(); });
}

TEST_F(ClientOfHttp2, WhatTheServerHasNotTouchedIsSentAgain) {
  std::string second_body;
  const FrameServer server(trust(), {[](FrameServer::Peer& peer) {
                                       peer.next(FrameType::kHeaders);
                                       peer.say(goaway(0));
                                       peer.wait_for_end();
                                     },
                                     [&](FrameServer::Peer& peer) {
                                       peer.next(FrameType::kHeaders);
                                       second_body = peer.next(FrameType::kData).value_or("");
                                       peer.say(ok_answer(1));
                                       peer.wait_for_end();
                                     }});
  LoopRoom loops;
  Engine engine(loops, {.endpoint = reach(server.port)});
  const auto answer = engine.call(request_of("/x", api::Method::kPost, "the body"));
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->body, "ok");
  EXPECT_EQ(second_body, "the body");
}

TEST_F(ClientOfHttp2, ARefusedStreamIsTriedAFewTimes) {
  int asked = 0;
  const FrameServer server(trust(), {[&](FrameServer::Peer& peer) {
                             for (std::uint32_t stream = 1; peer.next(FrameType::kHeaders); stream += 2) {
                               ++asked;
                               peer.say(frame_of(FrameType::kReset, 0, stream, big_endian(NGHTTP2_REFUSED_STREAM)));
                             }
                           }});
  {
    LoopRoom loops;
    Engine engine(loops, {.endpoint = reach(server.port)});
    const auto answer = engine.call(request_of("/x", api::Method::kPost, "b"));
    ASSERT_FALSE(answer);
    EXPECT_THAT(answer.error().text(), HasSubstr("the stream was reset (REFUSED_STREAM)"));
  }
  EXPECT_EQ(asked, 6);
}

TEST_F(ClientOfHttp2, AWriteWhoseFateIsUnknownIsNotRepeated) {
  int asked = 0;
  const FrameServer server(trust(), {[&](FrameServer::Peer& peer) {
                             peer.next(FrameType::kHeaders);
                             peer.say(ok_answer(1));
                             // The head of a request on a kept connection, which then ends.
                             peer.next(FrameType::kHeaders);
                             ++asked;
                           }});
  LoopRoom loops;
  Engine engine(loops, {.endpoint = reach(server.port)});
  EXPECT_TRUE(engine.call(request_of("/x")));
  const auto answer = engine.call(request_of("/x", api::Method::kPost, "b"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kServiceUnavailable);
  EXPECT_THAT(answer.error().text(), ::testing::Not(HasSubstr("no connection in time")))
      << "nobody accepts another one";
  EXPECT_EQ(asked, 1);
}

TEST_F(ClientOfHttp2, AReadOnAConnectionThatHasDiedIsRepeatedOnANewOne) {
  const FrameServer server(trust(), {[](FrameServer::Peer& peer) {
                                       peer.next(FrameType::kHeaders);
                                       peer.say(ok_answer(1));
                                       peer.next(FrameType::kHeaders);
                                     },
                                     [](FrameServer::Peer& peer) {
                                       peer.next(FrameType::kHeaders);
                                       peer.say(ok_answer(1));
                                       peer.wait_for_end();
                                     }});
  LoopRoom loops;
  Engine engine(loops, {.endpoint = reach(server.port)});
  EXPECT_TRUE(engine.call(request_of("/x")));
  const auto answer = engine.call(request_of("/x"));
  EXPECT_TRUE(answer) << answer.error().text();
}

TEST_F(ClientOfHttp2, AHeartbeatWithoutAnswerGetsANewConnection) {
  std::atomic<bool> left = false;
  const FrameServer server(trust(), {[&](FrameServer::Peer& peer) {
                                       peer.next(FrameType::kHeaders);
                                       peer.say(ok_answer(1));
                                       peer.wait_for_end();  // a balancer has forgotten the connection
                                       left = true;
                                     },
                                     [](FrameServer::Peer& peer) {
                                       peer.next(FrameType::kHeaders);
                                       peer.say(ok_answer(1));
                                       peer.wait_for_end();
                                     }});
  LoopRoom loops;
  Engine engine(loops, {.endpoint = reach(server.port)});
  const auto beat = [&](const std::string& timeout) {
    return engine.call(request_of("/api/v1/nodes/n1/status?timeout=" + timeout, api::Method::kPatch, "{}"));
  };
  EXPECT_TRUE(beat("60s"));
  const auto lost = beat("50ms");
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().text(), HasSubstr("no answer within 50 ms"));
  EXPECT_TRUE(beat("60s")) << "the first connection is not used again";
  EXPECT_TRUE(left);
}

TEST_F(ClientOfHttp2, ASilentServerIsAskedAndThenLeft) {
  int pings = 0;
  const FrameServer server(trust(), {[&](FrameServer::Peer& peer) {
                                       peer.next(FrameType::kHeaders);
                                       for (; pings < 3; ++pings) {
                                         const auto ping = peer.next(FrameType::kPing);
                                         peer.say(frame_of(FrameType::kPing, 1, 0, ping.value_or("")));
                                       }
                                       peer.say(ok_answer(1));
                                       peer.wait_for_end();
                                     },
                                     [](FrameServer::Peer& peer) { peer.wait_for_end(); }});
  LoopRoom loops;
  HttpClient::Limits limits;
  limits.http2_patience = {.silence_max = milliseconds(20), .ping_answer_max = support::kPatience};
  {
    Engine engine(loops, {.endpoint = reach(server.port), .limits = limits});
    const auto answer = engine.call(request_of("/x"));
    ASSERT_TRUE(answer) << answer.error().text();
    EXPECT_EQ(pings, 3);
  }
  limits.http2_patience.ping_answer_max = milliseconds(30);
  Engine engine(loops, {.endpoint = reach(server.port), .limits = limits});
  const auto answer = engine.call(request_of("/x"));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().text(), HasSubstr("the server has not answered a ping within 30 ms"));
}

TEST_F(ClientOfHttp2, AServerThatMakesWorkIsLeft) {
  std::string pings;
  for (int i = 0; i < 1000; ++i) pings += frame_of(FrameType::kPing, 0, 0, "12345678");
  const auto says = [](std::string frames) {
    return [frames = std::move(frames)](FrameServer::Peer& peer) {
      peer.next(FrameType::kHeaders);
      peer.say(frames);
      peer.wait_for_end();
    };
  };
  const FrameServer server(trust(), {says(pings), says("HTTP/1.1 200 OK\r\n\r\nall is well with HTTP/1.1"),
                                     says(frame_of(FrameType::kData, kEndStream, 1, "no head"))});
  LoopRoom loops;
  for (const char* want : {"the server sent too many pings", "", ""}) {
    Engine engine(loops, {.endpoint = reach(server.port)});
    const auto answer = engine.call(request_of("/x"));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kServiceUnavailable);
    EXPECT_THAT(answer.error().text(), HasSubstr(want));
  }
}

}  // namespace
}  // namespace spillway::wire
