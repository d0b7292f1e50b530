// ReplicationControllers: what becomes of a write, in the words of Kubernetes' API server; their scale; what is shown
// of them; what they own when they go.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

using api::Json;

const std::string kReplications = "/api/v1/namespaces/default/replicationcontrollers";

constexpr const char* kContainers = R"("spec":{"containers":[{"name":"c","image":"i"}]})";

std::string replication(const std::string& spec) {
  return R"({"metadata":{"name":"web"},"spec":{)" + spec + "}}";
}

/// A ReplicationController whose template has these labels and nothing else of its own.
std::string of_labels(const std::string& labels, const std::string& more = {}) {
  return replication(R"("template":{"metadata":{"labels":)" + labels + "}," + kContainers + "}" + more);
}

std::string reasons(const Answer& answer) {
  const std::string message = answer.string_at({"message"});
  const std::size_t begin = message.find("is invalid: ");
  return begin == std::string::npos ? message : message.substr(begin + 12);
}

TEST(ReplicationControllers, TakeTheLabelsOfTheirTemplate) {
  TestServer server;
  const Answer made = server.post(kReplications, of_labels(R"({"a":"b","c":"d"})"));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(to_text(*made.body.at({"spec", "selector"})), R"({"a":"b","c":"d"})");
  EXPECT_EQ(to_text(*made.body.at({"metadata", "labels"})), R"({"a":"b","c":"d"})");
  EXPECT_EQ(made.body.at({"spec", "replicas"})->if_int64(), 1);
  EXPECT_EQ(made.string_at({"spec", "template", "spec", "restartPolicy"}), "Always");
  EXPECT_EQ(made.body.at({"metadata", "generation"})->if_int64(), 1);
  EXPECT_EQ(to_text(*made.body.find("status")), R"({"replicas":0})");
  EXPECT_NE(server.at_rest("/registry/controllers/default/web"), "");
  const Answer own = server.post(
      kReplications, R"({"metadata":{"name":"own","labels":{"x":"y"}},"spec":{"selector":{"a":"b"},"template":)"
                     R"({"metadata":{"labels":{"a":"b","c":"d"}},)" +
                         std::string(kContainers) + "}}}");
  ASSERT_EQ(own.code, 201) << own.text;
  EXPECT_EQ(to_text(*own.body.at({"spec", "selector"})), R"({"a":"b"})");
  EXPECT_EQ(to_text(*own.body.at({"metadata", "labels"})), R"({"x":"y"})");
}

TEST(ReplicationControllers, AreValidated) {
  TestServer server;
  const auto why = [&](const std::string& body) { return reasons(server.post(kReplications, body)); };
  EXPECT_EQ(why(replication("")), "[spec.selector: Required value, spec.template: Required value]");
  EXPECT_EQ(why(replication(R"("template":{)" + std::string(kContainers) + "}")), "spec.selector: Required value");
  EXPECT_EQ(why(of_labels(R"({"a":"b"})", R"(,"replicas":-1)")),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0");
  EXPECT_EQ(why(of_labels(R"({"a":"b"})", R"(,"minReadySeconds":-1)")),
            "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0");
  EXPECT_EQ(why(of_labels(R"({"a":"b"})", R"(,"selector":{"a":"c"})")),
            R"(spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`)");
  const auto of_pods = [&](const std::string& more) {
    return why(
        replication(R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}])" +
                    more + "}}"));
  };
  EXPECT_EQ(of_pods(R"(,"restartPolicy":"Never")"),
            "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"");
  EXPECT_EQ(
      of_pods(R"(,"activeDeadlineSeconds":5)"),
      "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicationController is not "
      "Supported");
}

