// Certificate signing requests: the requestor, and the rights to approve and to sign.
#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "apiserver/server_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

using api::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const api::UserInfo kAnn{"ann", "7", {"dev", "system:authenticated"}, {{"example.com/team", {"a", "b"}}}};
constexpr const char* kRequests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
constexpr const char* kRbac = "/apis/rbac.authorization.k8s.io/v1";

// PEM texts in base64: requests of O=system:nodes CN=system:node:n1 with names of every kind, of O=system:masters
// CN=evil, of the latter with a changed name; a certificate.
constexpr std::string_view kServing =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQlRUQ0I5QUlCQURBd01SVXdFd1lEVlFRS0RBeHplWE4wWlcw"
    "NmJtOWtaWE14RnpBVkJnTlZCQU1NRG5ONQpjM1JsYlRwdWIyUmxPbTR4TUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowREFRY0RR"
    "Z0FFc1I5bThaTmxhZmx6CnhCaUhJc2x1N1JhUXVrQlFsNVlxMjV3LzlSU0t6MHlEZEdaYmFnOU5VQnRCNkNiek4xUWo2OGRXVlRJ"
    "bTBJakoKSE9aSWhHSkZMS0JpTUdBR0NTcUdTSWIzRFFFSkRqRlRNRkV3VHdZRFZSMFJCRWd3Um9JQ2JqR0NEbTR4TG1WNApZVzF3"
    "YkdVdVkyOXRod1FLQUFBQmh4RDlBQUFBQUFBQUFBQUFBQUFBQUFBQmdRVmhRR0l1WTRZTWMzQnBabVpsCk9pOHZZUzlpaUFNcUF3"
    "UXdDZ1lJS29aSXpqMEVBd0lEU0FBd1JRSWhBTVkxbEpPakkvZTJGdU92VnNXWmh5UWMKRnNYM25ZR205SkxIVGhaZTVZY3RBaUFt"
    "SmlteXZJdTRzK0VpdEI3OGVQcm5XcVp0dlRjMVVVSndhazJZNFRWWApJUT09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1Qt"
    "LS0tLQo=";
constexpr std::string_view kMasters =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIa01JR0tBZ0VBTUNneEZ6QVZCZ05WQkFvTURuTjVjM1JsYlRw"
    "dFlYTjBaWEp6TVEwd0N3WURWUVFEREFSbApkbWxzTUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFc1I5bThaTmxh"
    "Zmx6eEJpSElzbHU3UmFRCnVrQlFsNVlxMjV3LzlSU0t6MHlEZEdaYmFnOU5VQnRCNkNiek4xUWo2OGRXVlRJbTBJakpIT1pJaEdK"
    "RkxLQUEKTUFvR0NDcUdTTTQ5QkFNQ0Ewa0FNRVlDSVFDcWdBTk1iOGlLVzQ3Y0FORXdLNEVmWUQ5R3dQc3JyQU5SeGVWawpKNit6"
    "SXdJaEFOU3FRbU1XYTNlblBjTmFVa091ME1GYWdaTVlTcUhtZXlYSW5CTnh2ZkQ2Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVF"
    "U1QtLS0tLQo=";
constexpr std::string_view kTampered =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIa01JR0tBZ0VBTUNneEZ6QVZCZ05WQkFvTURuTjVjM1JsYlRw"
    "dFlYTjBaWEp6TVEwd0N3WURWUVFEREFSbmIyOWtNRmt3RXdZSApLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFc1I5bThaTmxh"
    "Zmx6eEJpSElzbHU3UmFRdWtCUWw1WXEyNXcvOVJTS3oweURkR1piCmFnOU5VQnRCNkNiek4xUWo2OGRXVlRJbTBJakpIT1pJaEdK"
    "RkxLQUFNQW9HQ0NxR1NNNDlCQU1DQTBrQU1FWUNJUUNxZ0FOTWI4aUsKVzQ3Y0FORXdLNEVmWUQ5R3dQc3JyQU5SeGVWa0o2K3pJ"
    "d0loQU5TcVFtTVdhM2VuUGNOYVVrT3UwTUZhZ1pNWVNxSG1leVhJbkJOeAp2ZkQ2Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVF"
    "U1QtLS0tLQo=";
