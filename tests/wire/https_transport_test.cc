// Calls and watches over sockets, against our server and against servers that misbehave.
#include "wire/transport/https_transport.h"

#include "wire/temp_folder.h"
#include "wire/tls/certificate_authority.h"
#include "wire/transport_engine.h"
#include "wire/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <set>
#include <thread>

namespace spillway::wire {
namespace {

using client::CloseWatch;
using client::OpenWatch;
using client::SendCall;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Accepts connections one after the other, and handles each as the test says.
class RudeServer {
 public:
  using Manner = std::function<void(ByteStream& connection, std::string request)>;

  explicit RudeServer(std::vector<Manner> manners) {
    auto listener = listen_on("127.0.0.1", 0);
    EXPECT_TRUE(listener);
    listener_ = *std::move(listener);
    port = local_port(listener_);
    thread_ = std::thread([this, manners = std::move(manners)] {
      for (const Manner& manner : manners) serve_one(manner);
    });
  }

  ~RudeServer() { thread_.join(); }

  RudeServer(const RudeServer&) = delete;
  RudeServer& operator=(const RudeServer&) = delete;

  std::uint16_t port = 0;

 private:
  static void wait(int fd) {
    pollfd waiting{fd, POLLIN, 0};
    ::poll(&waiting, 1, kPatienceMs);
  }

  void serve_one(const Manner& manner) {
    wait(listener_.fd());
    auto socket = accept_from(listener_);
    if (!socket || !*socket) return;
    const auto stream = make_plain_stream(**std::move(socket));
    std::string request;
    std::array<char, 4096> buffer{};
    while (request.find("\r\n\r\n") == std::string::npos) {
      wait(stream->socket().fd());
      const ByteStream::Moved moved = stream->read(buffer);
      if (moved.step == ByteStream::Step::kEnd || moved.step == ByteStream::Step::kFailed) return;
      request.append(buffer.data(), moved.bytes);
    }
    manner(*stream, request);
  }

