// ResourceQuotas of a namespace and the objects created in it: the rules themselves are in vectors
// workloads/quota_usage. Goal: nothing gets beyond a quota in any race, and deleted objects are room again.
#include "apiserver/server_fixture.h"
#include "apiserver/shared_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Method;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string kQuotas = "/api/v1/namespaces/default/resourcequotas";
const std::string kQuotaPods = "/api/v1/namespaces/default/pods";
const std::string kQuotaServices = "/api/v1/namespaces/default/services";

std::string quota_text(const std::string& name, const std::string& hard, const std::string& more = {}) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"hard":{{{}}}{}}}}})", name, hard, more);
}

std::string pod_text(const std::string& name, const std::string& resources = "{}", const std::string& more = {}) {
  return fmt::format(
      R"({{"metadata":{{{}}},"spec":{{"containers":[{{"name":"a","image":"x","resources":{}}}]{}}}}})",
      name.ends_with('-') ? fmt::format(R"("generateName":"{}")", name) : fmt::format(R"("name":"{}")", name),
      resources, more);
}

std::string service_text(const std::string& name, const std::string& type) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"type":"{}","ports":[{{"port":80}}]}}}})", name, type);
}

int count_of(const std::vector<std::shared_ptr<TestSink>>& sinks, int code) {
  return static_cast<int>(
      std::ranges::count_if(sinks, [code](const auto& sink) { return SharedServers::answer_of(*sink).code == code; }));
}

TEST(Quotas, WhatIsThereIsCountedAsSoonAsThereIsOne) {
  TestServer server;
  server.post(kQuotaPods, pod_text("p", R"({"requests":{"cpu":"100m"}})"));
  server.post(kMaps, R"({"metadata":{"name":"m"}})");
  ASSERT_EQ(server.post(kQuotas, quota_text("q", R"("pods":"3","requests.cpu":"1","configmaps":"5")")).code, 201);
  const Answer quota = server.get(kQuotas + "/q");
  EXPECT_THAT(quota.text, HasSubstr(R"("hard":{"configmaps":"5","pods":"3","requests.cpu":"1"})"));
  EXPECT_THAT(quota.text, HasSubstr(R"("used":{"configmaps":"1","pods":"1","requests.cpu":"100m"})"));
}

TEST(Quotas, AreChargedBeforeTheObjectIsThere) {
  TestServer server;
  server.post(kQuotas, quota_text("q", R"("pods":"2","requests.memory":"100Mi")"));
  ASSERT_EQ(server.post(kQuotaPods, pod_text("a", R"({"requests":{"memory":"60Mi"}})")).code, 201);
  EXPECT_THAT(server.get(kQuotas + "/q").text, HasSubstr(R"("used":{"pods":"1","requests.memory":"60Mi"})"));
  const Answer more = server.post(kQuotaPods, pod_text("b", R"({"requests":{"memory":"60Mi"}})"));
  EXPECT_EQ(more.code, 403);
  EXPECT_EQ(more.string_at({"message"}),
            R"(pods "b" is forbidden: exceeded quota: q, requested: requests.memory=60Mi, used: requests.memory=60Mi, )"
            R"(limited: requests.memory=100Mi)");
  EXPECT_EQ(server.post(kQuotaPods, pod_text("b")).string_at({"message"}),
            R"(pods "b" is forbidden: failed quota: q: must specify requests.memory for: a)");
  EXPECT_EQ(server.post("/api/v1/namespaces/kube-system/pods", pod_text("b")).code, 201) << "another namespace";
}

TEST(Quotas, OfTwentyRequestsAtOnceThoseGetThroughThatThereIsRoomFor) {
  TestServer server;
  server.post(kQuotas, quota_text("q", R"("pods":"7")"));
  std::vector<std::shared_ptr<TestSink>> sinks;
  for (int i = 0; i < 20; ++i) {
    sinks.push_back(server.begin(Method::kPost, kQuotaPods, pod_text(i % 2 == 0 ? "p-" : fmt::format("p{}", i))));
  }
  server.run_until_idle();
  EXPECT_EQ(count_of(sinks, 201), 7);
  EXPECT_EQ(count_of(sinks, 403), 13);
  EXPECT_THAT(*server.get(kQuotaPods).body.find("items")->if_array(), SizeIs(7));
  EXPECT_EQ(server.get(kQuotas + "/q").string_at({"status", "used", "pods"}), "7");
}