constexpr std::string_view kCertificate =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJpRENDQVMrZ0F3SUJBZ0lVZWlaTld5RFFmcUZWMEE2aHpNYURCWFNncHg4"
    "d0NnWUlLb1pJemowRUF3SXcKR1RFWE1CVUdBMVVFQXd3T2MzbHpkR1Z0T201dlpHVTZiakV3SUJjTk1qWXhNVEl5TVRFeE56TTRX"
    "aGdQTWpFeQpOakV3TWpreE1URTNNemhhTUJreEZ6QVZCZ05WQkFNTURuTjVjM1JsYlRwdWIyUmxPbTR4TUZrd0V3WUhLb1pJCnpq"
    "MENBUVlJS29aSXpqMERBUWNEUWdBRXNSOW04Wk5sYWZsenhCaUhJc2x1N1JhUXVrQlFsNVlxMjV3LzlSU0sKejB5RGRHWmJhZzlO"
    "VUJ0QjZDYnpOMVFqNjhkV1ZUSW0wSWpKSE9aSWhHSkZMS05UTUZFd0hRWURWUjBPQkJZRQpGUGlIdVJDUHM4SWhKVnR5aTBLNXdk"
    "OVRKSFdRTUI4R0ExVWRJd1FZTUJhQUZQaUh1UkNQczhJaEpWdHlpMEs1CndkOVRKSFdRTUE4R0ExVWRFd0VCL3dRRk1BTUJBZjh3"
    "Q2dZSUtvWkl6ajBFQXdJRFJ3QXdSQUlnU2pGRnlzQ3EKSVdIRnQ5VnFYa0xhUjNNTFVpWjc2bDNpRUJwcXFXUkV2MjhDSURYUWM3"
    "ZG1jUTVpaGpjMUpUZjFWZmlQOWlwVQpGM2tSQWhtWEU4NTVscURoCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K";

std::string request_body(std::string_view name, std::string_view pem,
                         std::string_view signer = "kubernetes.io/kubelet-serving", std::string_view more = {}) {
  return fmt::format(
      R"({{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{{"name":"{}"}},)"
      R"("spec":{{"request":"{}","signerName":"{}","usages":["digital signature","server auth"]{}}}}})",
      name, pem, signer, more);
}

std::string condition(std::string_view type) {
  return fmt::format(R"({{"status":{{"conditions":[{{"type":"{}","status":"True","reason":"r"}}]}}}})", type);
}

class Signing : public ::testing::Test {
 protected:
  template <typename Call>
  Answer as(const api::UserInfo& user, Call call) {
    server.user = user;
    Answer answer = call();
    server.user = kAdmin;
    return answer;
  }

  /// A cluster role with one rule, bound to ann.
  void allow(const std::string& name, const std::string& rule) {
    EXPECT_EQ(server
                  .post(std::string(kRbac) + "/clusterroles",
                        R"({"metadata":{"name":")" + name + R"("},"rules":[)" + rule + "]}")
                  .code,
              201);
    EXPECT_EQ(
        server
            .post(std::string(kRbac) + "/clusterrolebindings",
                  R"({"metadata":{"name":")" + name +
                      R"("},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":")" + name +
                      R"("},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"ann"}]})")
            .code,
        201);
  }

  void allow_all_requests() {
    allow("csr", R"({"apiGroups":["certificates.k8s.io"],"resources":["certificatesigningrequests",)"
                 R"("certificatesigningrequests/approval","certificatesigningrequests/status"],"verbs":["*"]})");
  }

  void allow_signer(const std::string& verb, const std::string& signer) {
    allow(verb, R"({"apiGroups":["certificates.k8s.io"],"resources":["signers"],"verbs":[")" + verb +
                    R"("],"resourceNames":[")" + signer + "\"]}");
  }

  void make(const std::string& name) { ASSERT_EQ(server.post(kRequests, request_body(name, kServing)).code, 201); }

  static std::string at(const std::string& rest) { return std::string(kRequests) + "/" + rest; }

  TestServer server;
};