  Socket listener_;
  std::thread thread_;
};

RudeServer::Manner says(std::string text) {
  return [text = std::move(text)](ByteStream& connection, const std::string&) { connection.write(text); };
}

/// Holds the connection until the client closes it.
void wait_for_end(ByteStream& connection) {
  std::array<char, 256> buffer{};
  for (;;) {
    pollfd waiting{connection.socket().fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, kPatienceMs), 1) << "the client did not close";
    const ByteStream::Step step = connection.read(buffer).step;
    if (step == ByteStream::Step::kEnd || step == ByteStream::Step::kFailed) return;
  }
}

/// True as soon as this number of connections is open at the server.
bool has_connections(telemetry::Registry& metrics, int count) {
  const std::string line = fmt::format("spillway_http_connections {}\n", count);
  const Instant end = runtime::RealClock::read_mono() + support::kPatience;
  while (!metrics.text().contains(line)) {
    if (runtime::RealClock::read_mono() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

using HttpsTransportOver = OverEach;

INSTANTIATE_TEST_SUITE_P(Protocols, HttpsTransportOver, over_each(), over_name);

TEST_P(HttpsTransportOver, CarriesCalls) {
  ServerRoom room(serving());
  HttpEndpoint endpoint = reach(room.port);
  endpoint.path_prefix = "/k8s";
  Engine engine(room.loops, {.endpoint = endpoint});
  const auto response = engine.call(request_of("/x?y=1", api::Method::kPatch, "{}"));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "PATCH /k8s/x?y=1 {} by system:anonymous");
  EXPECT_EQ(response->header("Content-Type"), "text/plain");
}

TEST_P(HttpsTransportOver, MakesTheTextOfADocument) {
  ServerRoom room(serving());
  Engine engine(room.loops, {.endpoint = reach(room.port)});
  api::Request request = request_of("/x", api::Method::kPut);
  request.document = std::make_shared<const api::Json>(api::Json::object({{"a", 1}}));
  const auto response = engine.call(std::move(request));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body, "PUT /x {\"a\":1} by system:anonymous");
}

TEST_P(HttpsTransportOver, AnHttpErrorIsAnAnswer) {
  ServerRoom room(serving());
  room.run([&] {
    room.handler.on("/none", [](ScriptedHandler::Seen& seen) {
      seen.sink->on_response(status_response(make_error(ErrorCode::kNotFound, "pods \"x\" not found")));
    });
  });
  Engine engine(room.loops, {.endpoint = reach(room.port)});
  const auto response = engine.call(request_of("/none"));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 404);
}

TEST_P(HttpsTransportOver, ManyCallsShareFewConnections) {
  telemetry::Registry metrics;
  HttpServer::Options options = serving();
  options.metrics = &metrics;
  ServerRoom room(std::move(options));
  HttpsTransport::Options limits{.endpoint = reach(room.port)};
  limits.limits.connections_max = 3;
  Engine engine(room.loops, limits);
  constexpr std::size_t kCalls = 200;
  for (std::size_t i = 0; i < kCalls; ++i) {
    engine.execute(SendCall{i + 1, request_of(fmt::format("/{}", i), api::Method::kPut, "b")});
  }
  engine.wait(kCalls);
  std::set<client::CallId> answered;
  for (std::size_t i = 0; i < kCalls; ++i) {
    const client::CallDone& done = engine.log.done(i);
    ASSERT_TRUE(done.response) << done.response.error().text();
    EXPECT_EQ(done.response->body, fmt::format("PUT /{} b by system:anonymous", done.id - 1));
    answered.insert(done.id);
  }
  EXPECT_EQ(answered.size(), kCalls);
  const auto connections = [](int count) { return HasSubstr(fmt::format("spillway_http_connections {}\n", count)); };
  // Over HTTP/2 a second one if the first hundred calls had no answer when the others came.
  if (multiplexes())
    EXPECT_THAT(metrics.text(), AnyOf(connections(1), connections(2)));
  else
    EXPECT_TRUE(has_connections(metrics, 3)) << metrics.text();  // the server may not have accepted the last one yet
}

TEST_P(HttpsTransportOver, FramesWatches) {
  ServerRoom room(serving());
  std::shared_ptr<api::ResponseSink> sink;
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      sink = seen.sink;
      sink->on_stream({});
      EXPECT_TRUE(sink->write(shared("{\"a\":1}\n{\"b\"")));
    });
  });
  Engine engine(room.loops, {.endpoint = reach(room.port)});
  engine.execute(OpenWatch{1, request_of("/watch?watch=1&timeout=1ms")});
  engine.wait(1);
  room.run([&] {
    EXPECT_TRUE(sink->write(shared(":2}\n")));
    sink->on_end();
    sink.reset();
  });
  engine.wait(3);
  EXPECT_EQ(engine.log.frame(0), "{\"a\":1}");
  EXPECT_EQ(engine.log.frame(1), "{\"b\":2}");
  EXPECT_FALSE(engine.log.ended(2).error);
}

TEST_P(HttpsTransportOver, ARefusedWatchEndsWithTheReason) {
  ServerRoom room(serving());
  room.run([&] {
    room.handler.on("/old", [](ScriptedHandler::Seen& seen) {
      seen.sink->on_response(status_response(make_error(ErrorCode::kExpired, "too old resource version")));
    });
  });
  Engine engine(room.loops, {.endpoint = reach(room.port)});
  engine.execute(OpenWatch{1, request_of("/old")});
  engine.wait(1);
  ASSERT_TRUE(engine.log.ended(0).error);
  EXPECT_EQ(engine.log.ended(0).error->code, ErrorCode::kExpired);
  EXPECT_EQ(engine.log.ended(0).error->message, "too old resource version");
}

