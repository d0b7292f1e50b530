// Authorization: administrators, roles, nodes; and the reviews about it.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace spillway::apiserver {

namespace {

const api::UserInfo kNobody{"nobody", {}, {"system:authenticated"}};
constexpr const char* kRoles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
constexpr const char* kReview = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

class Access : public ::testing::Test {
 protected:
  /// Makes the call as another user.
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
  EXPECT_EQ(get_as({"system:anonymous", {}, {"system:unauthenticated"}}, "/apis").code, 403);
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

TEST_F(Access, NoUserGrantsRulesThatTheUserLacks) {
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

TEST_F(Access, ANodeSeesTheVolumesOfItsPodsOnly) {
  constexpr const char* kClaims = "/api/v1/namespaces/default/persistentvolumeclaims";
  constexpr const char* kVolumes = "/api/v1/persistentvolumes";
  const auto claim = [](const std::string& name, const std::string& volume) {
    return R"({"metadata":{"name":")" + name + R"("},"spec":{"volumeName":")" + volume +
           R"(","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})";
  };
  const auto volume = [](const std::string& name, const std::string& claimed) {
    return R"({"metadata":{"name":")" + name +
           R"("},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"},)"
           R"("claimRef":{"namespace":"default","name":")" +
           claimed + R"("}}})";
  };
  server.post("/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
  ASSERT_EQ(server.post(kClaims, claim("mine", "of-mine")).code, 201);
  ASSERT_EQ(server.post(kClaims, claim("other", "of-other")).code, 201);
  ASSERT_EQ(server.post(kVolumes, volume("of-mine", "mine")).code, 201);
  ASSERT_EQ(server.post(kVolumes, volume("of-other", "other")).code, 201);
  // names the claim, but the claim does not name it
  ASSERT_EQ(server.post(kVolumes, volume("astray", "mine")).code, 201);
  EXPECT_EQ(get_as(kNode, std::string(kClaims) + "/mine").code, 403);
  EXPECT_EQ(get_as(kNode, std::string(kVolumes) + "/of-mine").code, 403);
  ASSERT_EQ(
      server
          .post(
              "/api/v1/namespaces/default/pods",
              R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"x"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"mine"}}]}})")
          .code,
      201);
  EXPECT_EQ(get_as(kNode, std::string(kClaims) + "/mine").code, 200);
  EXPECT_EQ(get_as(kNode, std::string(kVolumes) + "/of-mine").code, 200);
  for (const char* other :
       {"/other", "/no-such", "", "?watch=1", "?fieldSelector=metadata.name%3Dmine", "/mine/status"})
    EXPECT_EQ(get_as(kNode, std::string(kClaims) + other).code, 403) << other;
  for (const char* other : {"/of-other", "/astray", "/no-such", "", "?watch=1", "/of-mine/status"})
    EXPECT_EQ(get_as(kNode, std::string(kVolumes) + other).code, 403) << other;
  const auto write = [&](const std::string& path, const char* body) {
    return as(kNode, [&] { return server.merge(path, body); }).code;
  };
  EXPECT_EQ(write(std::string(kClaims) + "/mine", R"({"spec":{"volumeName":"of-other"}})"), 403);
  EXPECT_EQ(write(std::string(kVolumes) + "/of-mine", R"({"spec":{"hostPath":{"path":"/"}}})"), 403);
  EXPECT_EQ(write(std::string(kVolumes) + "/of-mine/status", R"({"status":{"phase":"Failed"}})"), 403);
  EXPECT_EQ(as(kNode, [&] { return server.remove(std::string(kVolumes) + "/of-mine"); }).code, 403);
  EXPECT_EQ(post_as(kNode, kVolumes, volume("new", "mine")).code, 403);
}

