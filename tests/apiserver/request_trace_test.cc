// Sampling of requests into spans, and the content of these spans.
#include "apiserver/server_fixture.h"
#include "telemetry/tracer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace spillway::apiserver {
namespace {

using telemetry::Span;

constexpr std::string_view kAsked = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

std::string text_of(const Span& span, std::string_view name) {
  const auto found = std::ranges::find(span.attributes, name, &telemetry::Attribute::name);
  if (found == span.attributes.end()) return "-";
  const auto* text = std::get_if<std::string>(&found->value);
  return text != nullptr ? *text : std::to_string(std::get<std::int64_t>(found->value));
}

class RequestTrace : public ::testing::Test {
 protected:
  void trace(std::uint32_t ppm) {
    tracer = std::make_unique<telemetry::Tracer>(1, ppm, metrics);
    server.tracer = tracer.get();
    server.restart();
    tracer->take(telemetry::Tracer::kWaitingMax);
  }

  std::vector<Span> taken() { return tracer->take(telemetry::Tracer::kWaitingMax); }

  telemetry::Registry metrics;
  std::unique_ptr<telemetry::Tracer> tracer;
  TestServer server;
};

TEST_F(RequestTrace, SaysWhatWasAskedAndAnswered) {
  trace(1'000'000);
  server.call(api::Method::kGet, "/api/v1/namespaces/default/pods/absent?pretty=true", {},
              {{"User-Agent", "kubectl/v1"}});
  const std::vector<Span> spans = taken();
  ASSERT_EQ(spans.size(), 1);
  const Span& span = spans.front();
  EXPECT_EQ(span.name, "get pods");
  EXPECT_EQ(span.kind, telemetry::SpanKind::kServer);
  EXPECT_EQ(span.parent, 0);
  EXPECT_EQ(span.end, server.now().wall);
  EXPECT_FALSE(span.failed) << "404 is the client's";
  EXPECT_EQ(text_of(span, "http.request.method"), "GET");
  EXPECT_EQ(text_of(span, "url.path"), "/api/v1/namespaces/default/pods/absent") << "what follows may be secret";
  EXPECT_EQ(text_of(span, "http.response.status_code"), "404");
  EXPECT_EQ(text_of(span, "user_agent.original"), "kubectl/v1");
  EXPECT_EQ(text_of(span, "user.name"), "admin");
  EXPECT_EQ(text_of(span, "k8s.namespace.name"), "default");
}

TEST_F(RequestTrace, WhatAClientChoseIsCutAndText) {
  trace(1'000'000);
  server.call(api::Method::kGet, "/healthz", {}, {{"User-Agent", "\xff\xfe" + std::string(10'000, 'u')}});
  const std::vector<Span> spans = taken();
  ASSERT_EQ(spans.size(), 1);
  EXPECT_EQ(text_of(spans[0], "user_agent.original"), "??" + std::string(254, 'u'));
}

TEST_F(RequestTrace, ARequestThatIsNotDrawnLeavesNone) {
  trace(0);
  server.get("/api/v1/nodes");
  EXPECT_TRUE(taken().empty());
}

/// "name peer" for each span, in the order of their beginning; each lies within its request.
std::vector<std::string> steps_of(const std::vector<Span>& spans) {
  std::vector<std::string> steps;
  for (const Span& span : spans) {
    if (span.parent == 0) continue;
    EXPECT_EQ(span.parent, spans.front().id);
    EXPECT_EQ(span.trace, spans.front().trace);
    EXPECT_EQ(span.kind, telemetry::SpanKind::kClient);
    EXPECT_GE(span.begin, spans.front().begin);
    EXPECT_LE(span.end, spans.front().end);
    EXPECT_LE(span.begin, span.end);
    const std::string whom = span.attributes.size() == 1 ? std::get<std::string>(span.attributes[0].value) : "?";
    steps.push_back(span.name + " " + whom + (span.failed ? " failed" : ""));
  }
  return steps;
}

TEST_F(RequestTrace, HasWhatOthersDidForIt) {
  trace(1'000'000);
  using Steps = std::vector<std::string>;
  ASSERT_EQ(server.post(kMaps, R"({"metadata":{"name":"a"}})").code, 201);
  EXPECT_EQ(steps_of(taken()), Steps{"write to store configmaps"});
  ASSERT_EQ(server.get(kMaps + "/a").code, 200);
  EXPECT_EQ(steps_of(taken()), Steps{});
  ASSERT_EQ(server.merge(kMaps + "/a", R"({"data":{"b":"c"}})").code, 200);
  EXPECT_EQ(steps_of(taken()), Steps{"write to store configmaps"});
  ASSERT_EQ(server.remove(kMaps + "/a").code, 200);
  EXPECT_EQ(steps_of(taken()), Steps{"write to store configmaps"});
  ASSERT_EQ(server
                .post("/api/v1/nodes", R"({"metadata":{"name":"n1"},"status":{
      "addresses":[{"type":"InternalIP","address":"192.0.2.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":10250}}}})")
                .code,
            201);
  taken();
  server.get("/api/v1/nodes/n1/proxy/configz");
  EXPECT_EQ(steps_of(taken()), Steps{"ask agent n1"});
}

TEST_F(RequestTrace, HasTheWebhooksThatWereAskedAndThoseThatDidNotAnswer) {
  trace(1'000'000);
  server.webhooks.answers = [](const TestWebhooks::Asked&) { return std::nullopt; };
  ASSERT_EQ(server
                .post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
                      R"({"metadata":{"name":"slow"},
        "webhooks":[{"name":"slow.example.com","clientConfig":{"url":"https://hook.example.com/"},
        "rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}],
        "sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":2,"failurePolicy":"Ignore"}]})")
                .code,
            201);
  taken();
  server.send(api::Method::kPost, kMaps, R"({"metadata":{"name":"late"}})");
  server.advance(seconds(3));
  const std::vector<Span> spans = taken();
  EXPECT_EQ(steps_of(spans),
            (std::vector<std::string>{"ask webhook slow.example.com failed", "write to store configmaps"}));
  EXPECT_EQ(spans.at(1).end - spans.at(1).begin, seconds(2));
}

TEST_F(RequestTrace, NamesSoManyStepsAndCountsTheRest) {
  trace(1'000'000);
  RequestSteps none;
  EXPECT_EQ(none.begin(RequestStep::Of::kStore, "x", Instant{}), std::nullopt) << "nothing is kept unless it is wanted";
  server.webhooks.answers = [](const TestWebhooks::Asked&) {
    return make_error(ErrorCode::kServiceUnavailable, "no answer");
  };
  std::string hooks;
  for (int i = 0; i < 20; ++i) {
    hooks += fmt::format(
        R"({}{{"name":"h{}.example.com","clientConfig":{{"url":"https://hook.example.com/"}},
        "rules":[{{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}}],
        "sideEffects":"None","admissionReviewVersions":["v1"],"failurePolicy":"Ignore"}})",
        i == 0 ? "" : ",", i);
  }
  ASSERT_EQ(server
                .post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
                      R"({"metadata":{"name":"many"},"webhooks":[)" + hooks + "]}")
                .code,
            201);
  taken();
  ASSERT_EQ(server.post(kMaps, R"({"metadata":{"name":"a"}})").code, 201);
  const std::vector<Span> spans = taken();
  EXPECT_EQ(spans.size(), 1 + RequestSteps::kStepsMax);
  EXPECT_EQ(text_of(spans[0], "spillway.steps_left_out"), "5");  // four webhooks, and the write
}