constexpr std::string_view kForged =
    R"(,"username":"system:node:k1","uid":"1","groups":["system:nodes","system:masters"],"extra":{"x":["y"]})";

TEST_F(Signing, TheRequestorIsWhoAsked) {
  allow_all_requests();
  const Answer made =
      as(kAnn, [&] { return server.post(kRequests, request_body("a", kServing, "example.com/a", kForged)); });
  ASSERT_EQ(made.code, 201) << made.text;
  const auto is_ann = [](const Answer& answer) {
    const Json& spec = *answer.body.find("spec");
    EXPECT_EQ(spec.string_at({"username"}), "ann");
    EXPECT_EQ(spec.string_at({"uid"}), "7");
    EXPECT_EQ(api::to_text(*spec.find("groups")), R"(["dev","system:authenticated"])");
    EXPECT_EQ(api::to_text(*spec.find("extra")), R"({"example.com/team":["a","b"]})");
  };
  is_ann(made);
  const Answer node = as(kNode, [&] { return server.post(kRequests, request_body("b", kServing, "a.b/c", kForged)); });
  ASSERT_EQ(node.code, 201) << node.text;
  EXPECT_EQ(node.string_at({"spec", "username"}), "system:node:n1");
  EXPECT_EQ(node.body.at({"spec", "uid"}), nullptr);
  EXPECT_EQ(node.body.at({"spec", "extra"}), nullptr);
  // No way of writing changes the field.
  const Answer applied = as(kAnn, [&] {
    return server.call(api::Method::kPatch, at("c?fieldManager=m"), request_body("c", kServing, "a.b/c", kForged),
                       {{"content-type", "application/apply-patch+yaml"}});
  });
  ASSERT_EQ(applied.code, 201) << applied.text;
  is_ann(applied);
  for (const std::string part : {"a", "a/status", "a/approval"}) {
    const Answer merged = server.merge(
        at(part), R"({"spec":{"username":"system:node:k1","groups":["system:masters"],"signerName":"d.e/f"}})");
    ASSERT_EQ(merged.code, 200) << part << merged.text;
    is_ann(merged);
    EXPECT_EQ(merged.string_at({"spec", "signerName"}), "example.com/a");
    const Answer replaced = server.put(at(part), request_body("a", kMasters, "example.com/a", kForged));
    ASSERT_EQ(replaced.code, 200) << part << replaced.text;
    is_ann(replaced);
    EXPECT_EQ(replaced.string_at({"spec", "request"}), kServing);
  }
}

TEST_F(Signing, RequestsAreSelectedByTheirSigner) {
  ASSERT_EQ(server.post(kRequests, request_body("a", kServing, "example.com/a")).code, 201);
  ASSERT_EQ(server.post(kRequests, request_body("b", kServing, "example.com/b")).code, 201);
  const Answer chosen = server.get(std::string(kRequests) + "?fieldSelector=spec.signerName%3Dexample.com%2Fb");
  ASSERT_EQ(chosen.code, 200) << chosen.text;
  ASSERT_EQ(chosen.body.find("items")->if_array()->size(), 1u);
  EXPECT_EQ(chosen.body.find("items")->if_array()->front().string_at({"metadata", "name"}), "b");
}