TEST_F(Access, ANodeGetsTokensOfTheAudiencesOfItsPodsOnly) {
  const std::string driver =
      R"({"metadata":{"name":"csi.example.com"},"spec":{"tokenRequests":[{"audience":"disk"}]}})";
  ASSERT_EQ(server.post("/apis/storage.k8s.io/v1/csidrivers", driver).code, 201);
  const std::string source = R"({"serviceAccountToken":{"path":"t")";
  const std::string plain =
      R"({"name":"own","projected":{"sources":[)" + source + R"(}},)" + source + R"(,"audience":"vault"}}]}})";
  const std::string csi = R"({"name":"disk","csi":{"driver":"csi.example.com"}})";
  const auto uid_of_new_pod = [&](const std::string& name, const std::string& volumes) {
    const Answer made =
        server.post(std::string("/api/v1/namespaces/default/pods"),
                    R"({"metadata":{"name":")" + name +
                        R"("},"spec":{"nodeName":"n1","serviceAccountName":"default",)"
                        R"("automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}],)"
                        R"("volumes":[)" +
                        volumes + "]}}");
    EXPECT_EQ(made.code, 201) << made.text;
    return std::string(made.string_at({"metadata", "uid"}));
  };
  const std::map<std::string, std::string> uids{{"tokens", uid_of_new_pod("tokens", plain)},
                                                {"disks", uid_of_new_pod("disks", csi)}};
  const std::string path = "/api/v1/namespaces/default/serviceaccounts/default/token";
  const auto request = [&](const std::string& pod, const std::string& audiences) {
    return post_as(kNode, path,
                   R"({"spec":{"audiences":)" + audiences +
                       R"(,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":")" + pod + R"(","uid":")" +
                       uids.at(pod) + "\"}}}");
  };
  EXPECT_EQ(request("tokens", "[]").code, 201);
  EXPECT_EQ(request("tokens", R"(["vault"])").code, 201);
  EXPECT_EQ(request("disks", R"(["disk"])").code, 201);
  const Answer refused = request("tokens", R"(["disk"])");
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(refused.string_at({"message"}),
            "serviceaccounts \"default\" is forbidden: audience \"disk\" not found in pod spec volume, system:node:n1 "
            "is not authorized to request tokens for this audience");
  EXPECT_EQ(request("disks", "[]").code, 403) << "no volume has a token of the API server";
  EXPECT_EQ(request("tokens", R"(["vault","vault"])").string_at({"message"}),
            "serviceaccounts \"default\" is forbidden: node may only request 0 or 1 audiences");
  const std::string role = R"({"metadata":{"name":"audiences"},"rules":[{"apiGroups":[""],"resources":["disk"],)"
                           R"("verbs":["request-serviceaccounts-token-audience"]}]})";
  const std::string binding =
      R"({"metadata":{"name":"audiences"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role",)"
      R"("name":"audiences"},"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:nodes"}]})";
  ASSERT_EQ(server.post(std::string(kRoles) + "/roles", role).code, 201);
  ASSERT_EQ(server.post(std::string(kRoles) + "/rolebindings", binding).code, 201);
  EXPECT_EQ(request("tokens", R"(["disk"])").code, 201) << "a role allows the audience";
}

TEST_F(Access, ANodeSeesWhatIsAttachedToItAndNothingElse) {
  constexpr const char* kAttachments = "/apis/storage.k8s.io/v1/volumeattachments";
  const auto attachment = [](const std::string& name, const std::string& node) {
    return R"({"metadata":{"name":")" + name +
           R"("},"spec":{"attacher":"a.io","source":{"persistentVolumeName":"pv"},"nodeName":")" + node + "\"}}";
  };
  ASSERT_EQ(server.post(kAttachments, attachment("mine", "n1")).code, 201);
  ASSERT_EQ(server.post(kAttachments, attachment("other", "n2")).code, 201);
  EXPECT_EQ(get_as(kNode, std::string(kAttachments) + "/mine").code, 200);
  for (const char* other :
       {"/other", "/no-such", "", "?watch=1", "?fieldSelector=metadata.name%3Dmine", "/mine/status"})
    EXPECT_EQ(get_as(kNode, std::string(kAttachments) + other).code, 403) << other;
  const auto write = [&](const std::string& path, const char* body) {
    return as(kNode, [&] { return server.merge(path, body); }).code;
  };
  EXPECT_EQ(write(std::string(kAttachments) + "/mine/status", R"({"status":{"attached":true}})"), 403);
  EXPECT_EQ(as(kNode, [&] { return server.remove(std::string(kAttachments) + "/mine"); }).code, 403);
  EXPECT_EQ(post_as(kNode, kAttachments, attachment("new", "n1")).code, 403);
}