TEST(ReplicationControllers, MayChangeTheirSelector) {
  TestServer server;
  ASSERT_EQ(server.post(kReplications, of_labels(R"({"a":"b","c":"d"})")).code, 201);
  const Answer changed = server.merge(kReplications + "/web", R"({"spec":{"selector":{"c":null}}})");
  ASSERT_EQ(changed.code, 200) << changed.text;
  EXPECT_EQ(to_text(*changed.body.at({"spec", "selector"})), R"({"a":"b"})");
  EXPECT_EQ(changed.body.at({"metadata", "generation"})->if_int64(), 2);
  const Answer wrong = server.merge(kReplications + "/web", R"({"spec":{"replicas":-1}})");
  EXPECT_EQ(causes_of(wrong.body).if_array()->size(), 2U);
}

TEST(ReplicationControllers, HaveAStatus) {
  TestServer server;
  ASSERT_EQ(server.post(kReplications, of_labels(R"({"a":"b"})", R"(,"replicas":3)")).code, 201);
  const auto report = [&](const std::string& status) {
    return server.merge(kReplications + "/web/status", R"({"status":)" + status + "}");
  };
  EXPECT_EQ(reasons(report(R"({"replicas":1,"readyReplicas":2})")),
            "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas");
  EXPECT_EQ(reasons(report(R"({"replicas":3,"readyReplicas":1,"availableReplicas":2})")),
            "status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas");
  ASSERT_EQ(report(R"({"replicas":3,"readyReplicas":2})").code, 200);
  const Answer table = server.get(kReplications, "application/json;as=Table;v=v1;g=meta.k8s.io");
  Json cells = *table.body.find("rows")->if_array()->front().find("cells");
  cells.if_array()->erase(cells.if_array()->begin() + 4);  // the age changes
  EXPECT_EQ(to_text(cells), R"(["web",3,3,2,"c","i","a=b"])");
  EXPECT_EQ(server.get(kReplications + "?fieldSelector=status.replicas%3D3").body.at({"items"})->if_array()->size(),
            1U);
  EXPECT_EQ(server.get(kReplications + "?fieldSelector=status.replicas%3D2").body.at({"items"})->if_array()->size(),
            0U);
}

TEST(ReplicationControllers, AreScaled) {
  TestServer server;
  ASSERT_EQ(server.post(kReplications, of_labels(R"({"a":"b","c":"d"})")).code, 201);
  const Answer scale = server.get(kReplications + "/web/scale");
  EXPECT_EQ(scale.string_at({"status", "selector"}), "a=b,c=d");
  const Answer scaled = server.merge(kReplications + "/web/scale", R"({"spec":{"replicas":4}})");
  ASSERT_EQ(scaled.code, 200) << scaled.text;
  const Answer now = server.get(kReplications + "/web");
  EXPECT_EQ(now.body.at({"spec", "replicas"})->if_int64(), 4);
  EXPECT_EQ(now.body.at({"metadata", "generation"})->if_int64(), 2);
}

TEST(ReplicationControllers, KeepTheirPodsUnlessADeletionSaysOtherwise) {
  TestServer server;
  const std::string map = kMaps + "/owned";
  const auto code_after = [&](const std::string& options) {
    const Answer made = server.post(kReplications, of_labels(R"({"a":"b"})"));
    EXPECT_EQ(made.code, 201) << made.text;
    EXPECT_EQ(server
                  .post(kMaps, R"({"metadata":{"name":"owned","ownerReferences":[{"apiVersion":"v1",)"
                               R"("kind":"ReplicationController","name":"web","uid":")" +
                                   made.string_at({"metadata", "uid"}) + R"("}]}})")
                  .code,
              201);
    server.remove(kReplications + "/web", options);
    server.advance(seconds(30));
    EXPECT_EQ(server.get(kReplications + "/web").code, 404);
    return server.get(map).code;
  };
  EXPECT_EQ(code_after(""), 200);
  EXPECT_EQ(server.get(map).body.at({"metadata", "ownerReferences"}), nullptr);
  server.remove(map);
  EXPECT_EQ(code_after(R"({"propagationPolicy":"Background"})"), 404);
  EXPECT_EQ(code_after(R"({"propagationPolicy":"Foreground"})"), 404);
  EXPECT_EQ(code_after(R"({"propagationPolicy":"Orphan"})"), 200);
}

}  // namespace

}  // namespace spillway::apiserver