TEST_F(RequestTrace, WhoMayAskHasItInTheOwnTrace) {
  trace(0);
  server.call(api::Method::kGet, "/api/v1/nodes", {}, {{"traceparent", std::string(kAsked)}});
  server.user = {"prometheus", {}, {"system:monitoring", "system:authenticated"}};
  server.call(api::Method::kGet, "/healthz", {}, {{"traceparent", std::string(kAsked)}});
  const std::vector<Span> spans = taken();
  ASSERT_EQ(spans.size(), 2);
  for (const Span& span : spans) {
    EXPECT_EQ(to_hex(span.trace), "0af7651916cd43dd8448eb211c80319c");
    EXPECT_EQ(telemetry::to_hex(span.parent), "b7ad6b7169203331");
  }
  EXPECT_EQ(spans.back().name, "get");
}

TEST_F(RequestTrace, NoOtherUserMayReadOrJoinATrace) {
  trace(0);
  server.user = {"mallory", {}, {"system:authenticated"}};
  server.call(api::Method::kGet, "/healthz", {}, {{"traceparent", std::string(kAsked)}});
  EXPECT_TRUE(taken().empty());
  trace(1'000'000);
  server.call(api::Method::kGet, "/healthz", {}, {{"traceparent", std::string(kAsked)}});
  const std::vector<Span> spans = taken();
  ASSERT_EQ(spans.size(), 1);
  EXPECT_NE(to_hex(spans[0].trace), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(spans[0].parent, 0);
}

TEST_F(RequestTrace, AWatchIsNotSlow) {
  trace(0);
  const auto watch = server.watch("/api/v1/nodes?watch=1&timeoutSeconds=5");
  server.advance(seconds(10));
  EXPECT_TRUE(watch->ended);
  EXPECT_TRUE(taken().empty());
}

TEST_F(RequestTrace, ASlowRequestIsAlwaysTraced) {
  trace(0);
  server.webhooks.answers = [](const TestWebhooks::Asked&) { return std::nullopt; };
  const Answer hook = server.post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
                                  R"({"metadata":{"name":"slow"},
        "webhooks":[{"name":"slow.example.com","clientConfig":{"url":"https://hook.example.com/"},
        "rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}],
        "sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":2,"failurePolicy":"Ignore"}]})");
  ASSERT_EQ(hook.code, 201) << hook.text;
  EXPECT_TRUE(taken().empty());
  const auto waits = server.send(api::Method::kPost, kMaps, R"({"metadata":{"name":"late"}})");
  server.advance(seconds(3));
  EXPECT_TRUE(waits->answered());
  const std::vector<Span> spans = taken();
  ASSERT_EQ(spans.size(), 3);
  EXPECT_EQ(spans[0].name, "create configmaps");
  EXPECT_GE(spans[0].end - spans[0].begin, seconds(2));
}

}  // namespace
}  // namespace spillway::apiserver