TEST_P(HttpsTransportOver, AClosedWatchIsClosedAtTheServer) {
  ServerRoom room(serving());
  Mailbox<bool> left;
  std::shared_ptr<api::ResponseSink> sink;
  room.run([&] {
    room.handler.when_abandoned = [&] { left.put(true); };
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      sink = seen.sink;
      sink->on_stream({});
      EXPECT_TRUE(sink->write(shared("{}\n")));
    });
  });
  Engine engine(room.loops, {.endpoint = reach(room.port)});
  engine.execute(OpenWatch{1, request_of("/watch")});
  engine.wait(1);
  engine.execute(CloseWatch{1});
  EXPECT_TRUE(left.take());
  room.run([&] { sink.reset(); });
  EXPECT_EQ(room.run([&] { return engine.log.events.size(); }), 1U);
}

TEST_P(HttpsTransportOver, DisconnectForgetsCallsAndWatches) {
  ServerRoom room(serving());
  Mailbox<bool> asked;
  Mailbox<bool> left;
  std::shared_ptr<api::ResponseSink> sink;
  room.run([&] {
    room.handler.when_abandoned = [&] { left.put(true); };
    room.handler.on("/hold", [&](ScriptedHandler::Seen& seen) {
      sink = seen.sink;
      sink->on_stream({});
      asked.put(true);
    });
  });
  Engine engine(room.loops, {.endpoint = reach(room.port)});
  engine.execute(SendCall{1, request_of("/hold")});
  EXPECT_TRUE(asked.take());
  engine.disconnect();
  EXPECT_TRUE(left.take());
  room.run([&] { sink.reset(); });
  EXPECT_TRUE(room.run([&] { return engine.log.events.empty(); }));
}

TEST_P(HttpsTransportOver, DoesNotReadOnWhatTheLoopDoesNotTake) {
  ServerRoom room(serving());
  LoopRoom busy;  // the engine's loop, apart from the server's
  HttpsTransport::Options options{.endpoint = reach(room.port)};
  const std::string event(64 * 1024 - 1, 'x');
  constexpr std::size_t kEvents = 600;  // 37 MiB: more than the transport queues
  room.run([&] {
    room.handler.on("/watch", [&](ScriptedHandler::Seen& seen) {
      seen.sink->on_stream({});
      for (std::size_t i = 0; i < kEvents; ++i) EXPECT_TRUE(seen.sink->write(shared(event + "\n")));
      seen.sink->on_end();
    });
  });
  Engine engine(busy, options);
  engine.execute(OpenWatch{1, request_of("/watch")});
  engine.wait(kEvents + 1);
  for (std::size_t i = 0; i < kEvents; ++i) ASSERT_EQ(engine.log.frame(i).size(), event.size());
  EXPECT_FALSE(engine.log.ended(kEvents).error);
}

TEST(HttpsTransport, NamesTheServerThatIsNotThere) {
  const ClosedPort closed;
  LoopRoom loops;
  Engine engine(loops, {.endpoint = endpoint_at(closed.number())});
  const auto call = engine.call(request_of("/x"));
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().code, ErrorCode::kServiceUnavailable);
  EXPECT_EQ(call.error().text(), fmt::format("http://127.0.0.1:{}: connection refused", closed.number()));
  engine.execute(OpenWatch{1, request_of("/w")});
  engine.wait(2);
  EXPECT_EQ(engine.log.ended(1).error->code, ErrorCode::kServiceUnavailable);
}

TEST_P(HttpsTransportOver, ResolvesNames) {
  ServerRoom room(serving());
  HttpEndpoint endpoint = reach(room.port);
  endpoint.host = "localhost";
  Engine engine(room.loops, {.endpoint = endpoint});
  const auto found = engine.call(request_of("/x"));
  EXPECT_TRUE(found) << found.error().text();
  endpoint.host = "no such host";
  Engine lost(room.loops, {.endpoint = endpoint});
  const auto missing = lost.call(request_of("/x"));
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text(), HasSubstr("cannot resolve \"no such host\""));
}

