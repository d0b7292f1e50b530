// HorizontalPodAutoscalers: defaults, what is refused, the table, and the view that autoscaling/v1 is.
#include "apiserver/resource/autoscaler_view.h"
#include "apiserver/server_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;
using ::testing::HasSubstr;

const std::string kSecond = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const std::string kFirst = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";

Json read(std::string_view text) {
  return api::parse_json(text).value();
}

/// An autoscaler with these members in its spec.
std::string autoscaler(std::string_view members = "{}") {
  Json object = read(R"({"metadata":{"name":"web"},"spec":{"maxReplicas":5,
      "scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}})");
  const Json given = read(members);
  for (const auto& [member, value] : *given.if_object()) object["spec"][member] = value;
  return to_text(object);
}

TEST(AutoscalerKind, HasUpstreamsDefaults) {
  TestServer server;
  const Answer made = server.post(kSecond, autoscaler(R"({"behavior":{"scaleDown":{"selectPolicy":"Min"}}})"));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(*made.body.find("spec"), read(R"({"minReplicas":1,"maxReplicas":5,
      "scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},
      "metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}],
      "behavior":{
        "scaleUp":{"stabilizationWindowSeconds":0,"selectPolicy":"Max","policies":[
          {"type":"Pods","value":4,"periodSeconds":15},{"type":"Percent","value":100,"periodSeconds":15}]},
        "scaleDown":{"selectPolicy":"Min","policies":[{"type":"Percent","value":100,"periodSeconds":15}]}}})"));
}

TEST(AutoscalerKind, KeepsItsTolerances) {
  TestServer server;
  const Answer made = server.post(kSecond, autoscaler(R"({"behavior":{"scaleDown":{"tolerance":"0.050"}}})"));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"spec", "behavior", "scaleDown", "tolerance"}), "50m");
  EXPECT_EQ(made.string_at({"spec", "behavior", "scaleUp", "tolerance"}), "");
}

TEST(AutoscalerKind, ReportsWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {R"({"minReplicas":6})", "spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`"},
      {R"({"minReplicas":0})", "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"},
      {R"({"maxReplicas":0})", "spec.maxReplicas: Required value: must be set and greater than 0"},
      {R"({"scaleTargetRef":{"kind":"Deployment","name":"../x"}})", "spec.scaleTargetRef.name: Invalid value"},
      {R"({"scaleTargetRef":{"kind":"","name":"x"}})", "spec.scaleTargetRef.kind: Required value"},
      {R"({"behavior":{"scaleUp":{"tolerance":"-1m"}}})",
       "spec.behavior.scaleUp.tolerance: Invalid value: \"-1m\": must be greater than or equal to 0"},
      {R"({"metrics":[{"type":"Unheard"}]})", "spec.metrics[0].type: Unsupported value: \"Unheard\""},
      {R"({"metrics":[{"type":"Resource"}]})",
       "spec.metrics[0].resource: Required value: must populate information for the given metric source"},
      {R"({"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization"}}}]})",
       "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a "
       "target utilization"},
      {R"({"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Value","averageValue":"0"}}}]})",
       "spec.metrics[0].resource.target.averageValue: Invalid value: \"0\": must be positive"},
      {R"({"metrics":[{"type":"Pods","pods":{"metric":{"name":"a"},"target":{"type":"AverageValue"}}}]})",
       "spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue"},
      {R"({"metrics":[{"type":"Pods","pods":{"metric":{"name":"a"},"target":{"type":"AverageValue","averageValue":"1"}},
          "resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":1}}}]})",
       "spec.metrics[0].resource: Forbidden: must populate the given metric source only"},
      {R"({"behavior":{"scaleDown":{"stabilizationWindowSeconds":3601}}})",
       "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"},
      {R"({"behavior":{"scaleUp":{"policies":[{"type":"Pods","value":1,"periodSeconds":1801}]}}})",
       "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800"}};
  TestServer server;
  for (const auto& [members, said] : refused) {
    const Answer answer = server.post(kSecond, autoscaler(members));
    EXPECT_EQ(answer.code, 422) << members;
    EXPECT_THAT(answer.string_at({"message"}), HasSubstr(said));
  }
  ASSERT_EQ(server.post(kSecond, autoscaler()).code, 201);
  EXPECT_EQ(server.merge(kSecond + "/web", R"({"spec":{"minReplicas":9}})").code, 422);
  EXPECT_EQ(server.merge(kSecond + "/web/status", R"({"status":{"desiredReplicas":-1}})").code, 422);
}

