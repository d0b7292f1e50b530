// Roles and bindings that every cluster has, over restarts of the server.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::apiserver {

namespace {

class DefaultRoles : public ::testing::Test {
 protected:
  const std::string kScheduler = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:kube-scheduler";
  const std::string kDiscovery = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:discovery";

  /// As JSON text.
  std::string member(const std::string& target, std::string_view name) {
    const Answer answer = server.get(target);
    const api::Json* const found = answer.body.find(name);
    return found == nullptr ? std::string() : api::to_text(*found);
  }

  void merge(const std::string& target, const std::string& patch) { ASSERT_EQ(server.merge(target, patch).code, 200); }

  TestServer server;
};

TEST_F(DefaultRoles, GetBackWhatTheyLackWhenAServerStarts) {
  const std::string rules = member(kScheduler, "rules");
  const std::string subjects = member(kDiscovery, "subjects");
  merge(kScheduler, R"({"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]})");
  merge(kDiscovery, R"({"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"mine"}]})");
  server.restart();
  const std::string whole = member(kScheduler, "rules");
  EXPECT_TRUE(whole.starts_with(R"([{"apiGroups":[""],"resources":["pods"],"verbs":["get"]},)")) << whole;
  EXPECT_TRUE(whole.ends_with(rules.substr(1))) << whole;
  const std::string both = member(kDiscovery, "subjects");
  EXPECT_TRUE(both.ends_with(subjects.substr(1))) << both;
  EXPECT_NE(both.find("mine"), std::string::npos);
  const std::string version = server.get(kScheduler).string_at({"metadata", "resourceVersion"});
  server.restart();
  EXPECT_EQ(member(kScheduler, "rules"), whole);
  EXPECT_EQ(server.get(kScheduler).string_at({"metadata", "resourceVersion"}), version);
}

TEST_F(DefaultRoles, ARuleThatAllowsMoreIsEnough) {
  merge(kScheduler, R"({"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]})");
  server.restart();
  EXPECT_EQ(member(kScheduler, "rules"), R"([{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}])");
}

TEST_F(DefaultRoles, ThatCannotGrowKeepNoServerFromStarting) {
  constexpr std::size_t kObjectMax = 1'572'864;
  const auto rules_of = [](std::size_t length) {
    return R"({"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"],"resourceNames":[")" +
           std::string(length, 'x') + R"("]}]})";
  };
  std::size_t length = kObjectMax;
  while (server.merge(kScheduler, rules_of(length)).code != 200) {
    ASSERT_GT(length, kObjectMax / 2);
    length -= 256;
  }
  const std::string rules = member(kScheduler, "rules");
  server.restart();
  EXPECT_EQ(server.get(kDiscovery).code, 200);
  EXPECT_EQ(member(kScheduler, "rules"), rules);
}

TEST_F(DefaultRoles, AreLeftAloneWhereTheyShallBe) {
  merge(kScheduler,
        R"({"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}},"rules":[]})");
  server.restart();
  EXPECT_EQ(member(kScheduler, "rules").find("pods"), std::string::npos);
}

}  // namespace

}  // namespace spillway::apiserver
