// The API server's connections to servers in pods: data are forwarded as they arrive, cut answers are reported, no
// credentials are sent.
#include "wire/transport/pod_gateway.h"

#include "api/json/json.h"
#include "wire/server/http_exchange.h"
#include "wire/temp_folder.h"
#include "wire/tls/certificate_authority.h"
#include "wire/transport_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;

/// A sink that records the received bytes and the end.
class KeepingSink final : public api::PacedSink {
 public:
  void on_response(api::Response response) override {
    head = std::move(response);
    ended.put("whole");
  }

  void on_stream(api::Response response) override { head = std::move(response); }

  bool write(std::shared_ptr<const std::string> chunk) override {
    body += *chunk;
    return true;
  }

  void on_end() override { ended.put("end"); }

  void on_cut() override { ended.put("cut"); }

  std::size_t waiting_bytes() const override { return 0; }

  api::Response head;
  std::string body;
  Mailbox<std::string> ended;
};

/// A pod's server, and the gateway that reaches it.
struct PodRoom {
  explicit PodRoom(HttpsPodGateway::Options options = {}, HttpServer::Options serves = {}) : pod(std::move(serves)) {
    pod.run([&] { gateway = std::make_unique<HttpsPodGateway>(pod.loops.loop(), std::move(options)); });
  }

  ~PodRoom() {
    pod.run([&] { gateway.reset(); });
  }

  PodRoom(const PodRoom&) = delete;
  PodRoom& operator=(const PodRoom&) = delete;

  HttpsPodGateway::Ticket open(api::Request request, bool tls = false) {
    return pod.run([&] {
      return gateway->open({.address = "127.0.0.1", .port = pod.port, .tls = tls}, std::move(request), sink);
    });
  }

  ServerRoom pod;
  std::unique_ptr<HttpsPodGateway> gateway;
  std::shared_ptr<KeepingSink> sink = std::make_shared<KeepingSink>();
};

TEST(PodGateway, SendsTheRequestAsItIs) {
  PodRoom room;
  Mailbox<std::string> seen;
  room.pod.run([&] {
    room.pod.handler.on("/x", [&](ScriptedHandler::Seen& asked) {
      seen.put(fmt::format("{} {} {} {} {}", api::to_string(asked.request.method), asked.request.header("host"),
                           asked.request.header("authorization"), asked.request.header("content-length"),
                           asked.request.body));
      asked.sink->on_response({201, {{"X-Kind", "a"}}, "made"});
    });
  });
  api::Request request = request_of("/x", api::Method::kPut, "hello");
  request.headers.emplace_back("host", "api:6443");
  room.open(std::move(request));
  EXPECT_EQ(seen.take(), "PUT api:6443  5 hello");
  EXPECT_EQ(room.sink->ended.take(), "end");
  EXPECT_EQ(room.sink->head.status, 201);
  EXPECT_EQ(room.sink->head.header("x-kind"), "a");
  EXPECT_EQ(room.sink->body, "made");
}

// A failure is as long as it likes, and held no more than a success is.
TEST(PodGateway, StreamsFailuresToo) {
  PodRoom room;
  const std::string page(3 * 1024 * 1024, 'x');
  room.pod.run([&] {
    room.pod.handler.on("/x", [&](ScriptedHandler::Seen& asked) {
      asked.sink->on_response({500, {{"Content-Type", "text/html"}}, page});
    });
  });
  room.open(request_of("/x"));
  EXPECT_EQ(room.sink->ended.take(), "end");
  EXPECT_EQ(room.sink->head.status, 500);
  EXPECT_TRUE(room.sink->head.body.empty());
  EXPECT_EQ(room.sink->body.size(), page.size());
}

TEST(PodGateway, PassesAnswersWithoutABodyWhole) {
  for (const int status : {204, 304}) {
    PodRoom room;
    room.pod.run([&] {
      room.pod.handler.on("/x", [&](ScriptedHandler::Seen& asked) { asked.sink->on_response({status, {}, {}}); });
    });
    room.open(request_of("/x"));
    EXPECT_EQ(room.sink->ended.take(), "whole");
    EXPECT_EQ(room.sink->head.status, status);
  }
  PodRoom room;
  room.open(request_of("/x", api::Method::kHead));
  EXPECT_EQ(room.sink->ended.take(), "whole");
  EXPECT_EQ(room.sink->head.status, 200);
}