TEST(AutoscalerKind, KeepsItsStatusApart) {
  TestServer server;
  ASSERT_EQ(server.post(kSecond, autoscaler()).code, 201);
  ASSERT_EQ(server.merge(kSecond + "/web", R"({"status":{"desiredReplicas":4}})").code, 200);
  EXPECT_EQ(server.get(kSecond + "/web").body.at({"status", "desiredReplicas"})->if_int64(), 0);
  ASSERT_EQ(server.merge(kSecond + "/web/status", R"({"status":{"desiredReplicas":4},"spec":{"maxReplicas":9}})").code,
            200);
  const Answer got = server.get(kSecond + "/web");
  EXPECT_EQ(got.body.at({"status", "desiredReplicas"})->if_int64(), 4);
  EXPECT_EQ(got.body.at({"spec", "maxReplicas"})->if_int64(), 5);
}

TEST(AutoscalerKind, ShowsMetricsInItsTable) {
  TestServer server;
  ASSERT_EQ(server
                .post(kSecond, autoscaler(R"({"metrics":[
      {"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}},
      {"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"}}},
      {"type":"Pods","pods":{"metric":{"name":"a"},"target":{"type":"AverageValue","averageValue":"1"}}}]})"))
                .code,
            201);
  ASSERT_EQ(server
                .merge(kSecond + "/web/status", R"({"status":{"currentReplicas":2,"currentMetrics":[
      {"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":75,"averageValue":"75m"}}}]}})")
                .code,
            200);
  const Answer table = server.get(kSecond, "application/json;as=Table;v=v1;g=meta.k8s.io");
  const Json& row = (*table.body.find("rows")->if_array())[0];
  Json cells = *row.find("cells");
  cells.if_array()->pop_back();  // the age changes
  EXPECT_EQ(to_text(cells), R"(["web","Deployment/web","cpu: 75%/50%, memory: <unknown>/1Gi + 1 more...","1",5,2])");
}

TEST(AutoscalerViews, OfOneObjectAreTwo) {
  TestServer server;
  ASSERT_EQ(server.post(kFirst, autoscaler(R"({"minReplicas":2,"targetCPUUtilizationPercentage":50})")).code, 201);
  const Answer second = server.get(kSecond + "/web");
  EXPECT_EQ(second.string_at({"apiVersion"}), "autoscaling/v2");
  EXPECT_EQ(
      to_text(*second.body.at({"spec", "metrics"})),
      R"([{"resource":{"name":"cpu","target":{"averageUtilization":50,"type":"Utilization"}},"type":"Resource"}])");
  ASSERT_EQ(server
                .merge(kSecond + "/web", R"({"spec":{"behavior":{"scaleDown":{"stabilizationWindowSeconds":60}},
      "metrics":[
        {"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":60}}},
        {"type":"External","external":{"metric":{"name":"queue","selector":{"matchLabels":{"a":"b"}}},
          "target":{"type":"AverageValue","averageValue":"30"}}}]}})")
                .code,
            200);
  const Answer before = server.get(kSecond + "/web");
  // A client that changes one member as v1 keeps the members that v1 lacks.
  Answer first = server.get(kFirst + "/web");
  EXPECT_EQ(first.string_at({"apiVersion"}), "autoscaling/v1");
  EXPECT_EQ(first.body.at({"spec", "targetCPUUtilizationPercentage"})->if_int64(), 60);
  EXPECT_EQ(first.body.at({"spec", "metrics"}), nullptr);
  first.body["spec"]["maxReplicas"] = 7;
  ASSERT_EQ(server.put(kFirst + "/web", to_text(first.body)).code, 200);
  const Answer after = server.get(kSecond + "/web");
  Json expected = *before.body.find("spec");
  expected["maxReplicas"] = 7;
  EXPECT_EQ(*after.body.find("spec"), expected);
  EXPECT_EQ(after.body.at({"metadata", "annotations"}), nullptr);
}