TEST_F(Signing, ApprovalNeedsTheVerbOnTheSigner) {
  allow_all_requests();
  make("a");
  const Answer refused = as(kAnn, [&] { return server.merge(at("a/approval"), condition("Approved")); });
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(refused.string_at({"message"}),
            "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: user not permitted to approve requests "
            "with signerName \"kubernetes.io/kubelet-serving\"");
  allow_signer("approve", "kubernetes.io/kubelet-serving");
  EXPECT_EQ(as(kAnn, [&] { return server.merge(at("a/approval"), condition("Approved")); }).code, 200);
  // The verb to approve is not the verb to sign.
  const Answer signing = as(kAnn, [&] { return server.merge(at("a/status"), condition("Failed")); });
  EXPECT_EQ(signing.code, 403);
  // Neither for another signer, nor by naming another in the body.
  ASSERT_EQ(server.post(kRequests, request_body("b", kServing, "example.com/b")).code, 201);
  EXPECT_EQ(as(kAnn, [&] { return server.merge(at("b/approval"), condition("Denied")); }).code, 403);
  EXPECT_EQ(as(kAnn,
               [&] {
                 return server.merge(at("b/approval"), R"({"spec":{"signerName":"kubernetes.io/kubelet-serving"},)" +
                                                           condition("Approved").substr(1));
               })
                .code,
            403);
}

TEST_F(Signing, ADomainOfSignersIsAllowedAtOnce) {
  allow_all_requests();
  allow_signer("approve", "kubernetes.io/*");
  make("a");
  ASSERT_EQ(server.post(kRequests, request_body("b", kServing, "example.com/b")).code, 201);
  EXPECT_EQ(as(kAnn, [&] { return server.merge(at("a/approval"), condition("Approved")); }).code, 200);
  EXPECT_EQ(as(kAnn, [&] { return server.merge(at("b/approval"), condition("Approved")); }).code, 403);
}

TEST_F(Signing, SigningNeedsTheVerbOnTheSigner) {
  allow_all_requests();
  make("a");
  ASSERT_EQ(server.merge(at("a/approval"), condition("Approved")).code, 200);
  const std::string issued = R"({"status":{"certificate":")" + std::string(kCertificate) + "\"}}";
  const Answer refused = as(kAnn, [&] { return server.merge(at("a/status"), issued); });
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(refused.string_at({"message"}),
            "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: user not permitted to sign requests "
            "with signerName \"kubernetes.io/kubelet-serving\"");
  // Other changes than those of certificate and conditions need no permission beyond the endpoint.
  EXPECT_EQ(as(kAnn, [&] { return server.merge(at("a/status"), R"({"metadata":{"labels":{"x":"y"}}})"); }).code, 200);
  allow_signer("sign", "kubernetes.io/kubelet-serving");
  const Answer wrong = as(kAnn, [&] { return server.merge(at("a/status"), R"({"status":{"certificate":"eA=="}})"); });
  EXPECT_EQ(wrong.code, 422);
  EXPECT_THAT(wrong.string_at({"message"}), HasSubstr("must contain at least one CERTIFICATE PEM block"));
  const Answer done = as(kAnn, [&] { return server.merge(at("a/status"), issued); });
  ASSERT_EQ(done.code, 200) << done.text;
  EXPECT_EQ(done.string_at({"status", "certificate"}), kCertificate);
  const Answer again = server.merge(at("a/status"), R"({"status":{"certificate":null}})");
  EXPECT_EQ(again.code, 422);
  EXPECT_THAT(again.string_at({"message"}), HasSubstr("updates may not modify existing certificate content"));
  // A request approved later keeps its certificate.
  const Answer approved = server.put(at("a/approval"), api::to_text(server.get(at("a")).body));
  EXPECT_EQ(approved.string_at({"status", "certificate"}), kCertificate);
}

TEST_F(Signing, NoRequestMayNameTheGroupMasters) {
  const auto ask = [&](std::string_view pem, std::string_view signer) {
    return server.post(kRequests, request_body("m", pem, signer));
  };
  const Answer refused = ask(kMasters, "kubernetes.io/kube-apiserver-client");
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(
      refused.string_at({"message"}),
      "certificatesigningrequests.certificates.k8s.io \"m\" is forbidden: use of kubernetes.io/kube-apiserver-client "
      "signer with system:masters group is not allowed");
  const Answer tampered = ask(kTampered, "kubernetes.io/kube-apiserver-client");
  EXPECT_EQ(tampered.code, 422);
  EXPECT_THAT(tampered.string_at({"message"}), HasSubstr("not signed with the key that it names"));
  EXPECT_EQ(ask(kServing, "kubernetes.io/kube-apiserver-client").code, 201);
}

