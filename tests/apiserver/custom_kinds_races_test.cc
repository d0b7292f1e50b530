// Races of custom kinds: requests that waited while their kind changed or was deleted, objects whose stored form
// differs from the served one, fields that are added and removed.
#include "apiserver/audit/auditor.h"
#include "apiserver/shared_store.h"
#include "apiserver/webhooks_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;
using webhook_tests::World;

const std::string kDefinitionsAt = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const std::string kJobsDefinition = kDefinitionsAt + "/jobs.races.example.com";
const std::string kRaceJobs = "/apis/races.example.com/v1/namespaces/default/jobs";
const std::string kOldJobs = "/apis/races.example.com/v1beta1/namespaces/default/jobs";
const std::string kJobAtRest = "/registry/races.example.com/jobs/default/a";

/// A version of the kind, with these properties of its spec, and these selectable fields.
std::string version_of(std::string_view name, std::string_view properties, std::string_view fields = "") {
  return fmt::format(
      R"({{"name":"{}","served":true,"storage":{},"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{
        "spec":{{"type":"object","properties":{{{}}}}}}}}}}},"selectableFields":[{}]}})",
      name, name == "v1", properties, fields);
}

std::string jobs_definition(const std::string& versions) {
  return fmt::format(R"({{"metadata":{{"name":"jobs.races.example.com"}},"spec":{{"group":"races.example.com",
    "scope":"Namespaced","names":{{"plural":"jobs","kind":"Job"}},"versions":[{}]}}}})",
                     versions);
}

void define_jobs(TestServer& server, const std::string& versions) {
  const Answer made = server.post(kDefinitionsAt, jobs_definition(versions));
  ASSERT_EQ(made.code, 201) << made.text;
  server.run_until_idle();
}

/// Changes the definition to these versions.
void change_versions(TestServer& server, const std::string& versions) {
  const Answer changed = server.merge(kJobsDefinition, fmt::format(R"({{"spec":{{"versions":[{}]}}}})", versions));
  ASSERT_EQ(changed.code, 200) << changed.text;
  server.run_until_idle();
}

void remove_definition(TestServer& server) {
  EXPECT_EQ(server.remove(kJobsDefinition).code, 200);
  server.run_until_idle();
  server.advance(seconds(2));
}

std::string job(std::string_view name, std::string_view spec, std::string_view version = "v1") {
  return fmt::format(R"({{"apiVersion":"races.example.com/{}","kind":"Job","metadata":{{"name":"{}"}},"spec":{}}})",
                     version, name, spec);
}

Answer apply_job(TestServer& server, std::string_view name, std::string_view spec, std::string_view query = "") {
  return server.call(api::Method::kPatch, fmt::format("{}/{}?fieldManager=one{}", kRaceJobs, name, query),
                     job(name, spec), {{"Content-Type", "application/apply-patch+yaml"}});
}

std::string spec_text(const Answer& answer) {
  const Json* spec = answer.body.find("spec");
  return spec == nullptr ? "none: " + answer.text : api::to_text(*spec);
}

constexpr std::string_view kText = R"({"type":"string"})";
const std::string kZone = fmt::format(R"("zone":{})", kText);
const std::string kZoneAndNode = fmt::format(R"("zone":{0},"nodeName":{0})", kText);
constexpr std::string_view kByZone = R"({"jsonPath":".spec.zone"})";
constexpr std::string_view kByNode = R"({"jsonPath":".spec.nodeName"})";

/// An audit log that acknowledges lines at once, or when the test says so.
class HeldLog final : public AuditLog {
 public:
  void write(std::string /*line*/) override {}

  void write(std::string /*line*/, std::move_only_function<void(Outcome)> done) override {
    if (!holds) return done({});
    held.push_back(std::move(done));
  }

  void release() {
    holds = false;
    for (auto& done : std::exchange(held, {})) done({});
  }

  bool holds = false;
  std::vector<std::move_only_function<void(Outcome)>> held;
};

/// Watches wait for the audit log.
class AuditedKinds : public ::testing::Test {
 protected:
  AuditedKinds() {
    server.auditor = &auditor;
    server.restart();
    define_jobs(server, version_of("v1", kZone, kByZone));
  }