TEST(HttpsTransport, GivesUpOnAServerThatDoesNotAnswer) {
  const RudeServer server({[](ByteStream& connection, const std::string&) { wait_for_end(connection); },
                           [](ByteStream& connection, const std::string&) { wait_for_end(connection); },
                           [](ByteStream& connection, const std::string&) { wait_for_end(connection); }});
  LoopRoom loops;
  Engine engine(loops, {.endpoint = endpoint_at(server.port), .answer_max = milliseconds(50)});
  const auto late = engine.call(request_of("/x"));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().text(), fmt::format("http://127.0.0.1:{}: no answer within 50 ms", server.port));
  EXPECT_THAT(engine.call(request_of("/x?timeout=20ms")).error().text(), HasSubstr("no answer within 20 ms"));
  engine.execute(OpenWatch{1, request_of("/w")});
  engine.wait(3);
  EXPECT_THAT(engine.log.ended(2).error->text(), HasSubstr("no answer within 50 ms"));
}

TEST(HttpsTransport, RepeatsAReadOnAConnectionThatWasClosedMeanwhile) {
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  const RudeServer server({[&](ByteStream& connection, const std::string&) {
                             connection.write(answer);
                             std::array<char, 1024> buffer{};
                             pollfd waiting{connection.socket().fd(), POLLIN, 0};
                             ::poll(&waiting, 1, kPatienceMs);
                             connection.read(buffer);  // the second request; closed without an answer
                           },
                           says(answer)});
  LoopRoom loops;
  Engine engine(loops, {.endpoint = endpoint_at(server.port)});
  EXPECT_TRUE(engine.call(request_of("/1")));
  const auto second = engine.call(request_of("/2"));
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(second->body, "ok");
}

