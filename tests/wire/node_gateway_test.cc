// The API server's way to an agent: answers streamed on, failures as Status, nothing left behind by a client that goes.
#include "wire/transport/node_gateway.h"

#include "api/json/json.h"
#include "wire/server/http_exchange.h"
#include "wire/temp_folder.h"
#include "wire/tls/certificate_authority.h"
#include "wire/transport_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;

/// A sink that remembers, and refuses on demand.
class MemorySink final : public api::PacedSink {
 public:
  void on_response(api::Response response) override {
    head = std::move(response);
    ended.put(true);
  }

  void on_stream(api::Response response) override { head = std::move(response); }

  bool write(std::shared_ptr<const std::string> chunk) override {
    if (refuse) return false;
    body += *chunk;
    return true;
  }

  void on_end() override { ended.put(true); }

  std::size_t waiting_bytes() const override { return waiting; }

  api::Response head;
  std::string body;
  bool refuse = false;
  std::size_t waiting = 0;
  Mailbox<bool> ended;
};

/// A node's server and the gateway that reaches it, both on one loop.
struct Room {
  explicit Room(HttpsNodeGateway::Options options = {}) {
    node.run([&] { gateway = std::make_unique<HttpsNodeGateway>(node.loops.loop(), std::move(options)); });
  }

  ~Room() {
    node.run([&] { gateway.reset(); });
  }

  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  void open(const std::string& target, int port) {
    node.run([&] { gateway->open("n1", "127.0.0.1", port, request_of(target), sink); });
  }

  ServerRoom node;
  std::unique_ptr<HttpsNodeGateway> gateway;
  std::shared_ptr<MemorySink> sink = std::make_shared<MemorySink>();
};

TEST(NodeGateway, PassesAnAnswerOn) {
  Room room;
  room.open("/containerLogs/shop/cart/app?follow=true", room.node.port);
  ASSERT_TRUE(room.sink->ended.take());
  EXPECT_EQ(room.sink->head.status, 200);
  EXPECT_EQ(room.sink->head.header("content-type"), "text/plain");
  EXPECT_EQ(room.sink->body, "GET /containerLogs/shop/cart/app?follow=true  by system:anonymous");
}

TEST(NodeGateway, StreamsAsItArrives) {
  Room room;
  std::shared_ptr<api::ResponseSink> log;
  Mailbox<bool> first;
  room.node.run([&] {
    room.node.handler.on("/log", [&](ScriptedHandler::Seen& seen) {
      log = seen.sink;
      log->on_stream({});
      EXPECT_TRUE(log->write(shared("line 1\n")));
    });
  });
  room.open("/log", room.node.port);
  while (room.node.run([&] { return room.sink->body; }) != "line 1\n") std::this_thread::yield();
  room.node.run([&] {
    EXPECT_TRUE(log->write(shared("line 2\n")));
    log->on_end();
    log.reset();
  });
  ASSERT_TRUE(room.sink->ended.take());
  EXPECT_EQ(room.sink->body, "line 1\nline 2\n");
}

TEST(NodeGateway, PassesAFailureOfTheNodeOn) {
  Room room;
  room.node.run([&] {
    room.node.handler.on("/log", [](ScriptedHandler::Seen& seen) {
      seen.sink->on_response({404, {{"Content-Type", "text/plain"}}, "container not found"});
    });
  });
  room.open("/log", room.node.port);
  ASSERT_TRUE(room.sink->ended.take());
  EXPECT_EQ(room.sink->head.status, 404);
  EXPECT_EQ(room.sink->head.body, "container not found");
}

TEST(NodeGateway, NamesTheNodeItCannotReach) {
  Room room;
  const ClosedPort closed;
  room.open("/log", closed.number());
  ASSERT_TRUE(room.sink->ended.take());
  EXPECT_EQ(room.sink->head.status, 503);
  const auto status = api::parse_json(room.sink->head.body);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->string_at({"message"}),
            fmt::format("cannot reach node \"n1\": http://127.0.0.1:{}: connection refused", closed.number()));
}

TEST(NodeGateway, RefusesANodeWithoutPort) {
  Room room;
  room.open("/log", 0);
  ASSERT_TRUE(room.sink->ended.take());
  EXPECT_EQ(room.sink->head.status, 503);
  EXPECT_THAT(room.sink->head.body, HasSubstr("serves no port"));
}

TEST(NodeGateway, ReleasesTheNodeWhenItsClientHasGone) {
  Room room;
  Mailbox<bool> left;
  std::shared_ptr<api::ResponseSink> log;
  room.node.run([&] {
    room.node.handler.when_abandoned = [&] { left.put(true); };
    room.node.handler.on("/log", [&](ScriptedHandler::Seen& seen) {
      log = seen.sink;
      log->on_stream({});
      EXPECT_TRUE(log->write(shared("line\n")));
    });
    room.sink->refuse = true;
  });
  room.open("/log", room.node.port);
  EXPECT_TRUE(left.take());
  EXPECT_TRUE(room.sink->ended.take());
  room.node.run([&] { log.reset(); });
}