  std::shared_ptr<TestSink> waiting_watch(const std::string& query) {
    log.holds = true;
    auto sink = server.watch(kRaceJobs + "?watch=1" + query);
    log.holds = false;
    EXPECT_FALSE(sink->answered() || sink->streaming);
    return sink;
  }

  HeldLog log;
  Auditor auditor{Auditor::Options{.policy = {.rules = {AuditRule{.level = AuditLevel::kMetadata}}},
                                   .log = &log,
                                   .clock = [this] { return server.now().wall; },
                                   .wait = Auditor::Wait::kWritten}};
  TestServer server;
};

TEST_F(AuditedKinds, AWatchThatWaitedSeesTheFieldsOfNow) {
  const auto watch = waiting_watch("&fieldSelector=spec.zone%3Deast");
  change_versions(server, version_of("v1", kZone));
  log.release();
  server.run_until_idle();
  ASSERT_TRUE(watch->answered()) << "it has no such field by now";
  EXPECT_EQ(watch->response->status, 400);
  EXPECT_EQ(server.post(kRaceJobs, job("a", R"({"zone":"east"})")).code, 201);
}

TEST_F(AuditedKinds, AWatchThatWaitedFindsItsKindGone) {
  const auto watch = waiting_watch("");
  remove_definition(server);
  log.release();
  server.run_until_idle();
  ASSERT_TRUE(watch->answered());
  EXPECT_EQ(watch->response->status, 404);
}

TEST(CustomKindsRaces, ACreateThatWaitedForAWebhookFindsItsKindGone) {
  World world;
  TestServer& server = world.server;
  define_jobs(server, version_of("v1", kZone));
  world.validating("slow", webhook_tests::rules(R"("CREATE")", R"("jobs")", R"("races.example.com")"));
  world.script["slow"] = [](const TestWebhooks::Asked&) { return std::nullopt; };
  const auto late = server.send(api::Method::kPost, kRaceJobs, job("a", "{}"));
  ASSERT_EQ(server.webhooks.open.size(), 1U);
  remove_definition(server);
  ASSERT_EQ(server.get(kJobsDefinition).code, 404);
  server.webhooks.answer_next(webhook_tests::allowed(server.webhooks.asked.back()));
  server.run_until_idle();
  ASSERT_TRUE(late->answered());
  EXPECT_EQ(late->response->status, 405) << late->response->body;
  EXPECT_EQ(server.at_rest(kJobAtRest), "") << "nobody would ever clear it away";
}

TEST(CustomKindsRaces, WhatAWebhookAddsIsWhatIsStored) {
  World world;
  TestServer& server = world.server;
  define_jobs(server, version_of("v1", kZone));
  world.mutating("adds", webhook_tests::rules(R"("CREATE")", R"("jobs")", R"("races.example.com")"));
  world.script["adds"] = [](const TestWebhooks::Asked& asked) {
    return webhook_tests::patch(asked, R"([{"op":"add","path":"/spec/zone","value":"west"},
                                           {"op":"add","path":"/spec/oddity","value":1}])");
  };
  const Answer made = server.post(kRaceJobs, job("a", "{}"));
  EXPECT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(spec_text(made), R"({"zone":"west"})");
  EXPECT_EQ(server.at_rest(kJobAtRest).find("oddity"), std::string::npos);
}

TEST(CustomKindsRaces, NothingIsAppliedIntoAKindThatGoes) {
  TestServer server;
  define_jobs(server, version_of("v1", kZone));
  server.post(kRaceJobs, R"({"apiVersion":"races.example.com/v1","kind":"Job",
                             "metadata":{"name":"held","finalizers":["example.com/held"]}})");
  remove_definition(server);
  ASSERT_EQ(server.get(kJobsDefinition).code, 200) << "an object is held";
  EXPECT_EQ(apply_job(server, "a", "{}").code, 405);
  EXPECT_EQ(server.at_rest(kJobAtRest), "");
  EXPECT_EQ(apply_job(server, "held", R"({"zone":"east"})").code, 200) << "what is there may change";
}