TEST(HttpsTransport, DoesNotRepeatAWrite) {
  const RudeServer server({[&](ByteStream& connection, const std::string&) {
    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    std::array<char, 1024> buffer{};
    pollfd waiting{connection.socket().fd(), POLLIN, 0};
    ::poll(&waiting, 1, kPatienceMs);
    connection.read(buffer);
  }});
  LoopRoom loops;
  Engine engine(loops, {.endpoint = endpoint_at(server.port)});
  EXPECT_TRUE(engine.call(request_of("/1")));
  const auto second = engine.call(request_of("/2", api::Method::kPost, "x"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kServiceUnavailable);
}

TEST(HttpsTransport, RefusesAnswersThatAreNone) {
  const std::pair<const char*, const char*> rows[] = {
      {"SSH-2.0-OpenSSH\r\n\r\n", "malformed HTTP answer"},
      {"", "connection closed before an answer arrived"},
      {"HTTP/1.1 200 OK\r\nContent-Le", "connection closed in the middle of an answer"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "connection closed in the middle of an answer"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "malformed HTTP answer"},
  };
  for (const auto& [text, want] : rows) {
    const RudeServer server({says(text)});
    LoopRoom loops;
    Engine engine(loops, {.endpoint = endpoint_at(server.port)});
    const auto call = engine.call(request_of("/x"));
    ASSERT_FALSE(call) << text;
    EXPECT_THAT(call.error().text(), HasSubstr(want)) << text;
  }
}

TEST(HttpsTransport, AWatchThatIsCutOffEndsWithAnError) {
  const RudeServer server({says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n2\r\n{\"")});
  LoopRoom loops;
  Engine engine(loops, {.endpoint = endpoint_at(server.port)});
  engine.execute(OpenWatch{1, request_of("/w")});
  engine.wait(2);
  EXPECT_EQ(engine.log.frame(0), "{}");
  ASSERT_TRUE(engine.log.ended(1).error);
  EXPECT_EQ(engine.log.ended(1).error->code, ErrorCode::kServiceUnavailable);
}

TEST(HttpsTransport, BodyWithoutLengthEndsWithTheConnection) {
  const RudeServer server({says("HTTP/1.1 200 OK\r\n\r\nuntil the end")});
  LoopRoom loops;
  Engine engine(loops, {.endpoint = endpoint_at(server.port)});
  const auto call = engine.call(request_of("/x"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->body, "until the end");
}

TEST(HttpsTransport, SkipsInterimAnswers) {
  const RudeServer server(
      {says("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok")});
  LoopRoom loops;
  Engine engine(loops, {.endpoint = endpoint_at(server.port)});
  const auto call = engine.call(request_of("/x"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->status, 201);
  EXPECT_EQ(call->body, "ok");
}

TEST(HttpsTransport, SpeaksTlsWithTheCertificatesOfAKubeconfig) {
  const TempFolder folder;
  const WallTime now = runtime::Loop().now().wall;
  const auto authority = *CertificateAuthority::open(folder / "pki", now);
  const auto server = *authority.issue({CertificateRequest::Use::kServer, "apiserver", {}, {"127.0.0.1"}}, now);
  const auto admin = *authority.issue({CertificateRequest::Use::kClient, "admin", {"system:masters"}, {}}, now);
  HttpServer::Options options;
  options.tls = *TlsContext::make_server({server, authority.certificate_pem()});
  options.authenticator = std::make_shared<const Authenticator>(Authenticator::Options{});
  ServerRoom room(std::move(options));

  Kubeconfig config;
  config.server = fmt::format("https://127.0.0.1:{}", room.port);
  config.authority_pem = authority.certificate_pem();
  config.certificate_pem = admin.certificate_pem;
  config.key_pem = admin.key_pem;
  ASSERT_TRUE(write_kubeconfig(folder / "config", config, "spillway"));
  const auto read = read_kubeconfig(folder / "config");
  ASSERT_TRUE(read) << read.error().text();
  const auto endpoint = make_endpoint(*read, folder / "config");
  ASSERT_TRUE(endpoint) << endpoint.error().text();
  Engine engine(room.loops, {.endpoint = *endpoint});
  for (int i = 0; i < 3; ++i) {
    const auto call = engine.call(request_of("/x"));
    ASSERT_TRUE(call) << call.error().text();
    EXPECT_EQ(call->body, "GET /x  by admin");
  }

  const TempFolder elsewhere;
  config.authority_pem = CertificateAuthority::open(elsewhere / "pki", now)->certificate_pem();
  Engine wary(room.loops, {.endpoint = *make_endpoint(config, "k")});
  const auto refused = wary.call(request_of("/x"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), StartsWith(config.server + ": TLS: certificate not trusted: "));
}

TEST(HttpsTransport, ShowsTheCertificateItWasGivenLast) {
  const TempFolder folder;
  const WallTime now = runtime::Loop().now().wall;
  const auto authority = *CertificateAuthority::open(folder / "pki", now);
  HttpServer::Options options;
  options.tls = *TlsContext::make_server(
      {*authority.issue({CertificateRequest::Use::kServer, "apiserver", {}, {"127.0.0.1"}}, now),
       authority.certificate_pem()});
  options.authenticator = std::make_shared<const Authenticator>(Authenticator::Options{});
  ServerRoom room(std::move(options));
  Kubeconfig config;
  config.server = fmt::format("https://127.0.0.1:{}", room.port);
  config.authority_pem = authority.certificate_pem();
  const auto as = [&](const char* name) {
    const auto pair = *authority.issue({CertificateRequest::Use::kClient, name, {}, {}}, now);
    config.certificate_pem = pair.certificate_pem;
    config.key_pem = pair.key_pem;
    return *make_endpoint(config, "k");
  };
  Engine engine(room.loops, {.endpoint = as("first")});
  EXPECT_EQ(engine.call(request_of("/x"))->body, "GET /x  by first");
  engine.use_certificate(as("second").tls);
  EXPECT_EQ(engine.call(request_of("/x"))->body, "GET /x  by second");
}

}  // namespace
}  // namespace spillway::wire
