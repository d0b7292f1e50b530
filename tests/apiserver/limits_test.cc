// LimitRanges of a namespace against pods and claims: the rules themselves are in vectors
// workloads/limitrange_defaults.
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

constexpr const char* kRanges = "/api/v1/namespaces/default/limitranges";
constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kClaims = "/api/v1/namespaces/default/persistentvolumeclaims";

std::string range(const std::string& name, const std::string& item) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"limits":[{}]}}}})", name, item);
}

std::string pod(const std::string& name, const std::string& resources) {
  return fmt::format(
      R"({{"metadata":{{"name":"{}"}},"spec":{{"containers":[{{"name":"a","image":"x","resources":{}}}]}}}})", name,
      resources);
}

std::string claim(const std::string& name, const std::string& storage) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"accessModes":["ReadWriteOnce"],)"
                     R"("resources":{{"requests":{{"storage":"{}"}}}}}}}})",
                     name, storage);
}

TEST(LimitRanges, APodThatStatesNothingGetsTheDefaults) {
  TestServer server;
  ASSERT_EQ(server
                .post(kRanges, range("r", R"({"type":"Container","default":{"memory":"64Mi"},)"
                                          R"("defaultRequest":{"cpu":"100m","memory":"32Mi"}})"))
                .code,
            201);
  const Answer answer = server.post(kPods, pod("p", "{}"));
  ASSERT_EQ(answer.code, 201) << answer.text;
  EXPECT_EQ(answer.string_at({"metadata", "annotations", "kubernetes.io/limit-ranger"}),
            "LimitRanger plugin set: cpu, memory request for container a; memory limit for container a");
  EXPECT_EQ(answer.string_at({"status", "qosClass"}), "Burstable");
  const Answer stored = server.get(std::string(kPods) + "/p");
  EXPECT_NE(stored.text.find(R"("resources":{"limits":{"memory":"64Mi"},"requests":{"cpu":"100m","memory":"32Mi"}})"),
            std::string::npos)
      << stored.text;
}

TEST(LimitRanges, APodOutsideOfOneIsRefused) {
  TestServer server;
  server.post(kRanges, range("a", R"({"type":"Container","min":{"memory":"16Mi"},"max":{"cpu":"1","memory":"64Mi"}})"));
  server.post(kRanges, range("b", R"({"type":"Pod","max":{"cpu":"2"}})"));
  const Answer one = server.post(kPods, pod("p", R"({"limits":{"cpu":"1","memory":"8Mi"}})"));
  EXPECT_EQ(one.code, 403);
  EXPECT_EQ(one.string_at({"message"}),
            R"(pods "p" is forbidden: minimum memory usage per Container is 16Mi, but request is 8Mi)");
  const Answer two = server.post(kPods, pod("p", R"({"limits":{"cpu":"3","memory":"8Mi"}})"));
  EXPECT_EQ(two.string_at({"message"}),
            R"(pods "p" is forbidden: [minimum memory usage per Container is 16Mi, but request is 8Mi, )"
            R"(maximum cpu usage per Container is 1, but limit is 3])");
  EXPECT_EQ(server.post(kPods, pod("p", R"({"limits":{"cpu":"1","memory":"32Mi"}})")).code, 201);
  EXPECT_EQ(server.post("/api/v1/namespaces/kube-system/pods", pod("p", R"({"limits":{"cpu":"3"}})")).code, 201)
      << "another namespace";
}

TEST(LimitRanges, OfAPodWithManyContainersAFewProblemsAreListed) {
  TestServer server;
  server.post(kRanges, range("r", R"({"type":"Container","min":{"memory":"1Gi"}})"));
  std::string containers;
  for (int i = 0; i < 500; ++i) {
    containers += fmt::format(R"({}{{"name":"c{}","image":"x","resources":{{"requests":{{"memory":"{}"}}}}}})",
                              i == 0 ? "" : ",", i, 1000 + i);
  }
  const Answer answer =
      server.post(kPods, fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{{"containers":[{}]}}}})", containers));
  EXPECT_EQ(answer.code, 403);
  EXPECT_LT(answer.text.size(), 16'000U);
}

TEST(LimitRanges, AClaimIsHeldAgainstThem) {
  TestServer server;
  server.post(kRanges,
              range("r", R"({"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},"max":{"storage":"2Gi"}})"));
  EXPECT_EQ(server.post(kClaims, claim("c", "3Gi")).string_at({"message"}),
            R"(persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, )"
            R"(but request is 3Gi)");
  ASSERT_EQ(server.post(kClaims, claim("c", "2Gi")).code, 201);
  const Answer grown =
      server.merge(std::string(kClaims) + "/c", R"({"spec":{"resources":{"requests":{"storage":"3Gi"}}}})");
  EXPECT_NE(grown.string_at({"message"}).find("maximum storage usage"), std::string::npos) << grown.text;
}

TEST(LimitRanges, AreShownWithTheTimeOfTheirCreation) {
  TestServer server;
  server.post(kRanges, range("r", R"({"type":"Pod","max":{"cpu":"1"}})"));
  const Answer table = server.get(kRanges, "application/json;as=Table;v=v1;g=meta.k8s.io");
  EXPECT_NE(table.text.find(R"("name":"Created At")"), std::string::npos) << table.text;
}

}  // namespace

}  // namespace spillway::apiserver
