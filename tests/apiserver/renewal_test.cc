// Heartbeats on the short way against the same heartbeats on the general one: whatever is asked, two servers that
// differ in nothing else answer, tell and store the same bytes.
#include "apiserver/write/renewal.h"

#include "api/json/flat_json.h"
#include "api/text/time_text.h"
#include "apiserver/server_fixture.h"
#include "base/rng.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <vector>

namespace spillway::apiserver {

namespace {

using ::testing::HasSubstr;

const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const api::HeaderList kMerge = {{"content-type", "application/merge-patch+json"}, {"user-agent", "kubelet/v1.32.0"}};
const api::HeaderList kStrategic = {{"content-type", "application/strategic-merge-patch+json"},
                                    {"user-agent", "kubelet/v1.32.0"}};

struct Asked {
  api::Method method = api::Method::kPut;
  std::string target;
  std::string body;
  api::HeaderList headers;
};

/// The members of a lease as a client would write them, in an order of its own.
class RequestMaker {
 public:
  explicit RequestMaker(Rng& rng) : rng_(rng) {}

  Asked make(const api::Json& lease, WallTime now) {
    if (rng_.below(5) == 0) return patch(lease, now);
    Asked asked{.target = target_of(lease), .headers = headers()};
    asked.body = body(lease, now);
    if (one_in(40)) asked.target += "?dryRun=All";
    if (one_in(20)) asked.target += "?fieldValidation=Strict";
    if (one_in(60)) asked.target += "?fieldValidation=Odd";
    if (one_in(30)) asked.target += "?fieldManager=somebody";
    if (one_in(60)) asked.body.pop_back();
    if (one_in(60)) asked.body += std::string(20'000, ' ');
    return asked;
  }

  std::string time(WallTime now) {
    constexpr std::array<const char*, 9> kOdd = {
        "\"2026-01-01T00:00:00Z\"",        "\"2026-01-01T00:00:00.5Z\"",      "\"2026-01-01T00:00:00.000001+01:00\"",
        "\"2026-13-01T00:00:00.000001Z\"", "\"2026-02-30T00:00:00.000001Z\"", "\"2026-01-01T00:00:00.0000010Z\"",
        "\"2026-01-01T00:00:00,000001Z\"", "\"2026-01-01t00:00:00.000001z\"", "12"};
    if (one_in(12)) return kOdd.at(rng_.below(kOdd.size()));
    if (one_in(30)) return "null";
    return "\"" + api::format_micro_time(now) + "\"";
  }

 private:
  bool one_in(std::uint64_t n) { return rng_.below(n) == 0; }

  static std::string target_of(const api::Json& lease) {
    return kLeases + "/" + std::string(lease.string_at({"metadata", "name"}));
  }

  api::HeaderList headers() {
    api::HeaderList list{{"user-agent", one_in(25) ? "other/1" : "kubelet/v1.32.0"}};
    if (one_in(30)) {
      list.emplace_back("content-type", "application/yaml");
    } else if (!one_in(4)) {
      list.emplace_back("content-type", "application/json");
    }
    return list;
  }

  std::string shuffled(std::vector<std::string> members) {
    for (std::size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[rng_.below(i)]);
    std::string out = "{";
    for (const std::string& member : members) {
      if (out.size() > 1) out += one_in(8) ? " ,\n" : ",";
      out += member;
    }
    return out + "}";
  }

  static std::string member(std::string_view name, std::string_view value) {
    return fmt::format("\"{}\":{}", name, value);
  }

  std::string metadata(const api::Json& lease) {
    std::vector<std::string> members;
    for (const auto& [key, value] : *lease.find("metadata")->if_object()) {
      const bool of_server = key == "uid" || key == "namespace" || key == "creationTimestamp" || key == "managedFields";
      if (one_in(of_server ? 4 : 60)) continue;
      std::string text = api::to_text(value);
      if (key == "creationTimestamp" && one_in(4)) text = "null";
      if ((key == "uid" || key == "namespace") && one_in(6)) text = "\"\"";
      if (key == "managedFields" && one_in(10)) text = "[]";
      if (key == "resourceVersion" && one_in(25)) text = one_in(2) ? "\"0\"" : "\"1\"";
      if (one_in(90)) text = "\"odd\"";
      members.push_back(member(key, text));
      if (one_in(120)) members.push_back(member(key, text));
    }
    if (one_in(40)) members.push_back(R"("labels":{"new":"label"})");
    if (one_in(40)) members.push_back(R"("annotations":{})");
    if (one_in(60)) members.push_back(R"("selfLink":"")");
    if (one_in(60)) members.push_back(R"("unknown":{"a":[1,2.5]})");
    return shuffled(std::move(members));
  }

  std::string spec(const api::Json& lease, WallTime now) {
    std::vector<std::string> members;
    for (const auto& [key, value] : *lease.find("spec")->if_object()) {
      if (key == "renewTime" || one_in(80)) continue;
      std::string text = api::to_text(value);
      if (one_in(80)) text = key == "leaseDurationSeconds" ? "-1" : "41";
      if (key == "holderIdentity" && one_in(60)) text = "\"h\\u00e4\"";
      members.push_back(member(key, text));
    }
    if (!one_in(60)) members.push_back(member("renewTime", time(now)));
    if (one_in(80)) members.push_back(member("renewTime", time(now)));
    if (one_in(60)) members.push_back(R"("strategy":"OldestEmulationVersion")");
    if (one_in(60)) members.push_back(R"("leaseTransitions":7)");
    return shuffled(std::move(members));
  }

  std::string body(const api::Json& lease, WallTime now) {
    std::vector<std::string> members{member("metadata", metadata(lease)), member("spec", spec(lease, now))};
    if (!one_in(6)) members.push_back(R"("kind":"Lease")");
    if (!one_in(6)) members.push_back(R"("apiVersion":"coordination.k8s.io/v1")");
    if (one_in(60)) members.push_back(R"("status":{})");
    return shuffled(std::move(members));
  }

  Asked patch(const api::Json& lease, WallTime now) {
    Asked asked{.method = api::Method::kPatch, .target = target_of(lease), .headers = one_in(2) ? kMerge : kStrategic};
    std::vector<std::string> members{
        member("spec", one_in(3) ? spec(lease, now) : "{" + member("renewTime", time(now)) + "}")};
    if (one_in(3)) members.push_back(member("metadata", metadata(lease)));
    if (one_in(20)) members.push_back(R"("metadata":{"labels":{"$patch":"delete"}})");
    asked.body = shuffled(std::move(members));
    if (one_in(40)) asked.target += "?force=true";
    return asked;
  }

  Rng& rng_;
};

/// The same requests to both.
class Renewals : public ::testing::Test {
 protected:
  Renewals() {
    general_.short_renewals = false;
    for (TestServer* server : both_) {
      server->restart();
      watches_.push_back(server->watch(kLeases + "?watch=true"));
    }
  }