TEST(CustomKindsRaces, AFieldOfAnEarlierSchemaKeepsItsStoredValue) {
  TestServer server;
  define_jobs(server, version_of("v1", kZoneAndNode));
  server.post(kRaceJobs, job("a", R"({"zone":"east","nodeName":"n"})"));
  change_versions(server, version_of("v1", R"("nodeName":{"type":"string"},"count":{"type":"integer","default":1})"));
  EXPECT_EQ(spec_text(server.get(kRaceJobs + "/a")), R"({"count":1,"nodeName":"n"})");
  change_versions(server, version_of("v1", kZoneAndNode));
  const std::string all = R"({"nodeName":"n","zone":"east"})";
  EXPECT_EQ(spec_text(server.get(kRaceJobs + "/a")), all);
  EXPECT_EQ(spec_text(server.merge(kRaceJobs + "/a", R"({"metadata":{"labels":{"a":"b"}}})")), all);
  server.restart();
  EXPECT_EQ(spec_text(server.get(kRaceJobs + "/a")), all);
}

TEST(CustomKindsRaces, AFieldNamedAsTheNodeOfPodsSelectsAsAnyOther) {
  TestServer server;
  define_jobs(server, version_of("v1", kZoneAndNode));
  server.post(kRaceJobs, job("a", R"({"nodeName":"n1"})"));
  change_versions(server, version_of("v1", kZoneAndNode, kByNode));
  const std::string on_n1 = kRaceJobs + "?fieldSelector=spec.nodeName%3Dn1";
  EXPECT_EQ(server.get(on_n1).body.find("items")->if_array()->size(), 1U);
  EXPECT_EQ(server.watch(on_n1 + "&watch=1")->names(), (std::vector<std::string>{"ADDED:a"}));
}

/// While a kind is being read, the store holds an object that no server has seen yet.
class KindBeingRead : public ::testing::Test {
 protected:
  KindBeingRead() {
    all.run_until_idle();
    server.api->act(true, all.now);
    all.run_until_idle();
    server.view.keeps_ranges = [](const store::Range& range) { return range.prefix.starts_with("/registry/races."); };
  }

  void read_kind_with(std::string_view ns, std::string_view metadata) {
    auto value = std::make_shared<const std::string>(
        fmt::format(R"({{"apiVersion":"races.example.com/v1","kind":"Job","metadata":{{"name":"unseen","namespace":"{}",
          "uid":"u"{}}},"spec":{{}}}})",
                    ns, metadata));
    all.store.write({fmt::format("/registry/races.example.com/jobs/{}/unseen", ns), std::move(value), std::nullopt},
                    [](const Result<store::WriteResult>& result) { EXPECT_TRUE(result && result->committed); });
    const Answer made = all.call(server, api::Method::kPost, kDefinitionsAt, jobs_definition(version_of("v1", kZone)));
    ASSERT_EQ(made.code, 201) << made.text;
    all.run_until_idle();
    ASSERT_EQ(server.view.ranges_kept(), 1U);
  }

  int code_of(const std::string& path) { return all.call(server, api::Method::kGet, path).code; }

  SharedServers all;
  SharedServers::Server& server = all.add();
};

TEST_F(KindBeingRead, ANamespaceWaits) {
  const std::string space = "/api/v1/namespaces/away";
  ASSERT_EQ(all.call(server, api::Method::kPost, "/api/v1/namespaces", R"({"metadata":{"name":"away"}})").code, 201);
  read_kind_with("away", "");
  EXPECT_EQ(all.call(server, api::Method::kDelete, space).code, 200);
  all.advance(seconds(5));
  EXPECT_EQ(code_of(space), 200) << "there may be something in it";
  server.view.release_ranges();
  all.advance(seconds(5));
  EXPECT_EQ(code_of(space), 404);
  EXPECT_TRUE(all.keys("/registry/races.example.com/").empty());
}

TEST_F(KindBeingRead, AnOwnerThatLeavesItsDependentsWaits) {
  const Answer owner = all.call(server, api::Method::kPost, kMaps, R"({"metadata":{"name":"owner"}})");
  read_kind_with(
      "default",
      fmt::format(R"(,"ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"{}"}}])",
                  owner.string_at({"metadata", "uid"})));
  EXPECT_EQ(all.call(server, api::Method::kDelete, kMaps + "/owner", R"({"propagationPolicy":"Orphan"})").code, 200);
  all.advance(seconds(5));
  EXPECT_EQ(code_of(kMaps + "/owner"), 200) << "whom it owns is not known";
  server.view.release_ranges();
  all.advance(seconds(5));
  EXPECT_EQ(code_of(kMaps + "/owner"), 404);
  const Answer left = all.call(server, api::Method::kGet, kRaceJobs + "/unseen");
  EXPECT_EQ(left.code, 200) << left.text;
  EXPECT_EQ(left.body.at({"metadata", "ownerReferences"}), nullptr);
}