TEST(Quotas, ADryRunIsCheckedAndChargesNothing) {
  TestServer server;
  server.post(kQuotas, quota_text("q", R"("pods":"1")"));
  EXPECT_EQ(server.post(kQuotaPods + "?dryRun=All", pod_text("a")).code, 201);
  EXPECT_EQ(server.get(kQuotas + "/q").string_at({"status", "used", "pods"}), "0");
  ASSERT_EQ(server.post(kQuotaPods, pod_text("a")).code, 201);
  EXPECT_EQ(server.post(kQuotaPods + "?dryRun=All", pod_text("b")).code, 403);
}

TEST(Quotas, AnUpdateIsChargedWhatItAdds) {
  TestServer server;
  server.post(kQuotas, quota_text("q", R"("services":"2","services.nodeports":"1")"));
  ASSERT_EQ(server.post(kQuotaServices, service_text("a", "ClusterIP")).code, 201);
  ASSERT_EQ(server.post(kQuotaServices, service_text("b", "ClusterIP")).code, 201);
  EXPECT_EQ(server.merge(kQuotaServices + "/a", R"({"metadata":{"labels":{"x":"y"}}})").code, 200) << "adds nothing";
  EXPECT_EQ(server.merge(kQuotaServices + "/a?dryRun=All", R"({"spec":{"type":"NodePort"}})").code, 200);
  EXPECT_EQ(server.merge(kQuotaServices + "/a", R"({"spec":{"type":"NodePort"}})").code, 200);
  EXPECT_EQ(server.get(kQuotas + "/q").string_at({"status", "used", "services.nodeports"}), "1");
  const Answer more = server.merge(kQuotaServices + "/b", R"({"spec":{"type":"NodePort"}})");
  EXPECT_EQ(more.code, 403) << more.text;
  EXPECT_THAT(more.string_at({"message"}), HasSubstr("exceeded quota: q, requested: services.nodeports=1"));
}

/// A quota asks new pods what they need. The ones before it have to be able to end: their finalizers are taken away.
TEST(Quotas, APodThatWasThereBeforeOneCanBeChanged) {
  TestServer server;
  const std::string pod = pod_text("p");
  ASSERT_EQ(server.post(kQuotaPods, pod).code, 201);
  server.merge(kQuotaPods + "/p", R"({"metadata":{"finalizers":["batch.kubernetes.io/job-tracking"]}})");
  ASSERT_EQ(server.post(kQuotas, quota_text("q", R"("pods":"1","requests.cpu":"1")")).code, 201);
  EXPECT_EQ(server.post(kQuotaPods, pod_text("new")).code, 403);
  const Answer changed = server.merge(kQuotaPods + "/p", R"({"metadata":{"finalizers":null}})");
  EXPECT_EQ(changed.code, 200) << changed.text;
}

TEST(Quotas, WhatIsGoneIsRoomAgain) {
  TestServer server;
  server.post(kQuotas, quota_text("q", R"("pods":"1","count/configmaps":"1")"));
  ASSERT_EQ(server.post(kQuotaPods, pod_text("a")).code, 201);
  ASSERT_EQ(server.post(kMaps, R"({"metadata":{"name":"m"}})").code, 201);
  EXPECT_EQ(server.post(kQuotaPods, pod_text("b")).code, 403);
  EXPECT_EQ(server.post(kMaps, R"({"metadata":{"name":"n"}})").code, 403);
  server.remove(kQuotaPods + "/a", R"({"gracePeriodSeconds":0})");
  server.remove(kMaps + "/m");
  server.advance(seconds(1));
  EXPECT_EQ(server.post(kQuotaPods, pod_text("b")).code, 201);
  EXPECT_EQ(server.post(kMaps, R"({"metadata":{"name":"n"}})").code, 201);
  server.strategic(kQuotaPods + "/b/status", R"({"status":{"phase":"Succeeded"}})");
  server.advance(seconds(1));
  EXPECT_EQ(server.post(kQuotaPods, pod_text("c")).code, 201) << "a pod that is over takes no room";
}

TEST(Quotas, WhatWasChargedForNothingIsTakenBack) {
  TestServer server;
  server.post(kQuotas, quota_text("q", R"("pods":"5")"));
  server.strategic(kQuotas + "/q/status", R"({"status":{"used":{"pods":"4"}}})");
  EXPECT_EQ(server.get(kQuotas + "/q").string_at({"status", "used", "pods"}), "4");
  server.advance(seconds(11));
  EXPECT_EQ(server.get(kQuotas + "/q").string_at({"status", "used", "pods"}), "0");
}