  std::string both(const Asked& asked) {
    std::array<Answer, 2> answers;
    for (std::size_t i = 0; i < 2; ++i)
      answers[i] = both_[i]->call(asked.method, asked.target, asked.body, asked.headers);
    expect_same(asked, answers[0].code, answers[1].code, answers[0].text, answers[1].text);
    EXPECT_EQ(answers[0].headers, answers[1].headers) << asked.body;
    return answers[0].text;
  }

  static void expect_same(const Asked& asked, int code, int other_code, const std::string& text,
                          const std::string& other_text) {
    EXPECT_EQ(code, other_code) << asked.target << " " << asked.body;
    EXPECT_EQ(text, other_text) << asked.target << " " << asked.body;
  }

  /// Both at once, before the store has answered.
  void at_once(const std::vector<Asked>& requests) {
    std::array<std::vector<std::shared_ptr<TestSink>>, 2> sinks;
    for (std::size_t i = 0; i < 2; ++i) {
      for (const Asked& asked : requests) {
        sinks[i].push_back(both_[i]->begin(asked.method, asked.target, asked.body, asked.headers));
      }
      both_[i]->settle();
    }
    for (std::size_t n = 0; n < requests.size(); ++n) {
      ASSERT_TRUE(sinks[0][n]->answered() && sinks[1][n]->answered()) << requests[n].body;
      expect_same(requests[n], sinks[0][n]->response->status, sinks[1][n]->response->status,
                  sinks[0][n]->response->body, sinks[1][n]->response->body);
    }
  }

