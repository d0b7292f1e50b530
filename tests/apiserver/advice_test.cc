// Warnings about valid objects that probably do not mean what their author thinks: the texts of kube-apiserver 1.32.
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kAdvisedPods = "/api/v1/namespaces/default/pods";
constexpr const char* kAdvisedDeployments = "/apis/apps/v1/namespaces/default/deployments";
constexpr const char* kAdvisedServices = "/api/v1/namespaces/default/services";

/// The texts of the Warning headers, without their code and quotes.
std::vector<std::string> advice_of(const Answer& answer) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : answer.headers) {
    if (name != "Warning") continue;
    std::string text;
    for (const char c : value.substr(7, value.size() - 8)) {
      if (c != '\\') text += c;
    }
    texts.push_back(text);
  }
  return texts;
}

struct AdvisedWrite {
  std::string_view path;
  std::string_view body;
  std::vector<std::string> advice;
};

void expect_advice(const AdvisedWrite& row) {
  TestServer server;
  const Answer answer = server.post(std::string(row.path), std::string(row.body));
  EXPECT_EQ(answer.code, 201) << answer.text;
  EXPECT_EQ(advice_of(answer), row.advice) << row.body;
}

std::string pod_with(std::string_view spec, std::string_view container = "", std::string_view metadata = "") {
  return fmt::format(R"({{"metadata":{{"name":"p"{}}},"spec":{{{}"containers":[{{"name":"c","image":"i"{}}}]}}}})",
                     metadata, spec, container);
}

TEST(Advice, OnPods) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {pod_with(R"("nodeSelector":{"beta.kubernetes.io/os":"linux"},)"),
       R"(spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead)"},
      {pod_with(R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)"
                R"({"matchExpressions":[{"key":"beta.kubernetes.io/arch","operator":"Exists"}]}]}}},)"),
       "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
       R"(matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead)"},
      {pod_with(
           R"("topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"}],)"),
       "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod"},
      {pod_with(R"("affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[)"
                R"({"weight":1,"podAffinityTerm":{"topologyKey":"z"}}]}},)"),
       "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector:"
       " "
       "a null labelSelector results in matching no pod"},
      {pod_with("", "", R"(,"annotations":{"scheduler.alpha.kubernetes.io/critical-pod":""})"),
       R"(metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the )"
       R"("priorityClassName" field instead)"},
      {pod_with(R"("volumes":[{"name":"v","gitRepo":{"repository":"r"}}],)"),
       "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"},
      {pod_with(R"("hostAliases":[{"ip":"10.0.0.1","hostnames":["a"]},{"ip":"10.0.0.1","hostnames":["b"]}],)"),
       R"(spec.hostAliases[1].ip: duplicate ip "10.0.0.1")"},
      {pod_with(R"("imagePullSecrets":[{"name":""}],)"), R"(spec.imagePullSecrets[0].name: invalid empty name "")"},
      {pod_with("", R"(,"resources":{"requests":{"memory":"500m"}})"),
       R"(spec.containers[0].resources.requests[memory]: fractional byte value "500m" is invalid, must be an integer)"},
      {pod_with("", R"(,"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}])"),
       R"(spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply)"},
      {pod_with("", R"(,"ports":[{"containerPort":80},{"containerPort":80}])"),
       "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"},
      {pod_with("", R"(,"ports":[{"containerPort":80},{"containerPort":80,"hostPort":80}])"),
       "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]"},
      {pod_with(R"("initContainers":[{"name":"i","image":"img","ports":[{"name":"a","containerPort":80}]},)"
                R"({"name":"s","image":"img","restartPolicy":"Always","ports":[{"name":"b","containerPort":81}]}],)",
                R"(,"ports":[{"name":"a","containerPort":82},{"name":"b","containerPort":83}])"),
       R"(spec.containers[0].ports[1]: duplicate port name "b" with spec.initContainers[1].ports[0], services and )"
       "probes that select ports by name will use spec.initContainers[1].ports[0]"},
  };
  for (const auto& [body, advice] : rows) expect_advice({kAdvisedPods, body, {advice}});
}

