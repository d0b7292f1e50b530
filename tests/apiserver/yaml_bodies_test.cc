// Bodies in YAML, and how large an apply patch may be.
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace spillway::apiserver {
namespace {

using api::Method;
using ::testing::HasSubstr;

const std::string kDefinitionsOfAll = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

Answer send_yaml(TestServer& server, Method method, const std::string& target, const std::string& body) {
  return server.call(method, target, body, {{"Content-Type", "application/yaml"}});
}

Answer apply_body(TestServer& server, const std::string& target, const std::string& body) {
  return server.call(Method::kPatch, target + "?fieldManager=t&force=true", body,
                     {{"Content-Type", "application/apply-patch+yaml"}});
}

constexpr const char* kMapInYaml = R"(# a comment
apiVersion: v1
kind: ConfigMap
metadata:
  name: m
  labels: {a: b}
data:
  text: |
    two
    lines
)";

TEST(YamlBodies, CreateUpdateAndApply) {
  TestServer server;
  const Answer made = send_yaml(server, Method::kPost, kMaps, kMapInYaml);
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"data", "text"}), "two\nlines\n");
  EXPECT_EQ(made.string_at({"metadata", "labels", "a"}), "b");
  const Answer changed = send_yaml(server, Method::kPut, kMaps + "/m", "metadata: {name: m}\ndata: {text: other}\n");
  ASSERT_EQ(changed.code, 200) << changed.text;
  EXPECT_EQ(changed.string_at({"data", "text"}), "other");
  const Answer applied = apply_body(server, kMaps + "/m", kMapInYaml);
  ASSERT_EQ(applied.code, 200) << applied.text;
  EXPECT_EQ(applied.string_at({"data", "text"}), "two\nlines\n");
  const Answer fresh = apply_body(server, kMaps + "/fresh",
                                  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: fresh\ndata:\n  a: \"1\"\n");
  EXPECT_EQ(fresh.code, 201) << fresh.text;
}

TEST(YamlBodies, OctalNumbersAreOctal) {
  TestServer server;
  const Answer made = send_yaml(server, Method::kPost, "/api/v1/namespaces/default/pods", R"(
metadata: {name: p}
spec:
  containers: [{name: c, image: i}]
  volumes:
  - name: v
    configMap: {name: m, defaultMode: 0644}
)");
  ASSERT_EQ(made.code, 201) << made.text;
  const auto& volumes = *made.body.at({"spec", "volumes"})->if_array();
  EXPECT_EQ(volumes.front().at({"configMap", "defaultMode"})->if_int64(), 420);
}

TEST(YamlBodies, MistakesNameTheLine) {
  TestServer server;
  const Answer broken = send_yaml(server, Method::kPost, kMaps, "metadata:\n  name: m\ndata: [\n");
  EXPECT_EQ(broken.code, 400);
  EXPECT_THAT(broken.text, HasSubstr("line:"));
  const Answer twice = apply_body(server, kMaps + "/m", "metadata: {name: m}\ndata:\n  a: b\n  a: c\n");
  EXPECT_EQ(twice.code, 400);
  EXPECT_THAT(twice.text, HasSubstr("line:4"));
  EXPECT_EQ(send_yaml(server, Method::kPost, kMaps, "metadata: {name: m}\n---\nmetadata: {name: n}\n").code, 400);
  EXPECT_EQ(server.get(kMaps + "/m").code, 404);
}

TEST(YamlBodies, LargeOnesAreRefusedUnlessTheyAreJson) {
  TestServer server;
  const std::string value(300'000, 'x');
  const Answer yaml = send_yaml(server, Method::kPost, kMaps, "metadata: {name: m}\ndata:\n  a: " + value + "\n");
  EXPECT_EQ(yaml.code, 413);
  EXPECT_THAT(yaml.text, HasSubstr("send it as JSON"));
  const std::string json =
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":")" + value + "\"}}";
  EXPECT_EQ(send_yaml(server, Method::kPost, kMaps, json).code, 201);
  EXPECT_EQ(apply_body(server, kMaps + "/m", json).code, 200);
}

TEST(ApplyPatches, TakeDefinitionsAsLargeAsCreatesTakeThem) {
  std::string properties;
  for (int i = 0; i < 4'000; ++i) {
    properties +=
        fmt::format(R"({}"p{}":{{"type":"object","properties":{{"a":{{"type":"string"}},"b":{{"type":"integer"}}}}}})",
                    i == 0 ? "" : ",", i);
  }
  const std::string body =
      R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"wides.example.com"},)"
      R"("spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"wides","singular":"wide","kind":"Wide",)"
      R"("listKind":"WideList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":)"
      R"({"type":"object","properties":{"spec":{"type":"object","properties":{)" +
      properties + "}}}}}}]}}";
  TestServer server;
  const std::string wides = kDefinitionsOfAll + "/wides.example.com";
  const Answer made = apply_body(server, wides, body);
  ASSERT_EQ(made.code, 201) << made.text.substr(0, 300);
  const Answer again = apply_body(server, wides, body);
  ASSERT_EQ(again.code, 200) << again.text.substr(0, 300);
  EXPECT_EQ(again.string_at({"metadata", "uid"}), made.string_at({"metadata", "uid"}));
}

TEST(ApplyPatches, DropTheNamespaceOfAnObjectOfTheCluster) {
  TestServer server;
  const Answer made = apply_body(server, "/apis/rbac.authorization.k8s.io/v1/clusterroles/r",
                                 "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
                                 "metadata: {name: r, namespace: kube-system}\nrules: []\n");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"metadata", "namespace"}), "");
}

}  // namespace
}  // namespace spillway::apiserver