TEST_F(Access, ANodeHasNoWayThroughItsOwnProxy) {
  ASSERT_EQ(post_as(kNode, "/api/v1/nodes", R"({"metadata":{"name":"n1"}})").code, 201);
  for (const char* below : {"/proxy", "/proxy/", "/proxy/api/v1/secrets", "/log", "/stats", "/metrics"}) {
    EXPECT_EQ(get_as(kNode, std::string("/api/v1/nodes/n1") + below).code, 403) << below;
  }
  EXPECT_EQ(get_as(kNode, "/api/v1/nodes/n1/status").code, 200);
}

TEST_F(Access, ANamedGetStaysAGetWhateverTheQuerySays) {
  server.post("/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
  const std::string other = "/api/v1/namespaces/default/pods/p";
  ASSERT_EQ(server
                .post("/api/v1/namespaces/default/pods",
                      R"({"metadata":{"name":"p"},"spec":{"nodeName":"n2","containers":[{"name":"c","image":"x"}]}})")
                .code,
            201);
  const std::string query = "?watch=1&fieldSelector=spec.nodeName%3Dn1";
  for (const char* part : {"", "/log", "/status"}) {
    EXPECT_EQ(get_as(kNode, other + part + query).code, 403) << part;
  }
  // A role that may only watch gets no object, and no log.
  ASSERT_EQ(
      server
          .post(
              std::string(kRoles) + "/roles",
              R"({"metadata":{"name":"w"},"rules":[{"apiGroups":[""],"resources":["pods","pods/log"],"verbs":["watch"]}]})")
          .code,
      201);
  ASSERT_EQ(
      server
          .post(
              std::string(kRoles) + "/rolebindings",
              R"({"metadata":{"name":"w"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"w"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"nobody"}]})")
          .code,
      201);
  EXPECT_EQ(get_as(kNobody, other + "?watch=1").code, 403);
  EXPECT_EQ(get_as(kNobody, other + "/log?watch=1").code, 403);
}

TEST_F(Access, ANodeDoesNotLearnWhichPodsExist) {
  server.post("/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
  server.post("/api/v1/namespaces/default/pods",
              R"({"metadata":{"name":"there"},"spec":{"nodeName":"n2","containers":[{"name":"c","image":"x"}]}})");
  const auto words = [](Answer answer, const std::string& name) {
    std::string text(answer.string_at({"message"}));
    while (text.find(name) != std::string::npos) text.erase(text.find(name), name.size());
    return text;
  };
  for (const char* part : {"", "/status", "/log"}) {
    const Answer there = get_as(kNode, std::string("/api/v1/namespaces/default/pods/there") + part);
    const Answer missing = get_as(kNode, std::string("/api/v1/namespaces/default/pods/missing") + part);
    EXPECT_EQ(there.code, 403) << part;
    EXPECT_EQ(missing.code, 403) << part;
    EXPECT_EQ(words(there, "there"), words(missing, "missing")) << part;
  }
  EXPECT_EQ(as(kNode, [&] { return server.remove("/api/v1/namespaces/default/pods/missing"); }).code, 403);
}

// A mirror pod that names a secret would open it to the node: nothing a pod can refer to is let through.
TEST_F(Access, AMirrorPodRefersToNothing) {
  const Answer node = post_as(kNode, "/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
  ASSERT_EQ(node.code, 201);
  server.post("/api/v1/namespaces/default/secrets", R"({"metadata":{"name":"s"}})");
  const auto mirror = [&](const std::string& name, const std::string& container, const std::string& spec) {
    return R"({"metadata":{"name":")" + name +
           R"(","annotations":{"kubernetes.io/config.mirror":"x"},"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","controller":true,"uid":")" +
           std::string(node.string_at({"metadata", "uid"})) +
           R"("}]},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"x")" + container + "}]" + spec + "}}";
  };
  const auto post = [&](const std::string& body) { return post_as(kNode, "/api/v1/namespaces/default/pods", body); };
  EXPECT_EQ(post(mirror("plain", "", R"(,"volumes":[{"name":"v","hostPath":{"path":"/"}}])")).code, 201);

  struct Row {
    const char* container;
    const char* spec;
    const char* what;
  };

  // Refused to every user; the following ones, to nodes.
  constexpr const char* kNoSecrets = "a mirror pod may not reference secrets";
  const Row rows[] = {
      {"", R"(,"imagePullSecrets":[{"name":"s"}])", kNoSecrets},
      {"", R"(,"volumes":[{"name":"v","secret":{"secretName":"s"}}])", kNoSecrets},
      {"", R"(,"volumes":[{"name":"v","csi":{"driver":"d","nodePublishSecretRef":{"name":"s"}}}])", kNoSecrets},
      {"", R"(,"volumes":[{"name":"v","projected":{"sources":[{"secret":{"name":"s"}}]}}])", kNoSecrets},
      {"", R"(,"volumes":[{"name":"v","rbd":{"monitors":["m"],"image":"i","secretRef":{"name":"s"}}}])", kNoSecrets},
      {R"(,"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}])", "", kNoSecrets},
      {R"(,"envFrom":[{"secretRef":{"name":"s"}}])", "", kNoSecrets},
      {R"(,"envFrom":[{"configMapRef":{"name":"s"}}])", "", "can not create pods that reference configmaps"},
      {"", R"(,"volumes":[{"name":"v","configMap":{"name":"s"}}])", "can not create pods that reference configmaps"},
      {"", R"(,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"s"}}])",
       "can not create pods that reference persistentvolumeclaims"},
      {"", R"(,"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}])",
       "a mirror pod may not use ServiceAccountToken volume projections"},
  };
  for (const Row& row : rows) {
    const Answer answer = post(mirror("q", row.container, row.spec));
    EXPECT_EQ(answer.code, 403) << row.container << row.spec;
    EXPECT_TRUE(std::string(answer.string_at({"message"})).ends_with(row.what)) << answer.string_at({"message"});
  }
  EXPECT_EQ(get_as(kNode, "/api/v1/namespaces/default/secrets/s").code, 403);
  EXPECT_EQ(post(mirror("q", "", R"(,"serviceAccount":"default")")).code, 403);
  // Its only owner is the node, as controller.
  const auto with_owner = [&](const std::string& from, const std::string& to) {
    std::string body = mirror("q", "", "");
    body.replace(body.find(from), from.size(), to);
    return post(body).code;
  };
  EXPECT_EQ(with_owner("\"controller\":true", "\"controller\":false"), 403);
  EXPECT_EQ(with_owner("\"controller\":true", "\"controller\":true,\"blockOwnerDeletion\":true"), 403);
  EXPECT_EQ(with_owner(R"("apiVersion":"v1","kind":"Node")", R"("apiVersion":"v2","kind":"Node")"), 403);
}

