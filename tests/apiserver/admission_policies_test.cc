// Admission policies and their bindings as the server keeps them, and requests that meet them.
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;

const std::string kPolicyGroup = "/apis/admissionregistration.k8s.io/v1";
const std::string kPolicies = kPolicyGroup + "/validatingadmissionpolicies";
const std::string kBindings = kPolicyGroup + "/validatingadmissionpolicybindings";
const std::string kValidatedMaps = "/api/v1/namespaces/default/configmaps";

/// JSON with ' for ".
std::string quoted(std::string text) {
  for (char& c : text) c = c == '\'' ? '"' : c;
  return text;
}

std::string rules_for(std::string_view resources, std::string_view operations = "'*'", std::string_view group = "") {
  return fmt::format(
      "'matchConstraints':{{'resourceRules':[{{'operations':[{}],'apiGroups':['{}'],'apiVersions':['*'],"
      "'resources':[{}]}}]}}",
      operations, group, resources);
}

std::string policy(std::string_view name, std::string_view spec) {
  return quoted(fmt::format("{{'metadata':{{'name':'{}'}},'spec':{{{}}}}}", name, spec));
}

std::string status_of(TestServer& server, const std::string& name) {
  return api::to_text(*server.get(kPolicies + "/" + name).body.find("status"));
}

struct PolicyWorld {
  explicit PolicyWorld(AdmissionRules rules = {}) : server(ApiServer::Controllers::kUnknown, std::move(rules)) {}

  void add(std::string_view name, std::string_view spec, std::string_view binding = "'validationActions':['Deny']") {
    const Answer made = server.post(kPolicies, policy(name, spec));
    EXPECT_EQ(made.code, 201) << made.text;
    const Answer bound = server.post(kBindings, policy(name, fmt::format("'policyName':'{}',{}", name, binding)));
    EXPECT_EQ(bound.code, 201) << bound.text;
  }

  Answer create(std::string_view name, std::string_view data = "'a':'1'", std::string_view query = "") {
    return server.post(kValidatedMaps + std::string(query),
                       quoted(fmt::format("{{'metadata':{{'name':'{}'}},'data':{{{}}}}}", name, data)));
  }

  TestServer server;
};

std::string message_of(const Answer& answer) {
  return answer.string_at({"message"});
}

/// spec.matchConstraints with one rule for the version v1.
std::string typed_rule(std::string_view group, std::string_view resources) {
  return fmt::format(
      "'matchConstraints':{{'resourceRules':[{{'operations':['CREATE'],'apiGroups':['{}'],'apiVersions':['v1'],"
      "'resources':[{}]}}]}}",
      group, resources);
}

TEST(PolicyTypeChecking, WarnsOfWhatDoesNotFitTheKindsOfTheRules) {
  TestServer server;
  const std::string spec = typed_rule("apps", "'deployments','replicasets'") +
                           ",'variables':[{'name':'n','expression':'object.spec.replicas'}],'validations':["
                           "{'expression':'object.replicas > 1'},{'expression':'variables.n == \\'a\\''},"
                           "{'expression':'variables.n > 1','messageExpression':'string(object.spec.paused)'}]";
  ASSERT_EQ(server.post(kPolicies, policy("p", spec)).code, 201);
  const Json status = *server.get(kPolicies + "/p").body.find("status");
  EXPECT_EQ(status.at({"observedGeneration"})->if_int64(), 1);
  const Json* warnings = status.at({"typeChecking", "expressionWarnings"});
  ASSERT_NE(warnings, nullptr) << api::to_text(status);
  ASSERT_EQ(warnings->if_array()->size(), 3U) << api::to_text(status);
  const auto& list = *warnings->if_array();
  EXPECT_EQ(list[0].string_at({"fieldRef"}), "spec.validations[0].expression");
  EXPECT_EQ(list[0].string_at({"warning"}),
            "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | "
            "......^\napps/v1, Kind=ReplicaSet: ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > "
            "1\n | ......^\n");
  EXPECT_EQ(list[1].string_at({"fieldRef"}), "spec.validations[1].expression");
  EXPECT_TRUE(list[1].string_at({"warning"}).contains("'_==_' applied to '(int, string)'"));
  EXPECT_EQ(list[2].string_at({"fieldRef"}), "spec.validations[2].messageExpression");
  EXPECT_EQ(
      list[2].string_at({"warning"}),
      "apps/v1, Kind=ReplicaSet: ERROR: <input>:1:19: undefined field 'paused'\n | string(object.spec.paused)\n | "
      "..................^\n");
  // A mended policy has no warnings.
  ASSERT_EQ(
      server.merge(kPolicies + "/p", R"({"spec":{"validations":[{"expression":"object.spec.replicas > 1"}]}})").code,
      200);
  EXPECT_EQ(status_of(server, "p"), R"({"observedGeneration":2,"typeChecking":{}})");
}

