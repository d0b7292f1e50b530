// The API server's way to webhooks: verified, bounded, and without a word too many.
#include "wire/transport/webhook_caller.h"

#include "wire/temp_folder.h"
#include "wire/tls/certificate_authority.h"
#include "wire/transport_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;

WallTime present() {
  return runtime::Loop().now().wall;
}

/// A webhook's server, the authority that vouches for it, and the caller, on one loop.
struct Room {
  explicit Room(Protocols spoken, HttpsWebhookCaller::Options options = {}) {
    auto opened = CertificateAuthority::open(folder / "pki", present());
    EXPECT_TRUE(opened);
    authority_pem = opened->certificate_pem();
    auto identity = opened->issue({.use = CertificateRequest::Use::kServer,
                                   .common_name = "hook",
                                   .organizations = {},
                                   .hosts = {"127.0.0.1", "localhost", "hook.shop.svc"}},
                                  present());
    EXPECT_TRUE(identity);
    HttpServer::Options serving;
    serving.tls = *TlsContext::make_server({.identity = *identity, .client_authority_pem = {}, .protocols = spoken});
    hook = std::make_unique<ServerRoom>(std::move(serving));
    hook->run([&] { caller = std::make_unique<HttpsWebhookCaller>(hook->loops.loop(), options); });
  }

  ~Room() {
    hook->run([&] { caller.reset(); });
  }

  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  apiserver::WebhookCall call(std::string target = "/hook?timeout=10s") const {
    return {.origin = fmt::format("https://127.0.0.1:{}", hook->port),
            .target = std::move(target),
            .tls_name = {},
            .authority_pem = authority_pem,
            .body = "question",
            .timeout = support::kPatience};
  }

  Result<api::Response> ask(const apiserver::WebhookCall& call) {
    Mailbox<Result<api::Response>> answer;
    hook->run([&] {
      caller->call(++last, call, [&](Result<api::Response> response, Now) { answer.put(std::move(response)); });
    });
    return answer.take();
  }

  /// Begins a call to `path`, and waits until its request has arrived; it is not answered.
  void hang(std::uint64_t id, const std::string& path, apiserver::WebhookCaller::Done done) {
    const auto asked = std::make_shared<Mailbox<bool>>();
    hook->run([&] {
      hook->handler.on(path, [this, asked](ScriptedHandler::Seen& seen) {
        kept = seen.sink;
        asked->put(true);
      });
      caller->call(id, call(path), std::move(done));
    });
    EXPECT_TRUE(asked->take());
  }

  TempFolder folder;
  std::string authority_pem;
  std::shared_ptr<api::ResponseSink> kept;  // the sink of the question that hangs
  std::unique_ptr<ServerRoom> hook;
  std::unique_ptr<HttpsWebhookCaller> caller;
  std::uint64_t last = 0;
};

class WebhookCaller : public ::testing::TestWithParam<Protocols> {};

INSTANTIATE_TEST_SUITE_P(Protocols, WebhookCaller, ::testing::Values(Protocols::kHttp11, Protocols::kHttp2AndHttp11),
                         [](const auto& row) { return row.param == Protocols::kHttp11 ? "http11" : "h2"; });

TEST_P(WebhookCaller, AsksAndIsAnswered) {
  Room room(GetParam());
  api::Request seen;
  room.hook->run([&] {
    room.hook->handler.on("/hook", [&](ScriptedHandler::Seen& asked) {
      seen = asked.request;
      asked.sink->on_response({200, {{"Content-Type", "application/json"}}, "answer", {}});
    });
  });
  for (int i = 0; i < 3; ++i) {
    const auto answer = room.ask(room.call());
    ASSERT_TRUE(answer) << answer.error().text();
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, "answer");
  }
  EXPECT_EQ(seen.method, api::Method::kPost);
  EXPECT_EQ(seen.target, "/hook?timeout=10s");
  EXPECT_EQ(seen.body, "question");
  EXPECT_EQ(seen.header("content-type"), "application/json");
  EXPECT_EQ(seen.header("authorization"), "");
}

