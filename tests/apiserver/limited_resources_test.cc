// Resources that may be used only if a quota covers them: limitedResources of the plug-in ResourceQuota.
// Source: Kubernetes docs, "Resource Quotas", limit priority class consumption by default.
#include "apiserver/server_fixture.h"
#include "apiserver/shared_store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

const std::string kIn = "/api/v1/namespaces/default/";

AdmissionRules limiting(quota::LimitedResource limited) {
  AdmissionRules rules;
  rules.limited_resources.push_back(std::move(limited));
  return rules;
}

AdmissionRules limiting_pods(std::vector<std::string> contains, std::vector<api::QuotaScope> scopes = {}) {
  return limiting({.group = "", .plural = "pods", .contains = std::move(contains), .scopes = std::move(scopes)});
}

std::string limited_pod(const std::string& requests, const std::string& more = {}) {
  return fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"a","image":"x",)"
                     R"("resources":{{"requests":{{{}}}}}}}]{}}}}})",
                     requests, more);
}

std::string quota_of(const std::string& hard, const std::string& more = {}) {
  return fmt::format(R"({{"metadata":{{"name":"q"}},"spec":{{"hard":{{{}}}{}}}}})", hard, more);
}

std::string claim_of(const std::string& storage_class) {
  return fmt::format(
      R"({{"metadata":{{"name":"{0}-claim"}},"spec":{{"accessModes":["ReadWriteOnce"],"storageClassName":"{0}",)"
      R"("resources":{{"requests":{{"storage":"1Gi"}}}}}}}})",
      storage_class);
}

TEST(LimitedResources, NeedAQuotaThatCountsThem) {
  TestServer server(ApiServer::Controllers::kUnknown, limiting_pods({"cpu", "example.com/gpu"}));
  const Answer none = server.post(kIn + "pods", limited_pod(R"("cpu":"1","memory":"1Mi")"));
  EXPECT_EQ(none.code, 403);
  EXPECT_EQ(none.string_at({"message"}), "pods \"p\" is forbidden: insufficient quota to consume: cpu,requests.cpu");
  EXPECT_EQ(server.post(kIn + "pods?dryRun=All", limited_pod(R"("cpu":"1")")).code, 403);

  ASSERT_EQ(server.post(kIn + "resourcequotas", quota_of(R"("cpu":"4","memory":"1Gi")")).code, 201);
  EXPECT_EQ(server.post(kIn + "pods", limited_pod(R"("cpu":"1","memory":"1Mi")")).string_at({"message"}),
            "pods \"p\" is forbidden: insufficient quota to consume: requests.cpu");
  ASSERT_EQ(server.remove(kIn + "resourcequotas/q").code, 200);
  ASSERT_EQ(server.post(kIn + "resourcequotas", quota_of(R"("cpu":"4","requests.cpu":"4")")).code, 201);
  EXPECT_EQ(server.post(kIn + "pods", limited_pod(R"("cpu":"1")")).code, 201);
  EXPECT_NE(server.get(kIn + "resourcequotas/q").text.find(R"("used":{"cpu":"1","requests.cpu":"1"})"),
            std::string::npos);
}

/// Two servers; the second has admitted a pod when the first changes the quota that covers it.
class LateLimits : public ::testing::Test {
 protected:
  void SetUp() override {
    a.api->act(true, all.now);
    all.run_until_idle();
    ASSERT_EQ(all.call(a, api::Method::kPost, kIn + "resourcequotas", quota_of(R"("cpu":"4","requests.cpu":"4")")).code,
              201);
    all.advance(seconds(2));
    b.view.keeps_writes = [](const store::Write& write) { return write.key.starts_with("/registry/resourcequotas/"); };
    pod = all.begin(b, api::Method::kPost, kIn + "pods", limited_pod(R"("cpu":"1")"));
    all.run_until_idle();
    ASSERT_EQ(b.view.kept(), 1U) << "the charge";
  }

  Answer charge() {
    b.view.release_writes();
    all.advance(seconds(2));
    return SharedServers::answer_of(*pod);
  }

  SharedServers all;
  SharedServers::Server& a = all.add(limiting_pods({"cpu"}));
  SharedServers::Server& b = all.add(limiting_pods({"cpu"}));
  std::shared_ptr<TestSink> pod;
};

TEST_F(LateLimits, AnExistingQuotaCoversItsResources) {
  EXPECT_EQ(charge().code, 201);
}

TEST_F(LateLimits, AQuotaThatIsGoneAtTheChargeCoversNothing) {
  ASSERT_EQ(all.call(a, api::Method::kDelete, kIn + "resourcequotas/q").code, 200);
  const Answer refused = charge();
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(refused.string_at({"message"}), "pods \"p\" is forbidden: insufficient quota to consume: cpu,requests.cpu");
}