/// The policy is compiled in the turn in which the store takes it; a check in that turn would make it longer.
TEST(PolicyTypeChecking, BeginsInATurnOfItsOwn) {
  TestServer server;
  const auto wakeups_of = [&](const std::string& path, const std::string& body) {
    server.slices = 0;
    EXPECT_EQ(server.post(path, body).code, 201);
    return server.slices;
  };
  const int usual = wakeups_of(kMaps, R"({"metadata":{"name":"m"}})");
  // No kind is named, so the check ends in its first slice.
  const std::string spec = typed_rule("*", "'pods'") + ",'validations':[{'expression':'true'}]";
  EXPECT_EQ(wakeups_of(kPolicies, policy("p", spec)), usual + 2) << "the check, and the turn after its status";
  EXPECT_EQ(status_of(server, "p"), R"({"observedGeneration":1,"typeChecking":{}})");
}

/// After a start each stored policy has a turn in which it is compiled, and one in which its check is due.
TEST(PolicyTypeChecking, OneStoredPolicyInATurn) {
  constexpr int kMany = 20;
  TestServer server;
  for (int i = 0; i < kMany; ++i) {
    const std::string spec = typed_rule("*", "'pods'") + ",'validations':[{'expression':'true'}]";
    ASSERT_EQ(server.post(kPolicies, policy(fmt::format("p{}", i), spec)).code, 201);
  }
  server.slices = 0;
  server.restart();
  EXPECT_GE(server.slices, 2 * kMany - 1) << "the first one is compiled in the turn of the load";
  EXPECT_EQ(status_of(server, "p7"), R"({"observedGeneration":1,"typeChecking":{}})");
}

TEST(PolicyTypeChecking, QuantitiesAndParameters) {
  TestServer server;
  const std::string spec = typed_rule("", "'pods'") +
                           ",'paramKind':{'apiVersion':'v1','kind':'ConfigMap'},'validations':["
                           "{'expression':'object.spec.containers.all(c, has(c.resources.limits))'},"
                           "{'expression':'params.data.max == 1'},{'expression':'object.spec.priority > 1'}]";
  ASSERT_EQ(server.post(kPolicies, policy("p", spec)).code, 201);
  const std::string status = status_of(server, "p");
  EXPECT_TRUE(status.contains("undefined field 'limits'")) << status;
  EXPECT_TRUE(status.contains("'_==_' applied to '(string, int)'")) << status;
  EXPECT_FALSE(status.contains("spec.validations[2]")) << status;
}