TEST(Advice, EveryAnswerAboutEndpointsNamesTheNewerKind) {
  TestServer server;
  const std::string path = "/api/v1/namespaces/default/endpoints";
  const std::vector<std::string> said{"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"};
  EXPECT_EQ(advice_of(server.post(path, R"({"metadata":{"name":"e"}})")), said);
  EXPECT_EQ(advice_of(server.get(path)), said);
  EXPECT_EQ(advice_of(server.get(path + "/e")), said);
  EXPECT_EQ(advice_of(server.get(path + "/none")), said);
  EXPECT_EQ(advice_of(server.merge(path + "/e", R"({"metadata":{"labels":{"a":"b"}}})")), said);
  EXPECT_EQ(advice_of(server.remove(path + "/e")), said);
  EXPECT_EQ(advice_of(server.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices")),
            std::vector<std::string>());
}

TEST(Advice, IsNotGivenWhereNothingIsOdd) {
  for (const std::string& body :
       {pod_with(""), pod_with("", R"(,"env":[{"name":"A","value":"1"},{"name":"A","value":"$(A)2"}])"),
        pod_with("", R"(,"ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":80,"protocol":"UDP"}])"),
        pod_with(R"("nodeSelector":{"kubernetes.io/os":"linux"},)", R"(,"resources":{"requests":{"memory":"1Mi"}})")}) {
    expect_advice({kAdvisedPods, body, {}});
  }
}

TEST(Advice, OnOtherKinds) {
  expect_advice({kAdvisedPods,
                 R"({"metadata":{"name":"a.b"},"spec":{"containers":[{"name":"c","image":"i"}]}})",
                 {"metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS "
                  "label is recommended: [must not contain dots]"}});
  expect_advice(
      {kAdvisedServices,
       R"({"metadata":{"name":"s"},"spec":{"clusterIP":"None","externalIPs":["192.0.2.7"],"ports":[{"port":80}]}})",
       {"spec.externalIPs is ignored for headless services"}});
  expect_advice(
      {"/apis/networking.k8s.io/v1/namespaces/default/ingresses",
       R"({"metadata":{"name":"i","annotations":{"kubernetes.io/ingress.class":"x"}},"spec":{"defaultBackend":)"
       R"({"service":{"name":"s","port":{"number":80}}}}})",
       {R"(annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead)"}});
  expect_advice(
      {"/api/v1/namespaces/default/persistentvolumeclaims",
       R"({"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":)"
       R"({"storage":"1500m"}}}})",
       {R"(spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer)"}});
  expect_advice({"/apis/storage.k8s.io/v1/storageclasses",
                 R"({"metadata":{"name":"s"},"provisioner":"p","allowedTopologies":[{"matchLabelExpressions":[)"
                 R"({"key":"failure-domain.beta.kubernetes.io/zone","values":["a"]}]}]})",
                 {R"(allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use )"
                  R"("topology.kubernetes.io/zone" instead)"}});
}

TEST(Advice, OnTemplatesNamesThePathAndIsRepeatedOnlyForAnotherSpec) {
  TestServer server;
  const std::string advice =
      R"(spec.template.spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply)";
  const Answer made = server.post(
      kAdvisedDeployments,
      R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":)"
      R"({"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A"},{"name":"A"}]}]}}}})");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_THAT(advice_of(made), ElementsAre(advice));
  const std::string d = std::string(kAdvisedDeployments) + "/d";
  EXPECT_THAT(advice_of(server.merge(d, R"({"metadata":{"labels":{"x":"y"}}})")), IsEmpty());
  EXPECT_THAT(advice_of(server.merge(d, R"({"spec":{"replicas":2}})")), ElementsAre(advice));
  EXPECT_THAT(advice_of(server.merge(d + "/status", R"({"status":{"replicas":2}})")), IsEmpty());
}

TEST(Advice, OnThousandsOfEqualPortsIsBounded) {
  std::string ports;
  for (int i = 0; i < 2'000; ++i)
    ports += fmt::format(R"({}{{"containerPort":80,"name":"p{}"}})", i == 0 ? "" : ",", i);
  TestServer server;
  const Answer made = server.post(kAdvisedPods, pod_with("", R"(,"ports":[)" + ports + "]"));
  ASSERT_EQ(made.code, 201) << made.text.substr(0, 500);
  EXPECT_THAT(advice_of(made), SizeIs(::testing::Le(100U)));
  EXPECT_THAT(advice_of(made), Contains("spec.containers[0].ports[1]: duplicate port definition with "
                                        "spec.containers[0].ports[0]"));
}

TEST(Advice, AStatefulSetOfAnExplicitTypeGetsNoPartition) {
  TestServer server;
  const auto strategy = [&](const std::string& name, const std::string& given) {
    const Answer made = server.post(
        "/apis/apps/v1/namespaces/default/statefulsets",
        R"({"metadata":{"name":")" + name + R"("},"spec":{"serviceName":"s","selector":{"matchLabels":{"a":"b"}},)" +
            given +
            R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
    EXPECT_EQ(made.code, 201) << made.text;
    return api::to_text(*made.body.at({"spec", "updateStrategy"}));
  };
  EXPECT_EQ(strategy("a", ""), R"({"rollingUpdate":{"partition":0},"type":"RollingUpdate"})");
  EXPECT_EQ(strategy("b", R"("updateStrategy":{"type":"RollingUpdate"},)"), R"({"type":"RollingUpdate"})");
  EXPECT_EQ(strategy("c", R"("updateStrategy":{"type":"RollingUpdate","rollingUpdate":{}},)"),
            R"({"rollingUpdate":{"partition":0},"type":"RollingUpdate"})");
}

}  // namespace
}  // namespace spillway::apiserver