const std::string kListOfN = R"("list":{"type":"array","items":{"type":"object",
  "properties":{"n":{"type":"integer"}}}})";

TEST(CustomKindsRaces, WhatIsAppliedIsPruned) {
  TestServer server;
  define_jobs(server, version_of("v1", kListOfN));
  const std::string spec = R"({"list":[{"n":1,"junk":true}]})";
  const std::string kept = R"({"list":[{"n":1}]})";
  EXPECT_EQ(spec_text(apply_job(server, "dry", spec, "&dryRun=All")), kept);
  const Answer made = apply_job(server, "a", spec);
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(spec_text(made), kept);
  EXPECT_EQ(server.at_rest(kJobAtRest).find(R"("junk")"), std::string::npos);
  const Answer again = apply_job(server, "a", spec);
  EXPECT_EQ(spec_text(again), kept);
  EXPECT_EQ(again.string_at({"metadata", "resourceVersion"}), made.string_at({"metadata", "resourceVersion"}))
      << "nothing has changed";
}

TEST(CustomKindsRaces, AnotherVersionStoresWhatTheStoredOneHas) {
  TestServer server;
  define_jobs(server, version_of("v1", R"("zone":{"type":"string"},"count":{"type":"integer","default":1})") + "," +
                          version_of("v1beta1", fmt::format(R"("zone":{0},"old":{0})", kText)));
  const std::string body = job("a", R"({"zone":"east","old":"x"})", "v1beta1");
  EXPECT_EQ(spec_text(server.post(kOldJobs + "?dryRun=All", body)), R"({"zone":"east"})");
  const Answer made = server.post(kOldJobs, body);
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(spec_text(made), R"({"zone":"east"})");
  EXPECT_EQ(spec_text(server.get(kRaceJobs + "/a")), R"({"count":1,"zone":"east"})");
  EXPECT_EQ(server.at_rest(kJobAtRest).find(R"("old")"), std::string::npos);
  const Answer same = server.put(kOldJobs + "/a", made.text);
  ASSERT_EQ(same.code, 200) << same.text;
  EXPECT_EQ(*same.body.at({"metadata", "generation"}), Json(1)) << "what is stored has not changed";
  EXPECT_EQ(same.string_at({"metadata", "resourceVersion"}), made.string_at({"metadata", "resourceVersion"}));
}

TEST(CustomKindsRaces, DocumentsOfOpenApiFollowTheKinds) {
  TestServer server;
  const auto tag = [&](const std::string& path) {
    const Answer answer = server.get(path);
    const auto found = std::ranges::find(answer.headers, "ETag", &api::HeaderList::value_type::first);
    return found == answer.headers.end() ? "none: " + answer.text : found->second;
  };
  const std::vector<std::string> pages{"/openapi/v2", "/openapi/v3"};
  std::vector<std::string> before;
  for (const std::string& page : pages) before.push_back(tag(page));
  const std::string core = tag("/openapi/v3/api/v1");
  define_jobs(server, version_of("v1", kZone));
  const std::string path = "/openapi/v3/apis/races.example.com/v1";
  const std::string first = tag(path);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const std::string now = tag(pages[i]);
    EXPECT_NE(now, before[i]);
    EXPECT_EQ(server.call(api::Method::kGet, pages[i], {}, {{"If-None-Match", now}}).code, 304);
    EXPECT_EQ(server.call(api::Method::kGet, pages[i], {}, {{"If-None-Match", before[i]}}).code, 200);
  }
  change_versions(server, version_of("v1", kZoneAndNode));
  EXPECT_NE(tag(path), first);
  EXPECT_EQ(tag("/openapi/v3/api/v1"), core);
  remove_definition(server);
  EXPECT_EQ(server.get(path).code, 404);
  for (std::size_t i = 0; i < pages.size(); ++i) EXPECT_EQ(tag(pages[i]), before[i]);
}

}  // namespace

}  // namespace spillway::apiserver