TEST(PolicyTypeChecking, CustomKindsHaveTheTypesOfTheirSchemas) {
  TestServer server;
  const std::string definition =
      "{'metadata':{'name':'crontabs.example.com'},'spec':{'group':'example.com','scope':'Namespaced','names':{'plural'"
      ":"
      "'crontabs','kind':'CronTab'},'versions':[{'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':{"
      "'type':'object','properties':{'spec':{'type':'object','properties':{'replicas':{'type':'integer'}}}}}}}]}}";
  ASSERT_EQ(server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", quoted(definition)).code, 201);
  const std::string spec = typed_rule("example.com", "'crontabs'") +
                           ",'validations':[{'expression':'object.spec.replicas == \\'a\\''},"
                           "{'expression':'object.metadata.name != \\'a\\''},{'expression':'object.spec.nope == 1'},"
                           "{'expression':'object.spec == 1'}]";
  ASSERT_EQ(server.post(kPolicies, policy("p", spec)).code, 201);
  const std::string status = status_of(server, "p");
  EXPECT_TRUE(status.contains("example.com/v1, Kind=CronTab: ERROR: <input>:1:22: found no matching overload"))
      << status;
  EXPECT_TRUE(status.contains("undefined field 'nope'")) << status;
  EXPECT_TRUE(status.contains("'_==_' applied to '(CronTab.spec, int)'")) << status;
  EXPECT_FALSE(status.contains("spec.validations[1]")) << status;
}

TEST(AdmissionPolicyKinds, DefaultsGenerationAndStatus) {
  TestServer server;
  const Answer made =
      server.post(kPolicies, policy("p", rules_for("'pods'") + ",'validations':[{'expression':'true'}],'paramKind':"
                                                               "{'apiVersion':'v1','kind':'ConfigMap'}"));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(api::to_text(*made.body.find("spec")),
            R"({"failurePolicy":"Fail","matchConstraints":{"matchPolicy":"Equivalent","namespaceSelector":{},)"
            R"("objectSelector":{},"resourceRules":[{"apiGroups":[""],"apiVersions":["*"],"operations":["*"],)"
            R"("resources":["pods"],"scope":"*"}]},"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},)"
            R"("validations":[{"expression":"true"}]})");
  EXPECT_EQ(made.body.at({"metadata", "generation"})->if_int64(), 1);
  EXPECT_EQ(api::to_text(*made.body.find("status")), "{}");
  EXPECT_EQ(status_of(server, "p"), R"({"observedGeneration":1,"typeChecking":{}})");
  const Answer changed = server.merge(kPolicies + "/p", R"({"spec":{"failurePolicy":"Ignore"}})");
  ASSERT_EQ(changed.code, 200) << changed.text;
  EXPECT_EQ(changed.body.at({"metadata", "generation"})->if_int64(), 2);
  EXPECT_EQ(status_of(server, "p"), R"({"observedGeneration":2,"typeChecking":{}})");
  const Answer status = server.merge(
      kPolicies + "/p/status",
      R"({"metadata":{"labels":{"a":"b"}},"spec":{"failurePolicy":"Fail"},"status":{"typeChecking":{"expressionWarnings":)"
      R"([{"fieldRef":"spec.validations[0].expression","warning":"w"}]}}})");
  ASSERT_EQ(status.code, 200) << status.text;
  EXPECT_EQ(status.string_at({"spec", "failurePolicy"}), "Ignore");
  EXPECT_EQ(status.body.at({"metadata", "labels"}), nullptr);
  EXPECT_NE(status.body.at({"status", "typeChecking"}), nullptr);
  const Answer table = server.get(kPolicies, "application/json;as=Table;v=v1;g=meta.k8s.io");
  EXPECT_TRUE(table.text.contains(R"("cells":["p",1,"v1/ConfigMap",)")) << table.text;
  const Answer bound = server.post(
      kBindings, policy("b",
                        "'policyName':'p','validationActions':['Deny'],'matchResources':{},'paramRef':{'name':'m',"
                        "'parameterNotFoundAction':'Deny'}"));
  ASSERT_EQ(bound.code, 201) << bound.text;
  EXPECT_EQ(api::to_text(*bound.body.at({"spec", "matchResources"})),
            R"({"matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{}})");
  EXPECT_TRUE(
      server.get(kBindings, "application/json;as=Table;v=v1;g=meta.k8s.io").text.contains(R"(["b","p","*/m",)"));
}

/// The messages of the problems, one for each cause.
std::vector<std::string> causes(TestServer& server, const std::string& path, std::string_view spec) {
  const Answer answer = server.post(path + "?dryRun=All", policy("p", spec));
  std::vector<std::string> texts;
  EXPECT_EQ(answer.code, 422) << spec << answer.text;
  const Json* list = answer.body.at({"details", "causes"});
  if (list == nullptr || list->if_array() == nullptr) return texts;
  for (const Json& cause : *list->if_array()) {
    texts.push_back(fmt::format("{}: {}", cause.string_at({"field"}), cause.string_at({"message"})));
  }
  return texts;
}

