// Who may do what: administrators, roles, nodes; reviews that ask about it.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

const api::UserInfo kAdmin{"admin", {}, {"system:masters", "system:authenticated"}};
const api::UserInfo kNobody{"nobody", {}, {"system:authenticated"}};
const api::UserInfo kNode{"system:node:n1", {}, {"system:nodes", "system:authenticated"}};
constexpr const char* kRoles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kReview = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

class Access : public ::testing::Test {
 protected:
  /// The same call as another user.
  template <typename Call>
  Answer as(const api::UserInfo& user, Call call) {
    server.user = user;
    Answer answer = call();
    server.user = kAdmin;
    return answer;
  }

  Answer get_as(const api::UserInfo& user, const std::string& target) {
    return as(user, [&] { return server.get(target); });
  }

  Answer post_as(const api::UserInfo& user, const std::string& target, const std::string& body) {
    return as(user, [&] { return server.post(target, body); });
  }

  TestServer server;
};

TEST_F(Access, WithoutARoleThereIsDiscoveryOnly) {
  const Answer refused = get_as(kNobody, kMaps);
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(refused.string_at({"message"}),
            "configmaps is forbidden: User \"nobody\" cannot list resource \"configmaps\" in API group \"\" in the "
            "namespace \"default\"");
  for (const char* path : {"/version", "/apis", "/apis/apps/v1", "/openapi/v3", "/healthz"}) {
    EXPECT_EQ(get_as(kNobody, path).code, 200) << path;
  }
  EXPECT_EQ(get_as({"system:anonymous", {}, {"system:unauthenticated"}}, "/apis/apps/v1").code, 403);
  EXPECT_EQ(get_as({"system:anonymous", {}, {"system:unauthenticated"}}, "/readyz").code, 200);
}

TEST_F(Access, ARoleAllowsWhatItNames) {
  const std::string rules =
      R"({"metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list"]}]})";
  const std::string binding =
      R"({"metadata":{"name":"r"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"nobody"}]})";
  ASSERT_EQ(server.post(std::string(kRoles) + "/roles", rules).code, 201);
  ASSERT_EQ(server.post(std::string(kRoles) + "/rolebindings", binding).code, 201);
  EXPECT_EQ(get_as(kNobody, kMaps).code, 200);
  EXPECT_EQ(get_as(kNobody, "/api/v1/configmaps").code, 403);
  EXPECT_EQ(get_as(kNobody, "/api/v1/namespaces/default/secrets").code, 403);
  EXPECT_EQ(post_as(kNobody, kMaps, R"({"metadata":{"name":"a"}})").code, 403);
  EXPECT_EQ(post_as(kNobody, kReview,
                    R"({"spec":{"resourceAttributes":{"verb":"get","resource":"configmaps","namespace":"default"}}})")
                .body.at({"status", "allowed"})
                ->if_bool(),
            true);
  server.remove(std::string(kRoles) + "/rolebindings/r");
  EXPECT_EQ(get_as(kNobody, kMaps).code, 403);
}

TEST_F(Access, NobodyGrantsWhatHeLacks) {
  const std::string own =
      R"({"metadata":{"name":"granter"},"rules":[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["create"]},{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]})";
  ASSERT_EQ(server.post(std::string(kRoles) + "/roles", own).code, 201);
  ASSERT_EQ(
      server
          .post(
              std::string(kRoles) + "/rolebindings",
              R"({"metadata":{"name":"granter"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"granter"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"nobody"}]})")
          .code,
      201);
  const auto role = [](const std::string& name, const std::string& verb) {
    return R"({"metadata":{"name":")" + name +
           R"("},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":[")" + verb + "\"]}]}";
  };
  EXPECT_EQ(post_as(kNobody, std::string(kRoles) + "/roles", role("a", "get")).code, 201);
  EXPECT_EQ(post_as(kNobody, std::string(kRoles) + "/roles", role("b", "delete")).code, 403);
}

TEST_F(Access, ANodeKeepsToItself) {
  EXPECT_EQ(post_as(kNode, "/api/v1/nodes", R"({"metadata":{"name":"n2"}})").code, 403);
  EXPECT_EQ(
      post_as(kNode, "/api/v1/nodes", R"({"metadata":{"name":"n1","labels":{"node-restriction.kubernetes.io/x":"1"}}})")
          .code,
      403);
  ASSERT_EQ(post_as(kNode, "/api/v1/nodes", R"({"metadata":{"name":"n1","labels":{"kubernetes.io/os":"linux"}}})").code,
            201);
  ASSERT_EQ(server.post("/api/v1/nodes", R"({"metadata":{"name":"n2"}})").code, 201);
  EXPECT_EQ(get_as(kNode, "/api/v1/nodes/n1").code, 200);
  EXPECT_EQ(get_as(kNode, "/api/v1/nodes/n2").code, 403);
  EXPECT_EQ(get_as(kNode, "/api/v1/nodes").code, 403);
  EXPECT_EQ(get_as(kNode, "/api/v1/nodes?fieldSelector=metadata.name%3Dn1").code, 200);
  EXPECT_EQ(as(kNode, [&] { return server.merge("/api/v1/nodes/n1", R"({"spec":{"taints":[]}})"); }).code, 403);
  EXPECT_EQ(as(kNode, [&] { return server.remove("/api/v1/nodes/n1"); }).code, 403);
  EXPECT_EQ(as(kNode,
               [&] {
                 return server.strategic("/api/v1/nodes/n1/status",
                                         R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
               })
                .code,
            200);
}

TEST_F(Access, ANodeSeesWhatItsPodsUse) {
  server.post("/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
  server.post("/api/v1/namespaces/default/secrets", R"({"metadata":{"name":"s"}})");
  EXPECT_EQ(get_as(kNode, "/api/v1/namespaces/default/secrets/s").code, 403);
  ASSERT_EQ(
      server
          .post(
              "/api/v1/namespaces/default/pods",
              R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"x"}],"volumes":[{"name":"v","secret":{"secretName":"s"}}]}})")
          .code,
      201);
  EXPECT_EQ(get_as(kNode, "/api/v1/namespaces/default/secrets/s").code, 200);
  EXPECT_EQ(get_as(kNode, "/api/v1/namespaces/default/secrets").code, 403);
  EXPECT_EQ(get_as(kNode, "/api/v1/namespaces/default/pods/p").code, 200);
  EXPECT_EQ(get_as(kNode, "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1").code, 200);
  EXPECT_EQ(get_as(kNode, "/api/v1/pods").code, 403);
  EXPECT_EQ(post_as(kNode, "/api/v1/namespaces/default/pods",
                    R"({"metadata":{"name":"q"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"x"}]}})")
                .code,
            403);
}

}  // namespace

}  // namespace spillway::apiserver
