// The serving certificates of agents: signed for the node that requests one, and for no other client in its name.
#include "api/text/base64.h"
#include "apiserver/server_fixture.h"
#include "wire/tls/certificate_authority.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

using api::Json;

const api::UserInfo kOther{"system:node:n2", {}, {"system:nodes", "system:authenticated"}};
const api::UserInfo kPretender{"system:node:n1", {}, {"system:authenticated"}};
const std::string kRequests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

class NodeSignerTest : public ::testing::Test {
 protected:
  /// The result of a request for node n1.
  Json asked_by(const api::UserInfo& user, const std::string& signer = "kubernetes.io/kubelet-serving",
                const std::string& more = "") {
    const auto made = wire::make_signing_request({.use = wire::CertificateRequest::Use::kServer,
                                                  .common_name = "system:node:n1",
                                                  .organizations = {"system:nodes"},
                                                  .hosts = {"n1", "192.0.2.7"}});
    EXPECT_TRUE(made);
    server.user = kAdmin;
    server.post(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        R"({"metadata":{"name":"asks"},"rules":[{"apiGroups":["certificates.k8s.io"],"resources":["certificatesigningrequests"],"verbs":["create"]}]})");
    server.post(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        R"({"metadata":{"name":"asks"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"asks"},"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:authenticated"}]})");
    server.user = user;
    const Answer answer =
        server.post(kRequests, R"({"metadata":{"generateName":"csr-"},"spec":{"signerName":")" + signer +
                                   R"(","request":")" + api::encode_base64(made->request_pem) +
                                   R"(","usages":["digital signature","server auth"])" + more + "}}");
    EXPECT_EQ(answer.code, 201) << answer.text;
    name = answer.string_at({"metadata", "name"});
    server.user = kAdmin;
    return server.get(kRequests + "/" + name).body;
  }

  static std::string certificate_of(const Json& request) {
    return api::decode_base64(request.string_at({"status", "certificate"})).value_or("");
  }

  TestServer server;
  std::string name;
};

TEST_F(NodeSignerTest, TheNodeThatAsksIsTheNodeThatIsNamed) {
  const Json request = asked_by(kNode);
  EXPECT_EQ(certificate_of(request), "system:node:n1 for 31536000 s");
  const Json* conditions = request.at({"status", "conditions"});
  ASSERT_NE(conditions, nullptr);
  EXPECT_EQ(conditions->if_array()->front().string_at({"type"}), "Approved");
  EXPECT_EQ(certificate_of(asked_by(kNode, "kubernetes.io/kubelet-serving", R"(,"expirationSeconds":7200)")),
            "system:node:n1 for 7200 s");
}

TEST_F(NodeSignerTest, NoOtherRequesterIsSignedFor) {
  EXPECT_EQ(certificate_of(asked_by(kOther)), "");
  EXPECT_EQ(certificate_of(asked_by(kPretender)), "");
  EXPECT_EQ(certificate_of(asked_by(kNode, "example.com/other")), "");
}

TEST_F(NodeSignerTest, WhoMayApproveMayAsk) {
  EXPECT_EQ(certificate_of(asked_by(kAdmin)), "system:node:n1 for 31536000 s");
}

TEST_F(NodeSignerTest, AnApprovalByAnAuthorizedUserIsEnough) {
  Json request = asked_by(kOther);
  request.make({"status", "conditions"}) = Json::array(
      {Json::object({{"type", "Approved"}, {"status", "True"}, {"reason", "Seen"}, {"message", "known to me"}})});
  EXPECT_EQ(server.put(kRequests + "/" + name + "/approval", api::to_text(request)).code, 200);
  EXPECT_EQ(certificate_of(server.get(kRequests + "/" + name).body), "system:node:n1 for 31536000 s");
}

/// Certificates of people and programs: no request is approved automatically, by whatever client.
class ClientSignerTest : public NodeSignerTest {
 protected:
  Json asked(const std::string& common_name, const std::vector<std::string>& organizations,
             const std::string& usages = R"("client auth")") {
    const auto made = wire::make_signing_request({.use = wire::CertificateRequest::Use::kClient,
                                                  .common_name = common_name,
                                                  .organizations = organizations,
                                                  .hosts = {}});
    EXPECT_TRUE(made);
    const Answer answer = server.post(
        kRequests,
        R"({"metadata":{"generateName":"csr-"},"spec":{"signerName":"kubernetes.io/kube-apiserver-client","request":")" +
            api::encode_base64(made->request_pem) + R"(","usages":[)" + usages + "]}}");
    EXPECT_EQ(answer.code, 201) << answer.text;
    name = answer.string_at({"metadata", "name"});
    return server.get(kRequests + "/" + name).body;
  }

  Json approved(Json request) {
    request.make({"status", "conditions"}) = Json::array(
        {Json::object({{"type", "Approved"}, {"status", "True"}, {"reason", "Seen"}, {"message", "known to me"}})});
    EXPECT_EQ(server.put(kRequests + "/" + name + "/approval", api::to_text(request)).code, 200);
    return server.get(kRequests + "/" + name).body;
  }
};