TEST(AdmissionPolicyKinds, PoliciesAreValidated) {
  TestServer server;
  using Texts = std::vector<std::string>;
  const std::string rules = rules_for("'pods'");
  const std::string good = ",'validations':[{'expression':'true'}]";
  const auto wrong = [&](const std::string& spec) { return causes(server, kPolicies, spec); };
  EXPECT_EQ(
      wrong("'failurePolicy':'Fail'"),
      (Texts{"spec.matchConstraints: Required value",
             "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
             "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item"}));
  EXPECT_EQ(wrong("'matchConstraints':{}" + good), Texts{"spec.matchConstraints.resourceRules: Required value"});
  EXPECT_EQ(wrong(rules + good + ",'failurePolicy':'Perhaps'"),
            Texts{R"(spec.failurePolicy: Unsupported value: "Perhaps": supported values: "Fail", "Ignore")"});
  EXPECT_EQ(wrong(rules + good + ",'paramKind':{'apiVersion':'a/b/c','kind':''}"),
            (Texts{R"(spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c)",
                   "spec.paramKind.kind: Required value"}));
  EXPECT_EQ(wrong(rules + ",'validations':[{'expression':''}]"),
            Texts{"spec.validations[0].expression: Required value: expression is not specified"});
  EXPECT_EQ(wrong(rules + ",'validations':[{'expression':'1'}]"),
            Texts{R"(spec.validations[0].expression: Invalid value: "1": must evaluate to bool but got int)"});
  EXPECT_TRUE(wrong(rules + ",'validations':[{'expression':'params.a == 1'}]")
                  .at(0)
                  .contains("undeclared reference to 'params'"));
  EXPECT_EQ(
      wrong(rules + ",'validations':[{'expression':'true','message':'a\\nb','messageExpression':' ','reason':'Gone'}]"),
      (Texts{R"(spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified)",
             R"(spec.validations[0].message: Invalid value: "a\nb": message must not contain line breaks)",
             R"(spec.validations[0].reason: Unsupported value: "Gone": supported values: "Forbidden", "Invalid", )"
             R"("RequestEntityTooLarge")"}));
  EXPECT_EQ(wrong(rules + ",'validations':[{'expression':'true','messageExpression':'1'}]"),
            Texts{R"(spec.validations[0].messageExpression: Invalid value: "1": must evaluate to string but got int)"});
  EXPECT_EQ(wrong(rules + good + ",'variables':[{'name':'a-b','expression':'1'},{'name':'in','expression':' '}]"),
            (Texts{R"(spec.variables[0].name: Invalid value: "a-b": name is not a valid CEL identifier)",
                   R"(spec.variables[1].name: Invalid value: "in": name is not a valid CEL identifier)",
                   "spec.variables[1].expression: Required value: expression is not specified"}));
  EXPECT_EQ(
      wrong(rules + good +
            ",'auditAnnotations':[{'key':'k','valueExpression':'1'},{'key':'k','valueExpression':'null'}]"),
      (Texts{
          R"(spec.auditAnnotations[0].valueExpression: Invalid value: "1": must evaluate to one of [string null_type] but got int)",
          R"(spec.auditAnnotations[1].key: Duplicate value: "k")"}));
  EXPECT_EQ(
      wrong(rules + good + ",'matchConditions':[{'name':'c','expression':'object.a'}]"),
      Texts{R"(spec.matchConditions[0].expression: Invalid value: "object.a": must evaluate to bool but got dyn)"});
}

TEST(AdmissionPolicyKinds, BindingsAreValidated) {
  TestServer server;
  using Texts = std::vector<std::string>;
  const auto wrong = [&](const std::string& spec) { return causes(server, kBindings, spec); };
  const std::string good = "'policyName':'p','validationActions':['Deny']";
  EXPECT_EQ(wrong("'validationActions':[]").front(), "spec.policyName: Required value");
  EXPECT_EQ(wrong("'policyName':'p'"),
            Texts{"spec.validationActions: Required value: at least one validation action is required"});
  EXPECT_EQ(
      wrong("'policyName':'p','validationActions':['Deny','Warn']"),
      Texts{R"(spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and Warn )"
            "(repeating the same validation failure information in the API response and headers serves no purpose)"});
  EXPECT_EQ(
      wrong("'policyName':'p','validationActions':['Shout']"),
      Texts{R"(spec.validationActions[0]: Unsupported value: "Shout": supported values: "Audit", "Deny", "Warn")"});
  EXPECT_EQ(wrong(good + ",'paramRef':{}"),
            (Texts{"spec.paramRef: Required value: one of name or selector must be specified",
                   "spec.paramRef.parameterNotFoundAction: Required value"}));
  EXPECT_EQ(wrong(good + ",'paramRef':{'name':'a','selector':{},'parameterNotFoundAction':'Deny'}"),
            (Texts{"spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
                   "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive"}));
}

TEST(AdmissionPolicies, AWriteIsRefused) {
  PolicyWorld world;
  world.add("small",
            rules_for("'configmaps'") +
                ",'validations':[{'expression':'size(object.data) < 2','message':"
                "'too much','reason':'Forbidden'}]",
            "'validationActions':['Deny']");
  EXPECT_EQ(world.create("a").code, 201);
  const Answer refused = world.create("b", "'a':'1','b':'2'");
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(refused.string_at({"reason"}), "Forbidden");
  EXPECT_EQ(
      message_of(refused),
      "configmaps \"b\" is forbidden: ValidatingAdmissionPolicy 'small' with binding 'small' denied request: too much");
  EXPECT_EQ(world.create("b", "'a':'1','b':'2'", "?dryRun=All").code, 403);
  EXPECT_EQ(world.server.merge(kValidatedMaps + "/a", R"({"data":{"b":"2"}})").code, 403);
  EXPECT_EQ(world.server.get(kValidatedMaps + "/b").code, 404);
  EXPECT_EQ(world.server.merge(kPolicies + "/small", R"({"spec":{"validations":[{"expression":"true"}]}})").code, 200);
  EXPECT_EQ(world.create("b", "'a':'1','b':'2'").code, 201);
}