TEST_F(Signing, ConditionsHaveTimes) {
  ASSERT_EQ(server.post(kRequests, request_body("a", kServing, "example.com/nobody")).code, 201);
  const std::string made(api::format_time(server.now().wall));
  server.advance(seconds(10));
  const std::string approved(api::format_time(server.now().wall));
  const auto first = [](const Answer& answer) -> const Json& {
    return answer.body.at({"status", "conditions"})->if_array()->front();
  };
  Answer answer = server.merge(
      at("a/approval"),
      R"({"status":{"conditions":[{"type":"Approved","status":"True","lastUpdateTime":null,"lastTransitionTime":null}]}})");
  ASSERT_EQ(answer.code, 200) << answer.text;
  EXPECT_EQ(first(answer).string_at({"lastUpdateTime"}), approved);
  EXPECT_EQ(first(answer).string_at({"lastTransitionTime"}), approved);
  server.advance(seconds(10));
  // The time of the last transition is kept, that of the last update is not.
  answer = server.merge(at("a/approval"), condition("Approved"));
  EXPECT_EQ(first(answer).string_at({"lastUpdateTime"}), api::format_time(server.now().wall));
  EXPECT_EQ(first(answer).string_at({"lastTransitionTime"}), approved);
  EXPECT_NE(made, approved);
}

TEST_F(Signing, UsagesAreBounded) {
  std::string usages;
  for (int i = 0; i < 100; ++i) usages += R"(,"any")";
  const Answer answer = server.post(kRequests, R"({"metadata":{"name":"u"},"spec":{"signerName":"a.b/c","request":")" +
                                                   std::string(kServing) + R"(","usages":["any")" + usages + "]}}");
  EXPECT_EQ(answer.code, 422);
  EXPECT_EQ(api::to_text(causes_of(answer.body)), R"([["spec.usages","FieldValueTooMany"]])");
}

TEST_F(Signing, HaveTheSameFormAsElsewhere) {
  make("a");
  ASSERT_EQ(server.post(kRequests, request_body("b", kServing, "example.com/b", R"(,"expirationSeconds":3600)")).code,
            201);
  ASSERT_EQ(server.merge(at("b/approval"), condition("Approved")).code, 200);
  ASSERT_EQ(server.merge(at("b/status"), R"({"status":{"certificate":")" + std::string(kCertificate) + "\"}}").code,
            200);
  ASSERT_EQ(server.post(kRequests, request_body("c", kServing)).code, 201);
  ASSERT_EQ(server.merge(at("c/approval"), condition("Denied")).code, 200);
  server.advance(seconds(90));
  const Answer table = server.get(kRequests, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
  std::vector<std::string> columns;
  for (const Json& column : *table.body.find("columnDefinitions")->if_array()) {
    columns.emplace_back(column.string_at({"name"}));
    EXPECT_EQ(column.find("priority")->if_int64(), 0);
  }
  EXPECT_THAT(columns, ElementsAre("Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"));
  std::vector<std::string> rows;
  for (const Json& row : *table.body.find("rows")->if_array()) rows.push_back(api::to_text(*row.find("cells")));
  EXPECT_THAT(rows, ElementsAre(R"(["a","90s","kubernetes.io/kubelet-serving","admin","<none>","Pending"])",
                                R"(["b","90s","example.com/b","admin","60m","Approved,Issued"])",
                                R"(["c","90s","kubernetes.io/kubelet-serving","admin","<none>","Denied"])"));
}

}  // namespace

}  // namespace spillway::apiserver