  /// Another writer of the same store, before the requests that follow.
  void touch_below(const std::string& name) {
    for (TestServer* server : both_) {
      api::Json lease = server->get(kLeases + "/" + name).body;
      if (lease.find("spec") == nullptr) return;
      lease.erase({"metadata", "resourceVersion"});
      lease["spec"]["leaseTransitions"] = 99;
      server->store().write(
          {"/registry/leases/default/" + name, std::make_shared<const std::string>(api::to_text(lease)), std::nullopt},
          [](const Result<store::WriteResult>& result) { EXPECT_TRUE(result && result->committed); });
    }
  }

  void advance(Duration by) {
    for (TestServer* server : both_) server->advance(by);
  }

  /// How many updates took that way on the server that has the short one.
  double count(std::string_view path) {
    const std::string text = quick_.get("/metrics").text;
    general_.get("/metrics");
    const std::string line = fmt::format("spillway_lease_updates_total{{path=\"{}\"}} ", path);
    const std::size_t at = text.find(line);
    return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + line.size(), nullptr);
  }

  void expect_same_past() {
    EXPECT_EQ(watches_[0]->text, watches_[1]->text);
    EXPECT_EQ(quick_.get(kLeases).text, general_.get(kLeases).text);
    EXPECT_EQ(quick_.store().revision(), general_.store().revision());
  }

  api::Json lease(const std::string& name) { return quick_.get(kLeases + "/" + name).body; }

  /// Of the one that can, and of the one that cannot.
  api::Json both_lease(const std::string& name) {
    general_.get(kLeases + "/" + name);
    return lease(name);
  }

  void create(const std::string& name, const std::string& metadata = "", const std::string& spec = "") {
    both({.method = api::Method::kPost,
          .target = kLeases,
          .body =
              fmt::format(R"({{"metadata":{{"name":"{}"{}}},"spec":{{"holderIdentity":"{}","leaseDurationSeconds":40,)"
                          R"("renewTime":"2026-01-01T00:00:00.000000Z"{}}}}})",
                          name, metadata, name, spec),
          .headers = {{"user-agent", "kubelet/v1.32.0"}}});
  }

  /// What a kubelet sends.
  Asked heartbeat(const api::Json& from, WallTime now) {
    api::Json body = from;
    body["spec"]["renewTime"] = api::format_micro_time(now);
    return {.target = kLeases + "/" + std::string(from.string_at({"metadata", "name"})),
            .body = api::to_text(body),
            .headers = {{"user-agent", "kubelet/v1.32.0"}}};
  }