TEST_F(Access, NoUserAggregatesRulesThatTheUserLacks) {
  ASSERT_EQ(
      server
          .post(
              "/apis/rbac.authorization.k8s.io/v1/clusterroles",
              R"({"metadata":{"name":"granter"},"rules":[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"verbs":["create","update","patch","get"]}]})")
          .code,
      201);
  ASSERT_EQ(
      server
          .post(
              "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
              R"({"metadata":{"name":"granter"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"granter"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"nobody"}]})")
          .code,
      201);
  const std::string roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
  const std::string gathers =
      R"({"metadata":{"name":"g"},"rules":[],"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}})";
  const Answer refused = post_as(kNobody, roles, gathers);
  EXPECT_EQ(refused.code, 403);
  EXPECT_TRUE(refused.string_at({"message"}).ends_with("must have cluster-admin privileges to use an aggregationRule"));
  ASSERT_EQ(post_as(kNobody, roles, R"({"metadata":{"name":"g"},"rules":[]})").code, 201);
  EXPECT_EQ(
      as(kNobody, [&] { return server.merge(roles + "/g", R"({"aggregationRule":{"clusterRoleSelectors":[{}]}})"); })
          .code,
      403);
  EXPECT_EQ(server.merge(roles + "/g", R"({"aggregationRule":{"clusterRoleSelectors":[{}]}})").code, 200);
}