TEST(NodeGateway, SlowsTheNodeDownToItsClient) {
  Room room;
  constexpr std::size_t kBlocks = 40;
  const auto block = shared(std::string(1024 * 1024, 'x'));
  room.node.run([&] {
    room.node.handler.on("/log", [&](ScriptedHandler::Seen& seen) {
      seen.sink->on_stream({});
      for (std::size_t i = 0; i < kBlocks; ++i) EXPECT_TRUE(seen.sink->write(block));
      seen.sink->on_end();
    });
    room.sink->waiting = 100 * 1024 * 1024;  // the client takes nothing
  });
  room.open("/log", room.node.port);
  // The next bytes fit into the transit and the sockets between; then nothing moves.
  while (room.node.run([&] { return room.sink->body.size(); }) < 256 * 1024) std::this_thread::yield();
  const std::size_t held_up = room.node.run([&] { return room.sink->body.size(); });
  EXPECT_LT(held_up, kBlocks * 1024 * 1024 / 2);
  room.node.run([&] { room.sink->waiting = 0; });
  ASSERT_TRUE(room.sink->ended.take());
  EXPECT_EQ(room.sink->body.size(), kBlocks * 1024 * 1024);
}

TEST(NodeGateway, BoundsWhatIsOpen) {
  HttpsNodeGateway::Options options;
  options.bounds.exchanges_max = 1;
  Room room(std::move(options));
  std::shared_ptr<api::ResponseSink> log;
  room.node.run([&] {
    room.node.handler.on("/log", [&](ScriptedHandler::Seen& seen) {
      log = seen.sink;
      log->on_stream({});
    });
  });
  room.open("/log", room.node.port);
  const auto second = std::make_shared<MemorySink>();
  room.node.run([&] { room.gateway->open("n1", "127.0.0.1", room.node.port, request_of("/log"), second); });
  ASSERT_TRUE(second->ended.take());
  EXPECT_EQ(second->head.status, 429);
  while (!room.node.run([&] { return log != nullptr; })) std::this_thread::yield();
  room.node.run([&] {
    room.gateway.reset();  // with an answer still open
    log.reset();
  });
}

WallTime present() {
  return runtime::Loop().now().wall;
}

/// A server behind TLS, with a certificate of that authority for that user.
std::unique_ptr<ServerRoom> serving(const CertificateAuthority& authority, const std::string& name,
                                    const std::string& group) {
  CertificateRequest request{.use = CertificateRequest::Use::kServer,
                             .common_name = name,
                             .organizations = {},
                             .hosts = {"127.0.0.1", "localhost"}};
  if (!group.empty()) request.organizations.push_back(group);
  auto identity = authority.issue(request, present());
  EXPECT_TRUE(identity);
  auto context = TlsContext::make_server({.identity = *identity, .client_authority_pem = {}});
  EXPECT_TRUE(context);
  HttpServer::Options options;
  options.tls = *context;
  return std::make_unique<ServerRoom>(std::move(options));
}

HttpsNodeGateway::Options verifying(const CertificateAuthority& authority) {
  auto context = TlsContext::make_client({.authority_pem = authority.certificate_pem(), .identity = {}});
  EXPECT_TRUE(context);
  return {.tls = *context, .agents = HttpsNodeGateway::Options::Agents::kVerified};
}

// A node says itself where it lives; the server at that address must prove that it is that node.
TEST(NodeGateway, TalksOnlyToTheNodeThatIsMeant) {
  const TempFolder folder;
  auto authority = CertificateAuthority::open(folder / "pki", present());
  auto other = CertificateAuthority::open(folder / "other", present());
  ASSERT_TRUE(authority && other);

  struct Row {
    const CertificateAuthority& signer;
    const char* name;
    const char* group;
    int code;
    const char* words;
  };

  const Row rows[] = {
      {*authority, "system:node:n1", "system:nodes", 200, ""},
      {*authority, "system:node:n2", "system:nodes", 503, "belongs to \\\"system:node:n2\\\""},
      {*authority, "system:node:n1", "system:masters", 503, "expected \\\"system:node:n1\\\" of \\\"system:nodes\\\""},
      {*authority, "kube-apiserver", "", 503, "belongs to \\\"kube-apiserver\\\""},
      {*other, "system:node:n1", "system:nodes", 503, "certificate not trusted"},
  };
  for (const Row& row : rows) {
    const std::unique_ptr<ServerRoom> agent = serving(row.signer, row.name, row.group);
    Room room(verifying(*authority));
    room.open("/containerLogs/shop/cart/app", agent->port);
    ASSERT_TRUE(room.sink->ended.take());
    EXPECT_EQ(room.sink->head.status, row.code) << row.name;
    EXPECT_THAT(room.sink->head.body, HasSubstr(row.words)) << row.name;
  }
}

TEST(NodeGateway, DoesNotLeadBackToItsOwnServer) {
  Room elsewhere;
  HttpsNodeGateway::Options options;
  options.own_port = static_cast<std::uint16_t>(elsewhere.node.port);
  for (const char* host : {"127.0.0.1", "localhost", "0.0.0.0", "::ffff:127.0.0.1"}) {
    Room room(options);
    room.node.run(
        [&] { room.gateway->open("n1", host, elsewhere.node.port, request_of("/api/v1/secrets"), room.sink); });
    ASSERT_TRUE(room.sink->ended.take());
    EXPECT_EQ(room.sink->head.status, 503) << host;
    EXPECT_THAT(room.sink->head.body, HasSubstr("leads back")) << host;
  }
}

}  // namespace
}  // namespace spillway::wire