  TestServer quick_;
  TestServer general_;
  std::array<TestServer*, 2> both_{&quick_, &general_};
  std::vector<std::shared_ptr<TestSink>> watches_;
};

TEST_F(Renewals, AHeartbeatTakesTheShortWay) {
  create("n1");
  for (int i = 0; i < 3; ++i) {
    advance(seconds(10));
    both(heartbeat(both_lease("n1"), quick_.now().wall));
  }
  EXPECT_EQ(count("spliced"), 3);
  expect_same_past();
  EXPECT_EQ(lease("n1").string_at({"spec", "renewTime"}), api::format_micro_time(quick_.now().wall));
  const api::Json managed = *lease("n1").at({"metadata", "managedFields"});
  EXPECT_EQ(managed.if_array()->front().string_at({"time"}), api::format_time(quick_.now().wall));
}

TEST_F(Renewals, TheSameTimeAgainIsNotWritten) {
  create("n1");
  advance(seconds(1));
  const Asked asked = heartbeat(both_lease("n1"), quick_.now().wall);
  both(asked);
  const store::Revision before = quick_.store().revision();
  both(heartbeat(both_lease("n1"), quick_.now().wall));
  EXPECT_EQ(quick_.store().revision(), before);
  EXPECT_EQ(count("unchanged"), 1);
}

TEST_F(Renewals, ALeaseThatThisServerHasNotCheckedIsCheckedFirst) {
  create("n1");
  touch_below("n1");
  for (TestServer* server : both_) server->settle();
  advance(seconds(1));
  both(heartbeat(both_lease("n1"), quick_.now().wall));
  EXPECT_EQ(count("spliced"), 0);
  EXPECT_EQ(count("object"), 1);
  advance(seconds(1));
  both(heartbeat(both_lease("n1"), quick_.now().wall));
  EXPECT_EQ(count("spliced"), 1);
}

TEST_F(Renewals, AnotherNodesLeaseIsRefused) {
  create("n1");
  for (TestServer* server : both_) {
    server->user = {"system:node:n2", {}, {"system:nodes", "system:masters", "system:authenticated"}};
  }
  const std::string refused = both(heartbeat(both_lease("n1"), quick_.now().wall));
  EXPECT_THAT(refused, HasSubstr("another node"));
  for (TestServer* server : both_) server->user = kAdmin;
  EXPECT_EQ(count("admission"), 1);
  EXPECT_EQ(count("spliced"), 0);
}

TEST_F(Renewals, TwoAtOnceOfOneVersionAreOneRenewalAndOneConflict) {
  create("n1");
  advance(seconds(1));
  const Asked first = heartbeat(both_lease("n1"), quick_.now().wall);
  Asked patch = {.method = api::Method::kPatch,
                 .target = kLeases + "/n1",
                 .body = R"({"metadata":{"labels":{"a":"b"}}})",
                 .headers = kMerge};
  at_once({first, first, patch});
  EXPECT_EQ(count("spliced"), 1);
  EXPECT_EQ(count("queued"), 2);
  EXPECT_EQ(lease("n1").string_at({"metadata", "labels", "a"}), "b");
  expect_same_past();
}

TEST_F(Renewals, AWriteThatWasFasterIsAConflict) {
  create("n1");
  advance(seconds(1));
  const Asked asked = heartbeat(both_lease("n1"), quick_.now().wall);
  touch_below("n1");
  at_once({asked});
  EXPECT_EQ(count("spliced"), 1);
  EXPECT_EQ(lease("n1").at({"spec", "leaseTransitions"})->if_int64(), 99);
  expect_same_past();
}

TEST_F(Renewals, WhateverIsAskedBothWaysSayTheSame) {
  const char* seeds = std::getenv("SPILLWAY_RENEWAL_SEEDS");
  const int rounds = seeds != nullptr ? std::atoi(seeds) : 3;
  for (TestServer* server : both_) server->post("/api/v1/nodes", R"({"metadata":{"name":"owner"}})");
  const std::string uid(quick_.get("/api/v1/nodes/owner").body.string_at({"metadata", "uid"}));
  general_.get("/api/v1/nodes/owner");
  const std::string owner =
      R"("ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"owner","uid":")" + uid + "\"}]";
  create("n0");
  create("n1", "," + owner);
  create("n2", R"(,"labels":{"a":"b","c":""},"annotations":{"x":"y z","empty":""})");
  create("n3", R"(,"finalizers":["example.com/x"])",
         R"(,"leaseTransitions":3,"acquireTime":"2026-01-01T00:00:00.000000Z")");
  create("n4", "", R"(,"leaseTransitions":0)");
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    Rng rng = Rng(static_cast<std::uint64_t>(round)).fork("renewals");
    RequestMaker maker(rng);
    for (int step = 0; step < 200 && !HasFailure(); ++step) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", round, step));
      if (rng.below(3) == 0) advance(milliseconds(static_cast<std::int64_t>(rng.below(3'000))));
      std::vector<Asked> requests;
      const std::uint64_t count = rng.below(6) == 0 ? 3 : 1;
      const std::string name = fmt::format("n{}", rng.below(5));
      for (std::uint64_t i = 0; i < count; ++i) {
        const api::Json stored = both_lease(name);
        if (stored.find("spec") == nullptr || stored.find("spec")->if_object() == nullptr) break;
        requests.push_back(rng.below(3) == 0 ? heartbeat(stored, quick_.now().wall)
                                             : maker.make(stored, quick_.now().wall));
      }
      if (requests.empty()) create(name);
      if (rng.below(25) == 0) touch_below(name);
      if (requests.size() == 1 && rng.below(2) == 0) {
        both(requests.front());
      } else {
        at_once(requests);
      }
      if (rng.below(60) == 0) both({.method = api::Method::kDelete, .target = kLeases + "/" + name, .headers = {}});
    }
  }
  expect_same_past();
  EXPECT_GT(count("spliced"), 30 * rounds);
  for (const char* path : {"unchanged", "request", "object", "content", "queued"}) EXPECT_GT(count(path), 0) << path;
}

constexpr std::string_view kStored =
    R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"resourceVersion":"7",)"
    R"("creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"apiVersion":"coordination.k8s.io/v1",)"
    R"("fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:renewTime":{}}},"manager":"kubelet","operation":"Update",)"
    R"("time":"2026-01-01T00:00:00Z"}],"name":"n","namespace":"d","uid":"u"},)"
    R"("spec":{"holderIdentity":"n","renewTime":"2026-01-01T00:00:00.000000Z"}})";

RenewalPath path_of(std::string_view body, RenewalForm form = RenewalForm::kUpdate,
                    std::string_view manager = "kubelet") {
  return match_renewal(body, kStored, {form, manager}).path;
}

TEST(MatchRenewal, NamesThePlacesOfTheTimes) {
  std::string body(kStored);
  body.replace(body.rfind("000000Z"), 7, "000001Z");
  const RenewalMatch match = match_renewal(body, kStored, {RenewalForm::kUpdate, "kubelet"});
  EXPECT_EQ(match.path, RenewalPath::kSpliced);
  EXPECT_EQ(match.renewed, "2026-01-01T00:00:00.000001Z");
  EXPECT_EQ(kStored.substr(match.renewed_at, 27), "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(kStored.substr(match.managed_at - 8, 8), R"("time":")");
  EXPECT_EQ(path_of(kStored), RenewalPath::kUnchanged);
  EXPECT_EQ(path_of(kStored, RenewalForm::kUpdate, "other"), RenewalPath::kObject);
}

TEST(MatchRenewal, AVersionHasToBeNamedInAnUpdateOnly) {
  constexpr std::string_view kTime = R"("spec":{"holderIdentity":"n","renewTime":"2026-01-01T00:00:01.000000Z"}})";
  EXPECT_EQ(path_of(R"({"metadata":{"name":"n","resourceVersion":"7"},)" + std::string(kTime)), RenewalPath::kSpliced);
  EXPECT_EQ(path_of(R"({"metadata":{"name":"n"},)" + std::string(kTime)), RenewalPath::kContent);
  EXPECT_EQ(path_of(R"({"metadata":{"name":"n","resourceVersion":"6"},)" + std::string(kTime)), RenewalPath::kContent);
  EXPECT_EQ(path_of("{" + std::string(kTime), RenewalForm::kPatch), RenewalPath::kSpliced);
}

TEST(MatchRenewal, WhatIsCutOrNestedTooDeepIsNone) {
  const std::string_view text = kStored;
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(path_of(text.substr(0, size)), RenewalPath::kContent);
    EXPECT_EQ(match_renewal(text, text.substr(0, size), {RenewalForm::kUpdate, "kubelet"}).path, RenewalPath::kObject);
  }
  EXPECT_EQ(path_of(std::string(10'000, '[')), RenewalPath::kContent);
  EXPECT_EQ(path_of(R"({"spec":)" + std::string(40, '[') + std::string(40, ']') + "}", RenewalForm::kPatch),
            RenewalPath::kContent);
}

TEST(FlatJson, TakesNothingThatIsNoJson) {
  constexpr std::string_view kBytes = "{}[]\",:\\ 0123-.eEtfnul\x01\x7f\xc3\n";
  Rng rng(23);
  int taken = 0;
  for (int i = 0; i < 30'000; ++i) {
    std::string text(kStored);
    const std::uint64_t edits = 1 + rng.below(3);
    for (std::uint64_t n = 0; n < edits; ++n) {
      const std::size_t at = rng.below(text.size());
      const char byte = kBytes[rng.below(kBytes.size())];
      const std::uint64_t kind = rng.below(3);
      if (kind == 0) text[at] = byte;
      if (kind == 1) text.insert(at, 1, byte);
      if (kind == 2) text.erase(at, 1 + rng.below(4));
    }
    const auto flat = api::FlatJson::parse(text);
    if (!flat) continue;
    ++taken;
    const Result<api::Json> tree = api::parse_json(text);
    ASSERT_TRUE(tree) << text;
    const Result<api::Json> again = api::parse_json((*flat)[0].text);
    ASSERT_TRUE(again) << text;
    EXPECT_TRUE(*again == *tree) << text;
  }
  EXPECT_GT(taken, 1'000);
}

}  // namespace

}  // namespace spillway::apiserver