TEST(AdmissionPolicies, ALaterPolicyCountsAtOnce) {
  PolicyWorld world;
  world.add("other", rules_for("'secrets'") + ",'validations':[{'expression':'false'}]");
  EXPECT_EQ(world.create("a").code, 201) << "from now on it is known that no policy is about new ConfigMaps";
  world.add("no", rules_for("'configmaps'") + ",'validations':[{'expression':'false'}]");
  EXPECT_EQ(world.create("b").code, 422);
}

TEST(AdmissionPolicies, WithoutABindingNothingHappens) {
  PolicyWorld world;
  world.add("no", rules_for("'configmaps'") + ",'validations':[{'expression':'false'}]");
  EXPECT_EQ(world.create("a").code, 422);
  EXPECT_EQ(world.server.remove(kBindings + "/no").code, 200);
  EXPECT_EQ(world.create("a").code, 201);
  world.server.restart();
  EXPECT_EQ(world.create("b").code, 201);
  EXPECT_EQ(world.server.post(kBindings, policy("no", "'policyName':'no','validationActions':['Deny']")).code, 201);
  world.server.restart();
  EXPECT_EQ(world.create("c").code, 422);
}

TEST(AdmissionPolicies, DeletesSubresourcesAndNamespaces) {
  PolicyWorld world;
  EXPECT_EQ(world.create("a").code, 201);
  world.add("keep", rules_for("'configmaps'", "'DELETE'") +
                        ",'validations':[{'expression':'object == null && oldObject.data.a != \\'1\\''}]");
  EXPECT_EQ(world.server.remove(kValidatedMaps + "/a").code, 422);
  EXPECT_EQ(world.server.get(kValidatedMaps + "/a").code, 200);
  world.add("names",
            rules_for("'namespaces'", "'CREATE'") +
                ",'validations':[{'expression':'namespaceObject == null && object.metadata.name != \\'bad\\''}]");
  EXPECT_EQ(world.server.post("/api/v1/namespaces", R"({"metadata":{"name":"good"}})").code, 201);
  EXPECT_EQ(world.server.post("/api/v1/namespaces", R"({"metadata":{"name":"bad"}})").code, 422);
}

TEST(AdmissionPolicies, ExpressionsSeeTheRequest) {
  PolicyWorld world;
  world.add("see",
            rules_for("'configmaps'") +
                ",'variables':[{'name':'ns','expression':'namespaceObject.metadata.name'}],"
                "'validations':[{'expression':'request.operation == \\'CREATE\\' && variables.ns == \\'default\\' && "
                "request.resource.resource == \\'configmaps\\' && oldObject == null && "
                "authorizer.requestResource.check(\\'create\\').allowed()'}]");
  const Answer made = world.create("a");
  EXPECT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(world.server.merge(kValidatedMaps + "/a", R"({"data":{"b":"2"}})").code, 422);
}

TEST(AdmissionPolicies, ParametersAreReadFromTheCluster) {
  PolicyWorld world;
  world.add("limit",
            rules_for("'configmaps'") +
                ",'paramKind':{'apiVersion':'v1','kind':'ConfigMap'},"
                "'matchConditions':[{'name':'n','expression':'object.metadata.name != \\'limits\\''}],"
                "'validations':[{'expression':'size(object.data) <= int(params.data.max)',"
                "'messageExpression':'\\'at most \\' + params.data.max'}]",
            "'validationActions':['Deny'],'paramRef':{'name':'limits','parameterNotFoundAction':'Deny'}");
  EXPECT_EQ(
      message_of(world.create("a")),
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'limit' with binding 'limit' denied request: failed to "
      "configure binding: no params found for policy binding with `Deny` parameterNotFoundAction");
  EXPECT_EQ(world.server
                .post("/api/v1/namespaces/kube-system/configmaps",
                      quoted("{'metadata':{'name':'limits'},'data':{'max':'9'}}"))
                .code,
            422);
}

