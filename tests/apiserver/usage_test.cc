// metrics.k8s.io: measurements by agents, requested when a client needs them.
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

constexpr const char* kNodes = "/apis/metrics.k8s.io/v1beta1/nodes";
constexpr const char* kPods = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";

class UsageTest : public ::testing::Test {
 protected:
  UsageTest() {
    for (const char* name : {"n1", "n2"}) {
      server.post("/api/v1/nodes",
                  fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"name":"{}"}}}},"status":{{"addresses":)"
                              R"([{{"type":"InternalIP","address":"192.0.2.1"}}]}}}})",
                              name, name));
    }
    uid = server
              .post("/api/v1/namespaces/default/pods",
                    R"({"metadata":{"name":"p","labels":{"app":"web"}},"spec":{"nodeName":"n1","containers":[)"
                    R"({"name":"a","image":"x"},{"name":"b","image":"x"}]}})")
              .string_at({"metadata", "uid"});
    measure("n1", R"({"name":"a",)" + kStats + R"(},{"name":"b",)" + kStats + "}");
    measure("n2", "");
  }

  /// Lets the agent answer; `containers`: the pod's.
  void measure(const std::string& node, const std::string& containers) {
    server.gateway().summaries[node] = R"({"node":{"nodeName":")" + node + "\"," + kStats +
                                       R"(},"pods":[{"podRef":{"name":"p","namespace":"default","uid":")" + uid +
                                       R"("},"containers":[)" + containers + "]}]}";
  }

  const std::string kStats =
      R"("cpu":{"usageNanoCores":1500},"memory":{"time":"2026-01-01T00:00:00Z","workingSetBytes":4194304})";
  TestServer server;
  std::string uid;
};

TEST_F(UsageTest, ANodeIsAsItsAgentMeasuredIt) {
  const Answer answer = server.get(std::string(kNodes) + "/n1");
  ASSERT_EQ(answer.code, 200) << answer.text;
  EXPECT_EQ(answer.string_at({"kind"}), "NodeMetrics");
  EXPECT_EQ(answer.string_at({"metadata", "name"}), "n1");
  EXPECT_EQ(answer.string_at({"metadata", "labels", "name"}), "n1");
  EXPECT_EQ(answer.string_at({"timestamp"}), "2026-01-01T00:00:00Z");
  EXPECT_EQ(answer.string_at({"window"}), "10s");
  EXPECT_EQ(answer.string_at({"usage", "cpu"}), "1500n");
  EXPECT_EQ(answer.string_at({"usage", "memory"}), "4096Ki");
}

TEST_F(UsageTest, APodIsItsContainers) {
  const Answer answer = server.get(std::string(kPods) + "/p");
  ASSERT_EQ(answer.code, 200) << answer.text;
  EXPECT_EQ(answer.string_at({"metadata", "namespace"}), "default");
  EXPECT_EQ(api::to_text(*answer.body.find("containers")),
            R"([{"name":"a","usage":{"cpu":"1500n","memory":"4096Ki"}},)"
            R"({"name":"b","usage":{"cpu":"1500n","memory":"4096Ki"}}])");
}

TEST_F(UsageTest, AMirrorPodIsTheStaticPodItNames) {
  const Answer created = server.post(
      "/api/v1/namespaces/default/pods",
      R"({"metadata":{"name":"static-n1","annotations":{"kubernetes.io/config.mirror":"hash"}},"spec":{"nodeName":"n1",)"
      R"("containers":[{"name":"a","image":"x"}]}})");
  ASSERT_EQ(created.code, 201) << created.text;
  server.gateway().summaries["n1"] =
      R"({"node":{"nodeName":"n1",)" + kStats +
      R"(},"pods":[{"podRef":{"name":"static-n1","namespace":"default","uid":"hash"},"containers":[{"name":"a",)" +
      kStats + "}]}]}";
  const Answer answer = server.get(std::string(kPods) + "/static-n1");
  ASSERT_EQ(answer.code, 200) << answer.text;
  EXPECT_EQ(answer.body.find("containers")->if_array()->size(), 1U);
  EXPECT_EQ(server.get(kPods).body.find("items")->if_array()->size(), 1U);
}

TEST_F(UsageTest, ListsFollowLabels) {
  const Answer all = server.get(kNodes);
  EXPECT_EQ(all.string_at({"kind"}), "NodeMetricsList");
  EXPECT_EQ(all.body.find("items")->if_array()->size(), 2U);
  EXPECT_EQ(server.get(std::string(kNodes) + "?labelSelector=name%3Dn2").body.find("items")->if_array()->size(), 1U);
  EXPECT_EQ(server.get("/apis/metrics.k8s.io/v1beta1/pods").body.find("items")->if_array()->size(), 1U);
  EXPECT_EQ(server.get(std::string(kPods) + "?labelSelector=app%3Dother").body.find("items")->if_array()->size(), 0U);
}

TEST_F(UsageTest, AnswersAreRememberedForTenSeconds) {
  server.get(kNodes);
  server.get(kPods);
  EXPECT_EQ(server.gateway().asked, (std::vector<std::string>{"n1", "n2"}));
  server.advance(seconds(10));
  server.get(kPods);
  EXPECT_EQ(server.gateway().asked.size(), 3U) << "the node of the pod alone";
}

TEST_F(UsageTest, ASilentNodeIsLeftOut) {
  server.gateway().summaries.erase("n2");
  const auto sink = server.send(api::Method::kGet, kNodes);
  EXPECT_FALSE(sink->answered());
  const auto second = server.send(api::Method::kGet, kNodes);
  EXPECT_EQ(server.gateway().silent.size(), 1U) << "it is asked once";
  server.advance(seconds(5));
  ASSERT_TRUE(sink->answered() && second->answered());
  const auto document = api::parse_json(sink->response->body);
  ASSERT_TRUE(document);
  ASSERT_EQ(document->find("items")->if_array()->size(), 1U);
  EXPECT_EQ(document->find("items")->if_array()->front().string_at({"metadata", "name"}), "n1");
  server.gateway().silent.front()->on_response(api::Response{500, {}, "no"});
  EXPECT_EQ(server.get(std::string(kNodes) + "/n2").code, 404);
}

TEST_F(UsageTest, WhatWasNotMeasuredIsNotFound) {
  measure("n1", R"({"name":"a",)" + kStats + R"(},{"name":"b"})");
  EXPECT_EQ(server.get(std::string(kPods) + "/p").code, 404) << "half a sum misleads";
  EXPECT_EQ(server.get(std::string(kPods) + "/none").code, 404);
  EXPECT_EQ(server.get(std::string(kNodes) + "/none").code, 404);
}

TEST_F(UsageTest, NonsenseOfAnAgentIsNothing) {
  for (const char* nonsense : {"", "{", "[]", "{\"node\":4}", "{\"pods\":[{}]}"}) {
    server.gateway().summaries["n1"] = nonsense;
    server.advance(seconds(10));
    EXPECT_EQ(server.get(std::string(kNodes) + "/n1").code, 404) << nonsense;
  }
}

TEST_F(UsageTest, IsDiscovered) {
  const Answer resources = server.get("/apis/metrics.k8s.io/v1beta1");
  ASSERT_EQ(resources.code, 200);
  EXPECT_EQ(resources.body.find("resources")->if_array()->size(), 2U);
  EXPECT_EQ(server.remove(std::string(kNodes) + "/n1").code, 405);
  EXPECT_EQ(server.get(std::string(kNodes) + "?watch=1").code, 405);
}

}  // namespace

}  // namespace spillway::apiserver