TEST_F(Access, APutOrApplyThatCreatesNeedsTheRightToCreate) {
  const std::string rules =
      R"({"metadata":{"name":"r"},"rules":[{"apiGroups":["","coordination.k8s.io"],"resources":["configmaps","leases"],"verbs":["get","update","patch"]}]})";
  const std::string binding =
      R"({"metadata":{"name":"r"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"nobody"}]})";
  ASSERT_EQ(server.post(std::string(kRoles) + "/roles", rules).code, 201);
  ASSERT_EQ(server.post(std::string(kRoles) + "/rolebindings", binding).code, 201);
  const std::string lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
  const std::string lease_body =
      R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l"},"spec":{"holderIdentity":"x"}})";
  const std::string map_body = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"b"}})";
  const auto put_lease = [&](const std::string& body) { return server.put(lease, body); };
  const auto apply_map = [&] {
    return server.call(api::Method::kPatch, std::string(kMaps) + "/m?fieldManager=me", map_body,
                       {{"Content-Type", "application/apply-patch+yaml"}});
  };
  const Answer refused = as(kNobody, apply_map);
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(refused.string_at({"message"}),
            "configmaps \"m\" is forbidden: User \"nobody\" cannot create resource \"configmaps\" in API group \"\" in "
            "the namespace \"default\"");
  EXPECT_EQ(as(kNobody, [&] { return put_lease(lease_body); }).code, 403);
  ASSERT_EQ(apply_map().code, 201);
  const Answer made = put_lease(lease_body);
  ASSERT_EQ(made.code, 201);
  EXPECT_EQ(as(kNobody, apply_map).code, 200);
  EXPECT_EQ(as(kNobody, [&] { return put_lease(made.text); }).code, 200);
}

/// The controllers and the scheduler of this process are no administrators.
TEST_F(Access, ControllersDoTheirWorkAndNoMore) {
  const api::UserInfo controllers{"spillway:controllers", {}, {"system:authenticated"}};
  const api::UserInfo scheduler{"spillway:scheduler", {}, {"system:authenticated"}};
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
  const auto lease = [](const std::string& name) { return R"({"metadata":{"name":")" + name + "\"}}"; };
  const auto put_lease = [&](const api::UserInfo& user, const std::string& name) {
    const std::string held = server.get(leases + "/" + name).text;
    return as(user, [&] { return server.put(leases + "/" + name, held); }).code;
  };
  ASSERT_EQ(server.post("/api/v1/nodes", R"({"metadata":{"name":"n1"}})").code, 201);
  ASSERT_EQ(post_as(controllers, leases, lease("spillway-controller")).code, 201);
  ASSERT_EQ(post_as(scheduler, leases, lease("spillway-scheduler")).code, 201);
  EXPECT_EQ(put_lease(controllers, "spillway-controller"), 200);
  EXPECT_EQ(put_lease(scheduler, "spillway-scheduler"), 200);
  EXPECT_EQ(put_lease(controllers, "spillway-scheduler"), 403);
  EXPECT_EQ(put_lease(scheduler, "spillway-controller"), 403);
  const std::string taint = R"({"spec":{"taints":[{"key":"k","effect":"NoExecute"}]}})";
  EXPECT_EQ(as(controllers, [&] { return server.merge("/api/v1/nodes/n1", taint); }).code, 200);
  EXPECT_EQ(as(scheduler, [&] { return server.merge("/api/v1/nodes/n1", taint); }).code, 403);
  EXPECT_EQ(as(scheduler, [&] { return server.remove("/api/v1/nodes/n1"); }).code, 403);
  EXPECT_EQ(as(scheduler, [&] { return server.remove("/api/v1/namespaces/default/configmaps/c"); }).code, 403);
  EXPECT_EQ(as(scheduler, [&] { return server.remove("/api/v1/namespaces/default/pods/p"); }).code, 404);  // victims
  EXPECT_EQ(as(controllers, [&] { return server.remove("/api/v1/namespaces/default/pods/p"); }).code, 404);
  EXPECT_EQ(post_as(controllers, "/api/v1/namespaces/default/pods/p/binding", "{}").code, 403);
  for (const api::UserInfo& user : {controllers, scheduler}) {
    EXPECT_EQ(get_as(user, "/api/v1/pods").code, 200);
    EXPECT_EQ(get_as(user, "/apis/storage.k8s.io/v1/storageclasses").code, 200);
    EXPECT_EQ(get_as(user, "/api/v1/secrets").code, 403);
    EXPECT_EQ(get_as(user, "/apis/rbac.authorization.k8s.io/v1/clusterroles").code, 403);
    EXPECT_EQ(get_as(user, "/api/v1/nodes/n1/proxy/pods").code, 403);
    EXPECT_EQ(post_as(user, "/api/v1/namespaces/default/serviceaccounts/default/token", "{}").code, 403);
    EXPECT_EQ(post_as(user, "/api/v1/namespaces", lease("x")).code, 403);
    EXPECT_EQ(post_as(user, std::string(kRoles) + "/rolebindings", lease("x")).code, 403);
    EXPECT_EQ(as(user, [&] { return server.remove("/api/v1/namespaces/default"); }).code, 403);
  }
}