TEST(AdmissionPolicies, OneOfAllNamespacesServesAll) {
  PolicyWorld world;
  ASSERT_EQ(world.create("limits", "'max':'1'").code, 201);
  world.add("limit",
            rules_for("'configmaps'") +
                ",'paramKind':{'apiVersion':'v1','kind':'ConfigMap'},"
                "'validations':[{'expression':'size(object.data) <= int(params.data.max)',"
                "'messageExpression':'\\'at most \\' + params.data.max'}]",
            "'validationActions':['Deny'],'paramRef':{'name':'limits','namespace':'default','parameterNotFoundAction':'"
            "Deny'}");
  EXPECT_EQ(world.create("a").code, 201);
  EXPECT_TRUE(message_of(world.create("b", "'a':'1','b':'2'")).ends_with("denied request: at most 1"));
  EXPECT_EQ(world.server.merge(kValidatedMaps + "/limits", R"({"data":{"max":"2"}})").code, 200);
  EXPECT_EQ(world.create("b", "'a':'1','b':'2'").code, 201);
}

/// One request holds at most this many bytes of parameters, however many objects the selector matches.
TEST(AdmissionPolicies, SelectedParametersAreBoundedInBytes) {
  PolicyWorld world;
  const std::string text(1'000'000, 'x');
  const auto create_parameter = [&](int number) {
    return world.server
        .post(kValidatedMaps, R"({"metadata":{"name":"large-)" + std::to_string(number) +
                                  R"(","labels":{"for":"policy"}},"data":{"text":")" + text + R"("}})")
        .code;
  };
  for (int i = 0; i < 16; ++i) ASSERT_EQ(create_parameter(i), 201);
  world.add("large",
            rules_for("'configmaps'") +
                ",'paramKind':{'apiVersion':'v1','kind':'ConfigMap'},"
                "'validations':[{'expression':'has(params.data)'}]",
            "'validationActions':['Deny'],'paramRef':{'selector':{'matchLabels':{'for':'policy'}},'namespace':"
            "'default','parameterNotFoundAction':'Deny'}");
  EXPECT_EQ(world.create("a").code, 201) << "16 MB are fewer than 16 MiB";
  ASSERT_EQ(create_parameter(16), 201);
  const Answer refused = world.create("b");
  EXPECT_EQ(refused.code, 422) << refused.text;
  EXPECT_TRUE(message_of(refused).contains("paramRef.selector selects more than 16Mi of objects"))
      << message_of(refused);
}

TEST(AdmissionPolicies, WarnAndCount) {
  PolicyWorld world;
  world.add("w", rules_for("'configmaps'") + ",'validations':[{'expression':'false','message':'mind'}]",
            "'validationActions':['Warn','Audit']");
  const Answer made = world.create("a");
  EXPECT_EQ(made.code, 201);
  bool warned = false;
  for (const auto& [name, value] : made.headers) {
    warned = warned || (name == "Warning" &&
                        value.contains("Validation failed for ValidatingAdmissionPolicy 'w' with binding 'w': mind"));
  }
  EXPECT_TRUE(warned);
  EXPECT_TRUE(
      world.server.get("/metrics")
          .text.contains(
              R"(apiserver_validating_admission_policy_check_total{enforcement_action="warn",error_type="no_error",policy="w",)"
              R"(policy_binding="w"} 1)"))
      << world.server.get("/metrics").text;
}

TEST(AdmissionPolicies, TheirOwnKindsAreExempt) {
  PolicyWorld world;
  world.add("all",
            quoted("'matchConstraints':{'resourceRules':[{'operations':['*'],'apiGroups':['*'],'apiVersions':['*'],"
                   "'resources':['*/*']}]},'validations':[{'expression':'false'}]"));
  EXPECT_EQ(world.create("a").code, 422);
  EXPECT_EQ(world.server.merge(kPolicies + "/all", R"({"metadata":{"labels":{"a":"b"}}})").code, 200);
  EXPECT_EQ(world.server.remove(kBindings + "/all").code, 200);
  EXPECT_EQ(world.server.remove(kPolicies + "/all").code, 200);
  EXPECT_EQ(world.create("a").code, 201);
}

TEST(AdmissionPolicies, CanBeSwitchedOff) {
  PolicyWorld world({.admission_policies = false});
  world.add("no", rules_for("'configmaps'") + ",'validations':[{'expression':'false'}]");
  EXPECT_EQ(world.create("a").code, 201);
}

}  // namespace

}  // namespace spillway::apiserver
