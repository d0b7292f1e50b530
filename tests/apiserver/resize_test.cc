// Goal: the endpoint `resize` of pods changes cpu and memory of containers and nothing else; limits, quotas and the
// size of the node hold for it. The rows of api/new_update fix causes and texts.
#include "api/json/json_values.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr const char* kNodes = "/api/v1/nodes";
constexpr const char* kNamespace = "/api/v1/namespaces/default/";
constexpr const char* kPod = "/api/v1/namespaces/default/pods/p";
constexpr const char* kResize = "/api/v1/namespaces/default/pods/p/resize";

class ResizeOfPods : public ::testing::Test {
 protected:
  ResizeOfPods() {
    EXPECT_EQ(server_.post(kNodes, R"({"metadata":{"name":"n1"}})").code, 201);
    EXPECT_EQ(server_
                  .merge(std::string(kNodes) + "/n1/status",
                         R"({"status":{"allocatable":{"cpu":"2","memory":"4Gi","pods":"10"},)"
                         R"("nodeInfo":{"operatingSystem":"linux"}}})")
                  .code,
              200);
  }

  Answer make_pod(const std::string& more = R"("nodeName":"n1",)") {
    return server_.post(std::string(kNamespace) + "pods",
                        R"({"metadata":{"name":"p","labels":{"a":"b"}},"spec":{)" + more +
                            R"("containers":[{"name":"c","image":"x:1","resources":{)"
                            R"("requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"128Mi"}}}]}})");
  }

  Answer resize(const std::string& resources) {
    return server_.strategic(kResize, R"({"spec":{"containers":[{"name":"c","resources":)" + resources + "}]}}");
  }

  std::string request(const Answer& answer, std::string_view resource) const {
    const Json* list = answer.body.at({"spec", "containers"});
    return list == nullptr ? "" : std::string(list->if_array()->front().string_at({"resources", "requests", resource}));
  }

  TestServer server_;
};

TEST_F(ResizeOfPods, ChangesResourcesAndCountsTheGeneration) {
  ASSERT_EQ(make_pod().code, 201);
  const Answer resized = resize(R"({"requests":{"cpu":"200m"}})");
  ASSERT_EQ(resized.code, 200) << resized.text;
  EXPECT_EQ(request(resized, "cpu"), "200m");
  EXPECT_EQ(request(resized, "memory"), "64Mi");
  EXPECT_EQ(api::integer_at(resized.body, {"metadata", "generation"}, 0), 2);
  EXPECT_EQ(request(server_.get(kResize), "cpu"), "200m") << "GET answers the pod";
}

TEST_F(ResizeOfPods, ChangesNothingElse) {
  ASSERT_EQ(make_pod().code, 201);
  const Answer resized = server_.strategic(
      kResize, R"({"metadata":{"labels":{"a":"other"}},"status":{"phase":"Failed"},"spec":{"activeDeadlineSeconds":9,)"
               R"("containers":[{"name":"c","image":"y:2","resources":{"requests":{"cpu":"200m"}}}]}})");
  ASSERT_EQ(resized.code, 200) << resized.text;
  EXPECT_EQ(resized.string_at({"metadata", "labels", "a"}), "b");
  EXPECT_EQ(resized.string_at({"status", "phase"}), "Pending");
  EXPECT_EQ(resized.body.at({"spec", "activeDeadlineSeconds"}), nullptr);
  EXPECT_EQ(resized.body.at({"spec", "containers"})->if_array()->front().string_at({"image"}), "x:1");
}

TEST_F(ResizeOfPods, IsTheOnlyWayToOtherResources) {
  ASSERT_EQ(make_pod().code, 201);
  const Answer updated =
      server_.strategic(kPod, R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"200m"}}}]}})");
  EXPECT_EQ(updated.code, 422);
  EXPECT_NE(updated.text.find("pod updates may not change fields other than"), std::string::npos);
}

TEST_F(ResizeOfPods, IsRecordedWithItsManager) {
  ASSERT_EQ(make_pod().code, 201);
  const Answer applied =
      server_.call(api::Method::kPatch, std::string(kResize) + "?fieldManager=scaler&force=true",
                   R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},)"
                   R"("spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"300m"}}}]}})",
                   {{"content-type", "application/apply-patch+yaml"}});
  ASSERT_EQ(applied.code, 200) << applied.text;
  EXPECT_EQ(request(applied, "cpu"), "300m");
  bool found = false;
  for (const Json& each : *applied.body.at({"metadata", "managedFields"})->if_array()) {
    found = found || (each.string_at({"manager"}) == "scaler" && each.string_at({"subresource"}) == "resize");
  }
  EXPECT_TRUE(found) << applied.text;
}

TEST_F(ResizeOfPods, NeedsANodeThatIsLargeEnough) {
  ASSERT_EQ(make_pod().code, 201);
  const Answer large = resize(R"({"requests":{"cpu":"3"}})");
  EXPECT_EQ(large.code, 403);
  EXPECT_NE(large.text.find("node didn't have enough allocatable resources: cpu, requested: 3000, allocatable: 2000"),
            std::string::npos)
      << large.text;
  EXPECT_NE(large.text.find(R"("reason":"NodeCapacity")"), std::string::npos) << large.text;
  server_.merge(std::string(kNodes) + "/n1/status", R"({"status":{"nodeInfo":{"operatingSystem":"windows"}}})");
  const Answer windows = resize(R"({"requests":{"cpu":"200m"}})");
  EXPECT_EQ(windows.code, 403);
  EXPECT_NE(windows.text.find("pod resize is only supported on linux nodes, node \\\"n1\\\" is \\\"windows\\\""),
            std::string::npos)
      << windows.text;
}