TEST_F(LateLimits, AQuotaThatCountsLessAtTheChargeCoversLess) {
  ASSERT_EQ(all.call(a, api::Method::kPut, kIn + "resourcequotas/q",
                     R"({"metadata":{"name":"q"},"spec":{"hard":{"cpu":"4"}}})")
                .code,
            200);
  all.advance(seconds(2));
  EXPECT_EQ(charge().string_at({"message"}), "pods \"p\" is forbidden: insufficient quota to consume: requests.cpu");
}

TEST(LimitedResources, AreFreeForWhoDoesNotUseThem) {
  TestServer server(ApiServer::Controllers::kUnknown, limiting_pods({"example.com/gpu"}));
  EXPECT_EQ(server.post(kIn + "pods", limited_pod(R"("cpu":"1")")).code, 201);
  EXPECT_EQ(server.post(kIn + "configmaps", R"({"metadata":{"name":"m"}})").code, 201);
  EXPECT_EQ(server.post(kIn + "services", R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}})").code, 201);
}

TEST(LimitedResources, AreOfOneKind) {
  const std::string of_class = "gold.storageclass.storage.k8s.io/requests.storage";
  TestServer server(ApiServer::Controllers::kUnknown,
                    limiting({.group = "", .plural = "persistentvolumeclaims", .contains = {of_class}, .scopes = {}}));
  EXPECT_EQ(server.post(kIn + "persistentvolumeclaims", claim_of("silver")).code, 201);
  const Answer gold = server.post(kIn + "persistentvolumeclaims", claim_of("gold"));
  EXPECT_EQ(
      gold.string_at({"message"}),
      fmt::format("persistentvolumeclaims \"gold-claim\" is forbidden: insufficient quota to consume: {}", of_class));

  TestServer jobs(ApiServer::Controllers::kUnknown,
                  limiting({.group = "batch", .plural = "jobs", .contains = {"count/"}, .scopes = {}}));
  EXPECT_EQ(jobs.post(kIn + "pods", limited_pod("")).code, 201);
  const std::string job = R"({"metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never",)"
                          R"("containers":[{"name":"a","image":"x"}]}}}})";
  EXPECT_EQ(jobs.post("/apis/batch/v1/namespaces/default/jobs", job).string_at({"message"}),
            "jobs.batch \"j\" is forbidden: insufficient quota to consume: count/jobs.batch");
}

TEST(LimitedScopes, NeedAQuotaWithThatScope) {
  TestServer server(
      ApiServer::Controllers::kUnknown,
      limiting_pods({}, {{.scope = "PriorityClass", .op = "In", .values = {"system-node-critical", "vip"}}}));
  const std::string critical = limited_pod("", R"(,"priorityClassName":"system-node-critical")");
  EXPECT_EQ(server.post(kIn + "pods", limited_pod("")).code, 201) << "of no class";
  const Answer none = server.post("/api/v1/namespaces/kube-system/pods", critical);
  EXPECT_EQ(none.code, 500) << "as upstream";
  EXPECT_EQ(none.string_at({"message"}),
            "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical vip]}]");
  EXPECT_EQ(none.string_at({"reason"}), "");

  const auto scoped = [&](const std::string& values) {
    return quota_of(R"("pods":"1")", fmt::format(R"(,"scopeSelector":{{"matchExpressions":[{{"scopeName":)"
                                                 R"("PriorityClass","operator":"In","values":[{}]}}]}})",
                                                 values));
  };
  const std::string there = "/api/v1/namespaces/kube-system/";
  ASSERT_EQ(server.post(there + "resourcequotas", scoped(R"("vip")")).code, 201);
  EXPECT_EQ(server.post(there + "pods", critical).code, 500) << "the scope does not hold for the pod";
  server.remove(there + "resourcequotas/q");
  ASSERT_EQ(server.post(there + "resourcequotas", scoped(R"("system-node-critical")")).code, 201);
  EXPECT_EQ(server.post(there + "pods", critical).code, 201);
  std::string second = critical;
  second.replace(second.find(R"("p")"), 3, R"("p2")");
  EXPECT_EQ(server.post(there + "pods", second).code, 403) << "beyond the quota";
}

TEST(LimitedScopes, OfPlainScopes) {
  TestServer server(ApiServer::Controllers::kUnknown,
                    limiting_pods({}, {{.scope = "BestEffort", .op = "Exists", .values = {}},
                                       {.scope = "NotTerminating", .op = "Exists", .values = {}}}));
  EXPECT_EQ(server.post(kIn + "pods", limited_pod("")).string_at({"message"}),
            "insufficient quota to match these scopes: [{BestEffort Exists []} {NotTerminating Exists []}]");
  ASSERT_EQ(
      server.post(kIn + "resourcequotas", quota_of(R"("pods":"5")", R"(,"scopes":["BestEffort","NotTerminating"])"))
          .code,
      201);
  EXPECT_EQ(server.post(kIn + "pods", limited_pod("")).code, 201);
}

}  // namespace

}  // namespace spillway::apiserver