TEST_F(ClientSignerTest, ApprovedRequestsAreSigned) {
  const Json request = asked("bob", {"dev"});
  EXPECT_EQ(certificate_of(request), "");
  EXPECT_EQ(request.at({"status", "conditions"}), nullptr);
  EXPECT_EQ(certificate_of(approved(request)), "bob for 31536000 s");
}

TEST_F(ClientSignerTest, WhatMayNotBeSignedFails) {
  const Json failed = approved(asked("bob", {"dev"}, R"("client auth","server auth")"));
  EXPECT_EQ(certificate_of(failed), "");
  const Json& condition = failed.at({"status", "conditions"})->if_array()->back();
  EXPECT_EQ(condition.string_at({"type"}), "Failed");
  EXPECT_EQ(condition.string_at({"reason"}), "SignerValidationFailure");
  EXPECT_EQ(condition.string_at({"message"}), "invalid usage for client certificate: server auth");
}

TEST_F(NodeSignerTest, DecidedRequestsGoAfterAnHourOthersAfterADay) {
  asked_by(kNode);
  const std::string decided = name;
  asked_by(kOther);
  const std::string open = name;
  server.advance(minutes(59));
  EXPECT_EQ(server.get(kRequests + "/" + decided).code, 200);
  server.advance(minutes(2));
  EXPECT_EQ(server.get(kRequests + "/" + decided).code, 404);
  EXPECT_EQ(server.get(kRequests + "/" + open).code, 200);
  server.advance(hours(24));
  EXPECT_EQ(server.get(kRequests + "/" + open).code, 404);
}

/// Certificates that nodes show to the API server.
class NodeClientSignerTest : public NodeSignerTest {
 protected:
  /// The message of the approval, and the certificate, of a request for that common name.
  std::pair<std::string, std::string> asked_for(const api::UserInfo& asks, const std::string& common_name) {
    const auto made = wire::make_signing_request({.use = wire::CertificateRequest::Use::kClient,
                                                  .common_name = common_name,
                                                  .organizations = {"system:nodes"},
                                                  .hosts = {}});
    EXPECT_TRUE(made);
    server.user = asks;
    const Answer answer = server.post(
        kRequests,
        R"({"metadata":{"generateName":"csr-"},"spec":{"signerName":"kubernetes.io/kube-apiserver-client-kubelet","request":")" +
            api::encode_base64(made->request_pem) + R"(","usages":["digital signature","client auth"]}})");
    EXPECT_EQ(answer.code, 201) << answer.text;
    server.user = kAdmin;
    const Json request = server.get(kRequests + "/" + answer.string_at({"metadata", "name"})).body;
    const Json* conditions = request.at({"status", "conditions"});
    return {conditions == nullptr ? "" : std::string(conditions->if_array()->front().string_at({"message"})),
            certificate_of(request)};
  }

  const api::UserInfo machine{
      "system:bootstrap:abcdef",
      {},
      {"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated"}};
};

TEST_F(NodeClientSignerTest, AMachineWithATokenBecomesAnyNode) {
  const auto [message, certificate] = asked_for(machine, "system:node:fresh");
  EXPECT_EQ(message, "Auto approving kubelet client certificate after SubjectAccessReview.");
  EXPECT_EQ(certificate, "system:node:fresh for 31536000 s");
}

TEST_F(NodeClientSignerTest, ANodeRenewsItsOwnAlone) {
  const auto [message, certificate] = asked_for(kNode, "system:node:n1");
  EXPECT_EQ(message, "Auto approving self kubelet client certificate after SubjectAccessReview.");
  EXPECT_EQ(certificate, "system:node:n1 for 31536000 s");
  EXPECT_EQ(asked_for(kNode, "system:node:n2"), (std::pair<std::string, std::string>()));
}

TEST_F(NodeClientSignerTest, WithoutTheGroupOfTheTokenNothingIsApproved) {
  server.user = kAdmin;
  server.post(
      "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
      R"({"metadata":{"name":"asks"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"system:node-bootstrapper"},"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:bootstrappers"}]})");
  api::UserInfo ungrouped = machine;
  ungrouped.groups = {"system:bootstrappers", "system:authenticated"};
  EXPECT_EQ(asked_for(ungrouped, "system:node:fresh"), (std::pair<std::string, std::string>()));
}

}  // namespace

}  // namespace spillway::apiserver
