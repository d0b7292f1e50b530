// Goal: the form of an audit event, for any content of the request; and the log of a request's course, in upstream's
// stages, also if it is refused, continues, or its client leaves.
#include "apiserver/audit/auditor.h"
#include "apiserver/audit/plain_line.h"
#include "apiserver/kinds/kind_rows.h"
#include "apiserver/request/exchange.h"
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver {
namespace {

constexpr WallTime kReceived{microseconds(1'767'225'600'000'001)};
constexpr WallTime kLater{microseconds(1'767'225'600'500'000)};

/// Keeps the lines; answers those who wait for them when the test says so.
class KeptLog final : public AuditLog {
 public:
  void write(std::string line) override { lines.push_back(std::move(line)); }

  void write(std::string line, std::move_only_function<void(Outcome)> done) override {
    lines.push_back(std::move(line));
    waiting.push_back(std::move(done));
  }

  void answer(const Outcome& outcome) {
    for (auto& done : std::exchange(waiting, {})) done(outcome);
  }

  std::vector<api::Json> events() const {
    std::vector<api::Json> out;
    for (const std::string& line : lines) {
      const auto parsed = api::parse_json(line);
      EXPECT_TRUE(parsed) << line;
      if (parsed) out.push_back(*parsed);
    }
    return out;
  }

  /// "ResponseComplete create configmaps 201" per event.
  std::vector<std::string> story() const {
    std::vector<std::string> out;
    for (const api::Json& event : events()) {
      const api::Json* code = event.at({"responseStatus", "code"});
      out.push_back(fmt::format("{} {} {}{}", event.string_at({"stage"}), event.string_at({"verb"}),
                                event.string_at({"objectRef", "resource"}),
                                code == nullptr ? std::string() : fmt::format(" {}", *code->if_int64())));
    }
    return out;
  }

  std::vector<std::string> lines;
  std::vector<std::move_only_function<void(Outcome)>> waiting;
};

AuditEvent whole_event() {
  AuditEvent event;
  event.level = AuditLevel::kRequestResponse;
  event.stage = AuditStage::kResponseComplete;
  event.audit_id = "id";
  event.uri = "/api/v1/namespaces/ns/pods/p/status?a=b";
  event.verb = "update";
  event.user = {"admin", "u1", {"g1", "g2"}, {{"scopes", {"a", "b"}}}};
  event.impersonated = api::UserInfo{"bob", {}, {"system:authenticated"}};
  event.source_ips = {"192.0.2.1", "::1"};
  event.user_agent = "kubectl/v1.32";
  event.object = AuditObject{.resource = "pods",
                             .ns = "ns",
                             .name = "p",
                             .uid = "u2",
                             .group = "g",
                             .version = "v1",
                             .resource_version = "7",
                             .subresource = "status"};
  event.status = AuditStatus{.code = 409,
                             .status = "Failure",
                             .message = "no",
                             .reason = "Conflict",
                             .details = api::Json::object({{"name", "p"}})};
  event.request_object = R"({"a":1})";
  event.response_object = R"({"b":2})";
  event.received = kReceived;
  event.at = kLater;
  event.annotations = {{"b", "2"}, {"a", "1"}};
  return event;
}

TEST(AuditEventText, HasUpstreamsMembersInUpstreamsOrder) {
  EXPECT_EQ(
      audit_line(whole_event(), 1'000'000),
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"id",)"
      R"("stage":"ResponseComplete","requestURI":"/api/v1/namespaces/ns/pods/p/status?a=b","verb":"update",)"
      R"("user":{"username":"admin","uid":"u1","groups":["g1","g2"],"extra":{"scopes":["a","b"]}},)"
      R"("impersonatedUser":{"username":"bob","groups":["system:authenticated"]},"sourceIPs":["192.0.2.1","::1"],)"
      R"("userAgent":"kubectl/v1.32","objectRef":{"resource":"pods","namespace":"ns","name":"p","uid":"u2",)"
      R"("apiGroup":"g","apiVersion":"v1","resourceVersion":"7","subresource":"status"},)"
      R"("responseStatus":{"metadata":{},"status":"Failure","message":"no","reason":"Conflict",)"
      R"("details":{"name":"p"},"code":409},"requestObject":{"a":1},"responseObject":{"b":2},)"
      R"("requestReceivedTimestamp":"2026-01-01T00:00:00.000001Z","stageTimestamp":"2026-01-01T00:00:00.500000Z",)"
      R"("annotations":{"a":"1","b":"2"}})");
}

TEST(AuditEventText, OmitsWhatIsNotKnown) {
  EXPECT_EQ(
      audit_line({.audit_id = "i", .uri = "/x", .verb = "get", .user = {}, .received = kReceived, .at = kReceived},
                 1'000'000),
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"i",)"
      R"("stage":"RequestReceived","requestURI":"/x","verb":"get","user":{},)"
      R"("requestReceivedTimestamp":"2026-01-01T00:00:00.000001Z",)"
      R"("stageTimestamp":"2026-01-01T00:00:00.000001Z"})");
}

TEST(AuditEventText, IsOneLineOfTextWhateverItsContent) {
  AuditEvent event = whole_event();
  const std::string evil = "a\n{\"kind\":\"Event\"}\r\x01\x1b[2J\x7f\xff\xc3\xc2\x9b\xe2\x80\xa8\xe2\x80\xaez\"\\";
  event.uri = event.user_agent = event.verb = event.user.name = event.user.groups[0] = event.object->name =
      event.status->message = event.source_ips[0] = evil;
  event.user.extra = {{evil, {evil}}};
  event.annotations = {{evil, evil}};
  const std::string line = audit_line(event, 1'000'000).value();
  for (const char c : line) ASSERT_GE(static_cast<unsigned char>(c), 0x20) << line;
  EXPECT_EQ(line.find('\x7f'), std::string::npos);
  EXPECT_EQ(line.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(line.find("\xe2\x80\xa8"), std::string::npos);
  EXPECT_EQ(line.find("\xe2\x80\xae"), std::string::npos);
  const auto parsed = api::parse_json(line);
  ASSERT_TRUE(parsed) << line;
  EXPECT_EQ(parsed->string_at({"kind"}), "Event");
  EXPECT_EQ(parsed->string_at({"userAgent"}),
            "a\n{\"kind\":\"Event\"}\r\x01\x1b[2J\x7f\xef\xbf\xbd\xef\xbf\xbd\xc2\x9b\xe2\x80\xa8\xe2\x80\xaez\"\\");
}

TEST(AuditEventText, TextOfOtherLanguagesStays) {
  EXPECT_EQ(plain_line("\"Grüße, мир, 你好, 🎉\""), "\"Grüße, мир, 你好, 🎉\"");
  EXPECT_EQ(plain_line("\"\xf0\x9f\x8e\""), "\"\\ufffd\\ufffd\\ufffd\"");
  EXPECT_EQ(plain_line("\"\xed\xa0\x80\xc0\x80\xf4\x90\x80\x80\""),
            "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

TEST(AuditEventText, WhatHasNoBoundIsCut) {
  AuditEvent event = whole_event();
  event.request_object = event.response_object = {};
  const std::string huge(1'000'000, 'x');
  event.uri = event.user_agent = event.user.name = event.object->name = event.status->message = huge;
  event.user.groups.assign(10'000, "g");
  event.source_ips.assign(10'000, "192.0.2.1");
  event.status->details = api::Json(huge);
  const std::string line = audit_line(event, 1'000'000).value();
  EXPECT_LT(line.size(), 20'000U);
  const api::Json parsed = *api::parse_json(line);
  EXPECT_EQ(parsed.string_at({"userAgent"}), huge.substr(0, 1'024) + "...TRUNCATED");
  EXPECT_EQ(parsed.string_at({"requestURI"}), huge.substr(0, 8'192) + "...TRUNCATED");
  EXPECT_EQ(parsed.at({"user", "groups"})->if_array()->size(), 100U);
}

TEST(AuditEventText, ObjectsGoWhereItIsTooLongAndThenAllOfIt) {
  AuditEvent event = whole_event();
  event.request_object = "\"" + std::string(5'000, 'x') + "\"";
  const std::string line = audit_line(event, 4'000).value();
  EXPECT_EQ(line.find("requestObject"), std::string::npos);
  EXPECT_EQ(line.find("responseObject"), std::string::npos);
  EXPECT_EQ(api::parse_json(line)->string_at({"annotations", "audit.k8s.io/truncated"}), "true");
  EXPECT_EQ(audit_line(event, 500), std::nullopt);
}

TEST(AuditEventText, AddressesAreTheClientsWordButTheLast) {
  const auto of = [](api::HeaderList headers, std::string source) {
    return source_addresses({api::Method::kGet, "/", std::move(headers), {}, {}, std::move(source)});
  };
  using Addresses = std::vector<std::string>;
  EXPECT_EQ(of({}, "192.0.2.1"), Addresses({"192.0.2.1"}));
  EXPECT_EQ(of({}, ""), Addresses());
  EXPECT_EQ(of({{"x-forwarded-for", "198.51.100.1, evil\n, 2001:db8::1"}, {"x-real-ip", "203.0.113.9"}}, "192.0.2.1"),
            Addresses({"198.51.100.1", "2001:db8::1", "203.0.113.9", "192.0.2.1"}));
  EXPECT_EQ(of({{"x-forwarded-for", "192.0.2.1"}, {"x-real-ip", "192.0.2.1"}}, "192.0.2.1"), Addresses({"192.0.2.1"}));
}

TEST(AuditEventText, LossesAreALineOfTheirOwn) {
  const api::Json line = *api::parse_json(audit_loss_line(17, kLater));
  EXPECT_EQ(line.string_at({"kind"}), "Event");
  EXPECT_EQ(line.string_at({"annotations", "spillway.dev/audit-events-lost"}), "17");
  EXPECT_EQ(line.string_at({"responseStatus", "message"}), "17 audit events lost");
}

class AuditTrail : public ::testing::Test {
 protected:
  void keep(AuditLevel level, Auditor::Wait wait = Auditor::Wait::kNever, AuditStages omitted = {}) {
    AuditPolicy policy{.rules = {{.level = level}}, .omit_stages = omitted, .omit_managed_fields = omit_managed_fields};
    auditor.emplace(Auditor::Options{.policy = std::move(policy),
                                     .log = &log,
                                     .clock = [this] { return server.now().wall; },
                                     .wait = wait,
                                     .event_bytes_max = event_bytes_max});
    server.auditor = &*auditor;
    server.restart();
  }

  using Story = std::vector<std::string>;

  static constexpr const char* kMap = R"({"metadata":{"name":"a"},"data":{"k":"v"}})";

  KeptLog log;
  std::size_t event_bytes_max = Auditor::kEventBytesMax;
  bool omit_managed_fields = true;
  std::optional<Auditor> auditor;
  TestServer server;
};

TEST_F(AuditTrail, AWriteIsRecordedTwice) {
  keep(AuditLevel::kMetadata);
  const Answer made = server.post(kMaps, kMap);
  EXPECT_EQ(log.story(), Story({"RequestReceived create configmaps", "ResponseComplete create configmaps 201"}));
  const api::Json last = log.events().back();
  EXPECT_EQ(made.headers.front(), (std::pair<std::string, std::string>("Audit-Id", last.string_at({"auditID"}))));
  EXPECT_EQ(last.string_at({"user", "username"}), "admin");
  EXPECT_EQ(last.string_at({"objectRef", "name"}), "a");
  EXPECT_EQ(last.string_at({"objectRef", "uid"}), made.string_at({"metadata", "uid"}));
  EXPECT_EQ(last.string_at({"annotations", "authorization.k8s.io/decision"}), "allow");
  EXPECT_EQ(last.find("requestObject"), nullptr);
  EXPECT_EQ(last.find("responseObject"), nullptr);
}

/// The pod of a binding is named in its body or in its path; the path takes precedence.
TEST_F(AuditTrail, ABindingIsRecordedWithItsPod) {
  keep(AuditLevel::kMetadata);
  const std::string in = "/api/v1/namespaces/default/";
  const std::string pod = R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"a","image":"x"}]}})";
  const std::string binding = R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}})";
  ASSERT_EQ(server.post(in + "pods", pod).code, 201);
  log.lines.clear();
  ASSERT_EQ(server.post(in + "bindings", binding).code, 201);
  EXPECT_EQ(log.events().back().string_at({"objectRef", "resource"}), "bindings");
  EXPECT_EQ(log.events().back().string_at({"objectRef", "name"}), "p");
  log.lines.clear();
  server.post(in + "pods/other/binding", binding);
  EXPECT_EQ(log.events().back().string_at({"objectRef", "name"}), "other");
}

TEST_F(AuditTrail, LevelsSayWhichObjectsAreRecorded) {
  keep(AuditLevel::kRequest);
  server.post(kMaps, kMap);
  EXPECT_EQ(log.events()[0].find("requestObject"), nullptr) << "it is not read yet";
  EXPECT_EQ(log.events()[1].string_at({"requestObject", "data", "k"}), "v");
  EXPECT_EQ(log.events()[1].find("responseObject"), nullptr);
  log.lines.clear();
  keep(AuditLevel::kRequestResponse);
  server.get(kMaps + "/a");
  EXPECT_EQ(log.events()[1].find("requestObject"), nullptr);
  EXPECT_EQ(log.events()[1].string_at({"responseObject", "data", "k"}), "v");
  EXPECT_EQ(log.events()[1].at({"responseObject", "metadata", "managedFields"}), nullptr) << "it is to be left out";
  log.lines.clear();
  server.get(kMaps + "/a?pretty=1", "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(log.events()[1].string_at({"responseObject", "data", "k"}), "v");
  log.lines.clear();
  server.get(kMaps);
  EXPECT_EQ(log.events()[1].string_at({"responseObject", "kind"}), "ConfigMapList");
  EXPECT_EQ(log.lines[1].find("managedFields"), std::string::npos);
  EXPECT_EQ(log.lines[1].find("truncated"), std::string::npos);
  log.lines.clear();
  server.get(kMaps, "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(log.events()[1].string_at({"annotations", "audit.k8s.io/truncated"}), "true") << "it is not read";
}

TEST_F(AuditTrail, AnObjectThatIsTooLongIsNotRecorded) {
  event_bytes_max = 2'000;
  keep(AuditLevel::kRequestResponse);
  server.post(kMaps, R"({"metadata":{"name":"a"},"data":{"k":")" + std::string(5'000, 'x') + "\"}}");
  EXPECT_EQ(log.events()[1].string_at({"annotations", "audit.k8s.io/truncated"}), "true");
  EXPECT_LT(log.lines[1].size(), 2'000U);
}

TEST_F(AuditTrail, ADenialIsRecordedWithTheReasonAndWithoutTheBody) {
  keep(AuditLevel::kRequest);
  server.user = {"eve", {}, {"system:authenticated"}};
  EXPECT_EQ(server.post(kMaps, kMap).code, 403);
  EXPECT_EQ(log.story().back(), "ResponseComplete create configmaps 403");
  const api::Json last = log.events().back();
  EXPECT_EQ(last.string_at({"annotations", "authorization.k8s.io/decision"}), "forbid");
  EXPECT_EQ(last.string_at({"responseStatus", "reason"}), "Forbidden");
  EXPECT_EQ(last.find("requestObject"), nullptr);
}

TEST_F(AuditTrail, UsersThatImpersonateOthersAreNamed) {
  keep(AuditLevel::kMetadata);
  server.user = {"bob", {}, {"system:authenticated"}};
  server.user.impersonator = std::make_shared<const api::UserInfo>(kAdmin);
  server.get(kMaps);
  EXPECT_EQ(log.events().back().string_at({"user", "username"}), "admin");
  EXPECT_EQ(log.events().back().string_at({"impersonatedUser", "username"}), "bob");
}

TEST_F(AuditTrail, AMalformedRequestIsRecordedAsItArrived) {
  keep(AuditLevel::kMetadata);
  EXPECT_EQ(server.call(api::Method::kPost, "/api/v1/pods/%zz").code, 400);
  EXPECT_EQ(log.story(), Story({"RequestReceived post ", "ResponseComplete post  400"}));
  EXPECT_EQ(log.events()[0].string_at({"requestURI"}), "/api/v1/pods/%zz");
}

TEST_F(AuditTrail, AWatchIsRecordedAtItsBeginningAndItsEnd) {
  keep(AuditLevel::kMetadata);
  const auto sink = server.watch(kMaps + "?watch=1&timeoutSeconds=5");
  EXPECT_EQ(log.story(), Story({"RequestReceived watch configmaps", "ResponseStarted watch configmaps 200"}));
  server.advance(seconds(6));
  EXPECT_TRUE(sink->ended);
  EXPECT_EQ(log.story().back(), "ResponseComplete watch configmaps 200");
  EXPECT_EQ(log.lines.size(), 3U);
}

TEST_F(AuditTrail, AWatchThatTheClientClosesIsComplete) {
  keep(AuditLevel::kMetadata);
  server.watch(kMaps + "?watch=1");
  server.server().abandon(server.last_id);
  EXPECT_EQ(log.story().back(), "ResponseComplete watch configmaps 200");
}

TEST_F(AuditTrail, ARefusedWatchBeginsAndEnds) {
  keep(AuditLevel::kMetadata);
  server.user = {"eve", {}, {"system:authenticated"}};
  server.watch(kMaps + "?watch=1");
  EXPECT_EQ(log.story(), Story({"RequestReceived watch configmaps", "ResponseStarted watch configmaps 403",
                                "ResponseComplete watch configmaps 403"}));
}

TEST_F(AuditTrail, AWriteWhoseClientDisconnectsIsRecordedWithItsResult) {
  keep(AuditLevel::kMetadata);
  server.begin(api::Method::kPost, kMaps, kMap);
  server.server().abandon(server.last_id);
  EXPECT_EQ(log.lines.size(), 1U) << "nobody knows yet";
  server.run_until_idle();
  EXPECT_EQ(log.story().back(), "ResponseComplete create configmaps 201") << "it was made all the same";
  EXPECT_EQ(server.get(kMaps + "/a").code, 200);
}

TEST_F(AuditTrail, ARequestWithoutAnAnswerHasNoCode) {
  keep(AuditLevel::kMetadata, Auditor::Wait::kWritten);
  server.begin(api::Method::kPost, kMaps, kMap);
  server.server().abandon(server.last_id);
  EXPECT_EQ(log.story().back(), "ResponseComplete create configmaps");
  EXPECT_EQ(log.events().back().string_at({"responseStatus", "message"}), "Connection closed early");
  log.answer({});
  server.run_until_idle();
  EXPECT_EQ(log.lines.size(), 2U);
}

TEST_F(AuditTrail, ARequestWaitsUntilItIsInTheLog) {
  keep(AuditLevel::kMetadata, Auditor::Wait::kKept);
  const auto sink = server.send(api::Method::kPost, kMaps, kMap);
  EXPECT_FALSE(sink->answered());
  EXPECT_EQ(log.story(), Story({"RequestReceived create configmaps"}));
  log.answer({});
  server.run_until_idle();
  ASSERT_TRUE(sink->answered());
  EXPECT_EQ(sink->response->status, 201);
}

TEST_F(AuditTrail, WhereTheLogMustBeKeptNothingIsDoneWithoutIt) {
  keep(AuditLevel::kMetadata, Auditor::Wait::kKept);
  const auto sink = server.send(api::Method::kPost, kMaps, kMap);
  log.answer(make_error(ErrorCode::kServiceUnavailable, "No space left on device"));
  server.run_until_idle();
  ASSERT_TRUE(sink->answered());
  EXPECT_EQ(sink->response->status, 500);
  EXPECT_NE(sink->response->body.find("failed to store audit event"), std::string::npos);
  const auto read = server.send(api::Method::kGet, kMaps + "/a");
  log.answer({});
  EXPECT_EQ(read->response->status, 404) << "it was made";
}

TEST_F(AuditTrail, WhereItNeedNotBeKeptItIsDoneAllTheSame) {
  keep(AuditLevel::kMetadata, Auditor::Wait::kWritten);
  const auto sink = server.send(api::Method::kPost, kMaps, kMap);
  EXPECT_FALSE(sink->answered());
  log.answer(make_error(ErrorCode::kServiceUnavailable, "No space left on device"));
  server.run_until_idle();
  EXPECT_EQ(sink->response->status, 201);
}

TEST_F(AuditTrail, ALogThatHangsIsNotWaitedForForever) {
  keep(AuditLevel::kMetadata, Auditor::Wait::kKept);
  const auto sink = server.send(api::Method::kPost, kMaps, kMap);
  server.advance(seconds(61));
  ASSERT_TRUE(sink->answered());
  EXPECT_EQ(sink->response->status, 504);
  log.answer({});
  server.run_until_idle();
  const auto read = server.send(api::Method::kGet, kMaps + "/a");
  log.answer({});
  EXPECT_EQ(read->response->status, 404) << "it was made after its answer";
}

TEST_F(AuditTrail, OwnersOfFieldsAreRecordedUnlessThePolicyOmitsThem) {
  omit_managed_fields = false;
  keep(AuditLevel::kRequestResponse);
  server.post(kMaps, kMap);
  EXPECT_NE(log.events()[1].at({"responseObject", "metadata", "managedFields"}), nullptr);
  log.lines.clear();
  const Answer list = server.get(kMaps);
  EXPECT_EQ(*log.events()[1].find("responseObject"), list.body);
}

std::shared_ptr<const ReadRequest> read_of_maps() {
  static const ResourceRegistry registry(kinds::kind_rows());
  return std::make_shared<const ReadRequest>(read_request(registry.table(), {api::Method::kGet, kMaps, {}, {}}));
}

TEST_F(AuditTrail, AnAnswerThatANodeMadeIsNoPartOfTheEvent) {
  omit_managed_fields = false;
  keep(AuditLevel::kRequestResponse);
  for (const char* body : {R"({"x":1},"user":{"username":"forged"},"y":{"z":1})", "{\"a\":1}\n{\"kind\":\"forged\"}",
                           R"({"auditID":"forged")"}) {
    log.lines.clear();
    Exchange exchange(1, {api::Method::kGet, kMaps, {}, {}}, std::make_shared<const api::UserInfo>(kAdmin),
                      read_of_maps(), std::make_shared<TestSink>(), "id", {});
    exchange.observe(auditor->begin(exchange));
    exchange.answer(200, std::string(body), "application/json");
    ASSERT_EQ(log.lines.size(), 1U);
    EXPECT_EQ(log.lines[0].find("forged"), std::string::npos) << log.lines[0];
    EXPECT_EQ(log.events()[0].string_at({"user", "username"}), "admin");
  }
}

TEST_F(AuditTrail, RecordsThatOutliveTheLogWriteNothing) {
  keep(AuditLevel::kMetadata);
  auto sink = std::make_shared<TestSink>();
  Exchange exchange(1, {api::Method::kGet, kMaps, {}, {}}, std::make_shared<const api::UserInfo>(kAdmin),
                    read_of_maps(), sink, "id", {});
  auto record = auditor->begin(exchange);
  record->on_stream(101);
  EXPECT_EQ(log.lines.size(), 1U);
  server.auditor = nullptr;
  server.restart();
  auditor.reset();
  record.reset();
  EXPECT_EQ(log.lines.size(), 1U);
}

TEST_F(AuditTrail, OmittedStagesAreNotRecorded) {
  AuditStages omitted;
  omitted.add(AuditStage::kRequestReceived);
  keep(AuditLevel::kMetadata, Auditor::Wait::kKept, omitted);
  EXPECT_EQ(server.post(kMaps, kMap).code, 201) << "nothing has to be kept before";
  EXPECT_EQ(log.story(), Story({"ResponseComplete create configmaps 201"}));
}

TEST_F(AuditTrail, WhatIsRefusedAtTheDoorIsOneEvent) {
  keep(AuditLevel::kMetadata);
  const api::Request request{api::Method::kPost, kMaps, {{"user-agent", "x"}}, {}, {}, "192.0.2.1"};
  auditor->refused(request, nullptr, "id1", 401, "Authentication failed, attempted: bearer");
  auditor->refused(request, &kAdmin, "id2", 429, "too many requests");
  EXPECT_EQ(log.story(), Story({"ResponseStarted create configmaps 401", "ResponseComplete create configmaps 429"}));
  EXPECT_EQ(log.events()[0].at({"user"})->if_object()->size(), 0U);
  EXPECT_EQ(log.events()[1].string_at({"user", "username"}), "admin");
  EXPECT_EQ((*log.events()[1].find("sourceIPs")->if_array())[0], api::Json("192.0.2.1"));
}

}  // namespace
}  // namespace spillway::apiserver