TEST(AutoscalerViews, AnEmptyStatusHasTheMembersOfItsVersion) {
  TestServer server;
  const std::string first = R"({"currentReplicas":0,"desiredReplicas":0})";
  const std::string second = R"({"currentMetrics":null,"desiredReplicas":0})";
  const auto status_of = [](const Answer& answer) {
    EXPECT_LT(answer.code, 300) << answer.text;
    return *std::as_const(answer.body).find("status");
  };
  EXPECT_EQ(status_of(server.post(kFirst, autoscaler())), read(first));
  EXPECT_EQ(status_of(server.get(kFirst + "/web")), read(first));
  EXPECT_EQ(status_of(server.get(kSecond + "/web")), read(second));
  EXPECT_EQ(status_of(server.merge(kFirst + "/web", R"({"spec":{"maxReplicas":9}})")), read(first));
  EXPECT_EQ(status_of(server.get(kSecond + "/web")), read(second));
}

TEST(AutoscalerViews, AreTheSameThereAndBack) {
  const Json stored = read(R"({"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"web",
      "annotations":{"own":"1"}},"spec":{"maxReplicas":5,"scaleTargetRef":{"kind":"Deployment","name":"web"},
      "behavior":{"scaleUp":{"selectPolicy":"Max"}},"metrics":[
        {"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":60}}},
        {"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":70}}},
        {"type":"ContainerResource","containerResource":{"name":"cpu","container":"c",
          "target":{"type":"AverageValue","averageValue":"100m"}}},
        {"type":"Pods","pods":{"metric":{"name":"a","selector":{"matchLabels":{"x":"y"}}},
          "target":{"type":"AverageValue","averageValue":"1"}}},
        {"type":"Object","object":{"metric":{"name":"b"},"describedObject":{"kind":"Service","name":"s"},
          "target":{"type":"Value","value":"2k"}}},
        {"type":"External","external":{"metric":{"name":"c"},"target":{"type":"Value","value":"3"}}}]},
      "status":{"currentReplicas":1,"desiredReplicas":2,
        "conditions":[{"type":"AbleToScale","status":"True"}],"currentMetrics":[
        {"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":61}}},
        {"type":"Object","object":{"metric":{"name":"b"},"describedObject":{"kind":"Service","name":"s"},
          "current":{"value":"1"}}}]}})");
  const Json view = autoscaler_to_view(stored);
  EXPECT_EQ(view.at({"status", "currentCPUUtilizationPercentage"})->if_int64(), 61);
  EXPECT_EQ(to_text(autoscaler_from_view(view)), to_text(stored));
}

TEST(AutoscalerViews, IgnoreMalformedAnnotations) {
  for (const std::string_view text : {"", "x", "{", "[1,[]]", "{\"a\":", "null", "7"}) {
    Json view = read(autoscaler());
    for (const std::string_view name : {"metrics", "current-metrics", "conditions", "behavior"}) {
      view["metadata"].make({"annotations"})["autoscaling.alpha.kubernetes.io/" + std::string(name)] = text;
    }
    TestServer server;
    const Answer answer = server.post(kFirst, to_text(view));
    EXPECT_TRUE(answer.code == 201 || answer.code == 422 || answer.code == 400) << text << ": " << answer.text;
  }
}

TEST(AutoscalerViews, AreBothDiscovered) {
  TestServer server;
  const Answer group = server.get("/apis/autoscaling");
  EXPECT_EQ(group.string_at({"preferredVersion", "version"}), "v2");
  EXPECT_EQ(group.body.find("versions")->if_array()->size(), 2U);
}

}  // namespace

}  // namespace spillway::apiserver