TEST_P(WebhookCaller, ARedirectIsAnAnswer) {
  Room room(GetParam());
  bool followed = false;
  room.hook->run([&] {
    room.hook->handler.on("/hook", [&](ScriptedHandler::Seen& asked) {
      asked.sink->on_response({307, {{"Location", "/other"}}, "", {}});
    });
    room.hook->handler.on("/other", [&](ScriptedHandler::Seen&) { followed = true; });
  });
  const auto answer = room.ask(room.call());
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->status, 307);
  EXPECT_FALSE(followed);
}

TEST_P(WebhookCaller, TrustsTheAuthorityOfTheCallAlone) {
  Room room(GetParam());
  Room other(GetParam());
  apiserver::WebhookCall call = room.call();
  call.authority_pem = other.authority_pem;
  EXPECT_THAT(room.ask(call).error().text(), HasSubstr("certificate not trusted"));
  call.authority_pem.clear();
  EXPECT_THAT(room.ask(call).error().text(), HasSubstr("certificate"));
  call = room.call();
  call.tls_name = "hook.shop.svc";
  EXPECT_TRUE(room.ask(call));
  call.tls_name = "other.shop.svc";
  EXPECT_FALSE(room.ask(call));
  call.authority_pem = "no certificate";
  EXPECT_FALSE(room.ask(call));
}

TEST_P(WebhookCaller, DoesNotLeadBackToItsOwnServer) {
  Room room(GetParam());
  room.hook->run([&] { room.caller->set_own_port(static_cast<std::uint16_t>(room.hook->port)); });
  EXPECT_THAT(room.ask(room.call()).error().text(), HasSubstr("leads back"));
}

TEST_P(WebhookCaller, AnswersAreBounded) {
  HttpsWebhookCaller::Options options;
  options.limits.body_bytes_max = 1000;
  options.answers_bytes_max = 500;
  Room room(GetParam(), options);
  std::size_t size = 0;
  room.hook->run([&] {
    room.hook->handler.on(
        "/hook", [&](ScriptedHandler::Seen& asked) { asked.sink->on_response({200, {}, std::string(size, 'x'), {}}); });
  });
  size = 400;
  EXPECT_EQ(room.ask(room.call())->body.size(), 400U);
  size = 600;
  EXPECT_THAT(room.ask(room.call()).error().text(), HasSubstr("too large together"));
  size = 2000;
  EXPECT_FALSE(room.ask(room.call()));
  size = 400;  // and nothing is left of them
  EXPECT_EQ(room.ask(room.call())->body.size(), 400U);
}

TEST_P(WebhookCaller, NothingIsReportedOfACancelledCall) {
  Room room(GetParam());
  bool answered = false;
  room.hang(7, "/hook", [&](const Result<api::Response>&, Now) { answered = true; });
  room.hook->run([&] {
    room.caller->cancel(7);
    room.hook->handler.on("/hook", [&](ScriptedHandler::Seen& seen) { seen.sink->on_response({200, {}, "", {}}); });
  });
  EXPECT_TRUE(room.ask(room.call()));
  room.hook->run([&] { room.kept.reset(); });
  EXPECT_FALSE(answered);
}

TEST_P(WebhookCaller, GoesWithCallsUnderWay) {
  Room room(GetParam());
  room.hang(7, "/hook", [](const Result<api::Response>&, Now) { ADD_FAILURE(); });
  room.hook->run([&] {
    room.caller.reset();
    room.kept.reset();
  });
}

TEST_P(WebhookCaller, PlacesAreBounded) {
  HttpsWebhookCaller::Options options;
  options.clients_max = 1;
  Room room(GetParam(), options);
  room.hang(1000, "/silent", [](const Result<api::Response>&, Now) {});
  apiserver::WebhookCall other = room.call();
  other.tls_name = "hook.shop.svc";
  EXPECT_THAT(room.ask(other).error().text(), HasSubstr("too many different webhooks"));
  room.hook->run([&] {
    room.caller->cancel(1000);
    room.kept.reset();
  });
  EXPECT_TRUE(room.ask(other));  // in the place of the one that has nothing to do
}

}  // namespace
}  // namespace spillway::wire