TEST(Quotas, OfScopesAreAboutTheirPodsOnly) {
  TestServer server;
  server.post(kQuotas, quota_text("q", R"("pods":"0")", R"(,"scopes":["Terminating"])"));
  EXPECT_EQ(server.post(kQuotaPods, pod_text("a")).code, 201);
  EXPECT_EQ(server.post(kQuotaPods, pod_text("b", "{}", R"(,"activeDeadlineSeconds":5)")).code, 403);
}

TEST(Quotas, ChangeWithWhatIsAskedFor) {
  TestServer server;
  server.post(kQuotas, quota_text("q", R"("pods":"1")"));
  server.post(kMaps, R"({"metadata":{"name":"m"}})");
  server.merge(kQuotas + "/q", R"({"spec":{"hard":{"pods":null,"configmaps":"1"}}})");
  server.advance(seconds(1));
  EXPECT_THAT(server.get(kQuotas + "/q").text,
              HasSubstr(R"("status":{"hard":{"configmaps":"1"},"used":{"configmaps":"1"}})"));
  EXPECT_EQ(server.post(kMaps, R"({"metadata":{"name":"n"}})").code, 403);
}

TEST(Quotas, AreShownWithWhatIsUsed) {
  TestServer server;
  server.post(kQuotas, quota_text("q", R"("limits.cpu":"2","pods":"3")"));
  const Answer table = server.get(kQuotas, "application/json;as=Table;v=v1;g=meta.k8s.io");
  EXPECT_THAT(table.text, HasSubstr(R"("cells":["q","pods: 0/3","limits.cpu: 0/2",)"));
}

TEST(Quotas, ANamespaceHasSixtyFourAtMost) {
  TestServer server;
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(server.post(kQuotas, quota_text(fmt::format("q{}", i), R"("pods":"1")")).code, 201);
  }
  EXPECT_EQ(server.post(kQuotas, quota_text("more", R"("pods":"1")")).code, 403);
  EXPECT_EQ(server.post(kQuotaPods, pod_text("a")).code, 201);
  EXPECT_EQ(server.get(kQuotas + "/q63").string_at({"status", "used", "pods"}), "1");
}

TEST(Quotas, SwitchedOffHoldNothingBack) {
  TestServer server(ApiServer::Controllers::kUnknown, {.resource_quota = false});
  server.post(kQuotas, quota_text("q", R"("pods":"0")"));
  EXPECT_EQ(server.post(kQuotaPods, pod_text("a")).code, 201);
}

class SharedQuota : public ::testing::Test {
 protected:
  void SetUp() override {
    a.api->act(true, all.now);
    all.run_until_idle();
    ASSERT_EQ(all.call(a, Method::kPost, kQuotas, quota_text("q", R"("pods":"7")")).code, 201);
  }

  std::string used() { return all.call(a, Method::kGet, kQuotas + "/q").string_at({"status", "used", "pods"}); }

  SharedServers all;
  SharedServers::Server& a = all.add();
  SharedServers::Server& b = all.add();
};

TEST_F(SharedQuota, IsNotExceededByTwoServersOfWhichOneIsLate) {
  b.view.late = true;
  std::vector<std::shared_ptr<TestSink>> sinks;
  for (int i = 0; i < 20; ++i)
    sinks.push_back(all.begin(i % 2 == 0 ? a : b, Method::kPost, kQuotaPods, pod_text("p-")));
  all.run_until_idle();
  EXPECT_EQ(count_of(sinks, 201), 7);
  EXPECT_EQ(count_of(sinks, 403), 13);
  EXPECT_EQ(used(), "7");
}

TEST_F(SharedQuota, IsNotLoweredWhileAChargedPodMayBeOnItsWay) {
  all.advance(seconds(30));
  b.view.keeps_writes = [](const store::Write& write) { return write.key.starts_with("/registry/pods/"); };
  const auto slow = all.begin(b, Method::kPost, kQuotaPods, pod_text("slow"));
  all.run_until_idle();
  ASSERT_EQ(b.view.kept(), 1U);
  EXPECT_EQ(used(), "1");
  ASSERT_EQ(all.call(a, Method::kPost, kQuotaPods, pod_text("quick")).code, 201);
  ASSERT_EQ(all.call(a, Method::kDelete, kQuotaPods + "/quick", R"({"gracePeriodSeconds":0})").code, 200);
  all.advance(seconds(3));
  EXPECT_EQ(used(), "2") << "a count that does not see the slow pod would make room for one too many";
  b.view.release_writes();
  all.advance(seconds(10));
  EXPECT_EQ(SharedServers::answer_of(*slow).code, 201);
  EXPECT_EQ(used(), "1");
}

}  // namespace

}  // namespace spillway::apiserver