// An incomplete answer must not look like a complete one.
TEST(PodGateway, ReportsAnAnswerThatIsCut) {
  PodRoom room;
  std::shared_ptr<api::ResponseSink> answer;
  room.pod.run([&] {
    room.pod.handler.on("/x", [&](ScriptedHandler::Seen& asked) {
      answer = asked.sink;
      api::paced(*answer)->on_pieces({200, {}, {}});
      EXPECT_TRUE(answer->write(shared("half")));
    });
  });
  room.open(request_of("/x"));
  while (room.pod.run([&] { return room.sink->body; }) != "half") std::this_thread::yield();
  room.pod.run([&] {
    api::paced(*answer)->on_cut();
    answer.reset();
  });
  EXPECT_EQ(room.sink->ended.take(), "cut");
}

TEST(PodGateway, NamesWhatItCannotReach) {
  PodRoom room;
  const ClosedPort closed;
  room.pod.run([&] { room.gateway->open({"127.0.0.1", closed.number(), false}, request_of("/x"), room.sink); });
  EXPECT_EQ(room.sink->ended.take(), "whole");
  const auto status = api::parse_json(room.sink->head.body);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->string_at({"reason"}), "ServiceUnavailable");
  EXPECT_EQ(status->string_at({"message"}),
            fmt::format("error trying to reach service: http://127.0.0.1:{}: connection refused", closed.number()));
}

TEST(PodGateway, DoesNotLeadBackToItsOwnServer) {
  for (const bool tls : {false, true}) {
    PodRoom room({.tls = *HttpsPodGateway::unverified_tls()});
    room.pod.run([&] { room.gateway->set_own_port(room.pod.port); });
    room.open(request_of("/api/v1/secrets"), tls);
    EXPECT_EQ(room.sink->ended.take(), "whole");
    EXPECT_EQ(room.sink->head.status, 503);
    EXPECT_THAT(room.sink->head.body, HasSubstr("leads back to this server"));
    EXPECT_TRUE(room.pod.run([&] { return room.pod.handler.targets.empty(); }));
  }
}

TEST(PodGateway, BoundsWhatIsOpenAndForgetsWhatIsCancelled) {
  HttpsPodGateway::Options options;
  options.bounds.exchanges_max = 1;
  PodRoom room(std::move(options));
  Mailbox<bool> left;
  std::shared_ptr<api::ResponseSink> held;
  room.pod.run([&] {
    room.pod.handler.when_abandoned = [&] { left.put(true); };
    room.pod.handler.on("/held", [&](ScriptedHandler::Seen& asked) {
      held = asked.sink;
      held->on_stream({});
    });
  });
  const auto ticket = room.open(request_of("/held"));
  while (!room.pod.run([&] { return held != nullptr; })) std::this_thread::yield();
  const auto first = std::exchange(room.sink, std::make_shared<KeepingSink>());
  room.open(request_of("/x"));
  EXPECT_EQ(room.sink->ended.take(), "whole");
  EXPECT_EQ(room.sink->head.status, 429);
  room.pod.run([&] { room.gateway->cancel(ticket); });
  EXPECT_TRUE(left.take()) << "the pod is left";
  EXPECT_EQ(first.use_count(), 1) << "and so is the sink";
  room.sink = std::make_shared<KeepingSink>();
  room.open(request_of("/x"));
  EXPECT_EQ(room.sink->ended.take(), "end");
  room.pod.run([&] {
    room.gateway->cancel(ticket);
    held.reset();
  });
}

TEST(PodGateway, AcceptsAnyCertificateAndShowsNone) {
  const TempFolder folder;
  const WallTime now = runtime::Loop().now().wall;
  auto authority = CertificateAuthority::open(folder / "pki", now);
  ASSERT_TRUE(authority);
  auto identity = authority->issue({.use = CertificateRequest::Use::kServer,
                                    .common_name = "elsewhere",
                                    .organizations = {},
                                    .hosts = {"elsewhere"}},
                                   now);
  ASSERT_TRUE(identity);
  auto context = TlsContext::make_server({.identity = *identity, .client_authority_pem = authority->certificate_pem()});
  ASSERT_TRUE(context);
  HttpServer::Options serves;
  serves.tls = *context;
  PodRoom room({.tls = *HttpsPodGateway::unverified_tls()}, std::move(serves));
  room.open(request_of("/x"), true);
  EXPECT_EQ(room.sink->ended.take(), "end");
  EXPECT_EQ(room.sink->body, "GET /x  by system:anonymous");
}

}  // namespace
}  // namespace spillway::wire