/// Kubernetes' own have what they have on a stock server, and what ours need, whose name they may be.
TEST_F(Access, KubernetesControllersHaveTheirOwnRights) {
  const api::UserInfo controllers{"system:kube-controller-manager", {}, {"system:authenticated"}};
  const api::UserInfo scheduler{"system:kube-scheduler", {}, {"system:authenticated"}};
  EXPECT_EQ(get_as(controllers, "/api/v1/secrets").code, 200);
  EXPECT_EQ(get_as(controllers, "/apis/rbac.authorization.k8s.io/v1/clusterroles").code, 200);
  EXPECT_EQ(get_as(scheduler, "/api/v1/secrets").code, 403);
  EXPECT_EQ(get_as(scheduler, "/apis/storage.k8s.io/v1/csinodes").code, 200);
  EXPECT_EQ(get_as(scheduler, "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication").code,
            404);
  EXPECT_EQ(get_as(scheduler, "/api/v1/namespaces/kube-system/configmaps/other").code, 403);
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
  EXPECT_EQ(post_as(controllers, leases, R"({"metadata":{"name":"spillway-controller"}})").code, 201);
  EXPECT_EQ(post_as(scheduler, leases, R"({"metadata":{"name":"kube-scheduler"}})").code, 201);
  EXPECT_EQ(as(scheduler, [&] { return server.remove("/api/v1/namespaces/default"); }).code, 403);
  const api::UserInfo collector{"system:serviceaccount:kube-system:generic-garbage-collector",
                                {},
                                {"system:serviceaccounts", "system:authenticated"}};
  EXPECT_EQ(get_as(collector, "/api/v1/secrets").code, 200);
  EXPECT_EQ(post_as(collector, "/api/v1/namespaces", R"({"metadata":{"name":"x"}})").code, 403);
}

/// A label adds the rules of a role to others: who writes it must hold them.
TEST_F(Access, AUserCannotLabelARoleWithoutItsRules) {
  const std::string roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
  const std::string bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
  ASSERT_EQ(
      server
          .post(roles,
                R"({"metadata":{"name":"writer"},"rules":[{"apiGroups":["rbac.authorization.k8s.io"],)"
                R"("resources":["clusterroles","clusterrolebindings"],"verbs":["create","update","patch","get"]}]})")
          .code,
      201);
  ASSERT_EQ(server
                .post(bindings, R"({"metadata":{"name":"writer"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
                                R"("kind":"ClusterRole","name":"writer"},"subjects":[{"kind":"User",)"
                                R"("apiGroup":"rbac.authorization.k8s.io","name":"nobody"}]})")
                .code,
            201);
  const std::string label = R"({"metadata":{"labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}}})";
  const std::string strong = roles + "/system:kube-controller-manager";
  const Answer refused = as(kNobody, [&] { return server.merge(strong, label); });
  EXPECT_EQ(refused.code, 403);
  EXPECT_NE(refused.string_at({"message"}).find("not currently held"), std::string::npos);
  // rules that the user holds
  EXPECT_EQ(as(kNobody, [&] { return server.merge(roles + "/writer", label); }).code, 200);
  const std::string owner =
      R"({"metadata":{"finalizers":["example.com/x"]}})";  // the garbage collector may have to change it
  EXPECT_EQ(as(kNobody, [&] { return server.merge(strong, owner); }).code, 200);
  EXPECT_EQ(as(kNobody, [&] { return server.merge(strong, R"({"metadata":{"annotations":{"a":"b"}}})"); }).code, 403);
  const std::string bound = bindings + "/cluster-admin";
  EXPECT_EQ(as(kNobody, [&] { return server.merge(bound, R"({"metadata":{"labels":{"a":"b"}}})"); }).code, 403);
  EXPECT_EQ(
      as(kNobody, [&] { return server.merge(bindings + "/writer", R"({"metadata":{"labels":{"a":"b"}}})"); }).code,
      200);
}

}  // namespace

}  // namespace spillway::apiserver