TEST_F(ResizeOfPods, NeedsANodeThatDeclaresResizes) {
  ASSERT_EQ(make_pod().code, 201);
  const auto report = [&](const std::string& more) {
    return server_.strategic(std::string(kPod) + "/status",
                             R"({"status":{"containerStatuses":[{"name":"c","image":"x:1","imageID":"","ready":true,)"
                             R"("restartCount":0,"state":{"running":{}})" +
                                 more + "}]}}");
  };
  ASSERT_EQ(report("").code, 200);
  const Answer refused = resize(R"({"requests":{"cpu":"200m"}})");
  EXPECT_EQ(refused.code, 422);
  EXPECT_NE(refused.text.find("Pod running on node without support for resize"), std::string::npos) << refused.text;
  ASSERT_EQ(report(R"(,"resources":{})").code, 200);
  EXPECT_EQ(resize(R"({"requests":{"cpu":"200m"}})").code, 200);
}

TEST_F(ResizeOfPods, OfAWholePodNeedsANodeThatCan) {
  ASSERT_EQ(make_pod(R"("nodeName":"n1","resources":{"limits":{"memory":"1Gi"}},)").code, 201);
  const std::string body = R"({"spec":{"resources":{"limits":{"memory":"2Gi"}}}})";
  const Answer refused = server_.strategic(kResize, body);
  EXPECT_EQ(refused.code, 403);
  EXPECT_NE(refused.text.find("requires features InPlacePodLevelResourcesVerticalScaling"), std::string::npos);
  server_.merge(std::string(kNodes) + "/n1/status",
                R"({"status":{"declaredFeatures":["InPlacePodLevelResourcesVerticalScaling"]}})");
  EXPECT_EQ(server_.strategic(kResize, body).code, 200);
}

TEST_F(ResizeOfPods, StaticPodsAreRefused) {
  const Answer made = server_.post(
      std::string(kNamespace) + "pods",
      R"({"metadata":{"name":"p","annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n1",)"
      R"("containers":[{"name":"c","image":"x:1","resources":{"requests":{"cpu":"100m"}}}]}})");
  ASSERT_EQ(made.code, 201) << made.text;
  const Answer refused = resize(R"({"requests":{"cpu":"200m"}})");
  EXPECT_EQ(refused.code, 422);
  EXPECT_NE(refused.text.find("static pods cannot be resized"), std::string::npos);
}

TEST_F(ResizeOfPods, IsHeldAgainstLimitsOfTheNamespace) {
  ASSERT_EQ(make_pod().code, 201);
  ASSERT_EQ(server_
                .post(std::string(kNamespace) + "limitranges",
                      R"({"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","max":{"memory":"256Mi"}}]}})")
                .code,
            201);
  const Answer refused = resize(R"({"limits":{"memory":"512Mi"}})");
  EXPECT_EQ(refused.code, 403);
  EXPECT_NE(refused.text.find("maximum memory usage per Container is 256Mi, but limit is 512Mi"), std::string::npos)
      << refused.text;
  EXPECT_EQ(resize(R"({"limits":{"memory":"256Mi"}})").code, 200);
}

TEST_F(ResizeOfPods, IsChargedToTheQuota) {
  ASSERT_EQ(make_pod().code, 201);
  ASSERT_EQ(server_
                .post(std::string(kNamespace) + "resourcequotas",
                      R"({"metadata":{"name":"q"},"spec":{"hard":{"requests.cpu":"500m"}}})")
                .code,
            201);
  server_.advance(seconds(11));
  const Answer refused = resize(R"({"requests":{"cpu":"600m"}})");
  EXPECT_EQ(refused.code, 403) << refused.text;
  EXPECT_NE(refused.text.find("exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=100m"),
            std::string::npos)
      << refused.text;
  EXPECT_EQ(resize(R"({"requests":{"cpu":"400m"}})").code, 200);
  const Answer quota = server_.get(std::string(kNamespace) + "resourcequotas/q");
  EXPECT_EQ(quota.string_at({"status", "used", "requests.cpu"}), "400m") << quota.text;
}

TEST_F(ResizeOfPods, IsDiscovered) {
  const Answer discovery = server_.get("/api/v1");
  EXPECT_NE(discovery.text.find(R"("name":"pods/resize")"), std::string::npos);
}

TEST_F(ResizeOfPods, NodesMayNotAskForIt) {
  ASSERT_EQ(make_pod().code, 201);
  server_.user = {"system:node:n1", {}, {"system:nodes", "system:masters", "system:authenticated"}};
  const Answer refused = resize(R"({"requests":{"cpu":"200m"}})");
  EXPECT_EQ(refused.code, 403);
  EXPECT_NE(refused.text.find("may not use pod subresource"), std::string::npos) << refused.text;
}

}  // namespace

}  // namespace spillway::apiserver
