// Pure parts of the write path: metadata rules, what changed, who may grant what, what an object is made of.
#include "api/json/json.h"
#include "apiserver/access/escalation.h"
#include "apiserver/access/node_restriction.h"
#include "apiserver/kinds/kind_table.h"
#include "apiserver/read/stored_object.h"
#include "apiserver/request/openapi.h"
#include "apiserver/resource/metadata_rules.h"
#include "apiserver/resource/object_change.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::apiserver {

namespace {

using api::Json;

Json json(std::string_view text) {
  return api::parse_json(text).value();
}

const ResourceRegistry& registry() {
  static const ResourceRegistry made(kinds::kind_hooks);
  return made;
}

std::vector<std::string> fields_of(const api::FieldErrors& errors) {
  std::vector<std::string> fields;
  for (const api::FieldError& error : errors.errors()) fields.push_back(error.field);
  return fields;
}

TEST(MetadataRules, NamesFollowTheRuleOfTheirKind) {
  EXPECT_TRUE(name_problems(NameRule::kDnsSubdomain, "a.b-c").empty());
  EXPECT_FALSE(name_problems(NameRule::kDnsLabel, "a.b").empty());
  EXPECT_FALSE(name_problems(NameRule::kDns1035Label, "1a").empty());
  EXPECT_TRUE(name_problems(NameRule::kPathSegment, "system:node:x").empty());
  EXPECT_FALSE(name_problems(NameRule::kPathSegment, "a/b").empty());
  EXPECT_FALSE(name_problems(NameRule::kPathSegment, "..").empty());
}

TEST(MetadataRules, EverythingWrongIsToldWithItsField) {
  api::FieldErrors errors;
  validate_metadata(registry().get("configmaps"),
                    json(R"({"metadata":{"name":"A b","labels":{"a b":"c","d":"e f"},"annotations":{"x y":"1"},
                             "finalizers":["nodomain","kubernetes"],
                             "ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","controller":true},
                                                {"apiVersion":"a/b/c","kind":"Pod","name":"a","uid":"1","controller":true}]}})"),
                    errors);
  EXPECT_EQ(fields_of(errors),
            (std::vector<std::string>{"metadata.name", "metadata.labels", "metadata.labels", "metadata.annotations",
                                      "metadata.ownerReferences.uid", "metadata.ownerReferences.apiVersion",
                                      "metadata.ownerReferences", "metadata.finalizers[0]"}));
}

Json deleted_with(const std::string& finalizers) {
  return json(R"({"metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":[)" + finalizers +
              "]}}");
}

TEST(MetadataRules, ADeletedObjectGetsNoNewFinalizers) {
  const Json old = deleted_with(R"("a.io/x","a.io/y")");
  api::FieldErrors none;
  validate_metadata_update(registry().get("configmaps"), UpdatedPart::kMain, deleted_with(R"("a.io/y")"), old, none);
  EXPECT_TRUE(none.empty());
  api::FieldErrors errors;
  validate_metadata_update(registry().get("configmaps"), UpdatedPart::kMain, deleted_with(R"("a.io/y","a.io/z")"), old,
                           errors);
  EXPECT_EQ(fields_of(errors), (std::vector<std::string>{"metadata.finalizers", "metadata.finalizers"}));
}

TEST(MetadataRules, CausesAreToldAsOftenAsTheChecksOfTheKindRun) {
  const Json old = json(R"({"metadata":{"name":"a","uid":"1"}})");
  const Json bad = json(R"({"metadata":{"name":"a","uid":"2","labels":{"x y":"z"},"finalizers":["nodomain"]}})");
  const auto count = [&](std::string_view resource, UpdatedPart part, std::string_view field) {
    api::FieldErrors errors;
    validate_metadata_update(registry().get(resource), part, bad, old, errors);
    return std::ranges::count(fields_of(errors), field);
  };
  EXPECT_EQ(count("configmaps", UpdatedPart::kMain, "metadata.labels"), 4);
  EXPECT_EQ(count("configmaps", UpdatedPart::kMain, "metadata.uid"), 2);
  EXPECT_EQ(count("configmaps", UpdatedPart::kMain, "metadata.finalizers[0]"), 2);
  EXPECT_EQ(count("nodes", UpdatedPart::kStatus, "metadata.labels"), 3);
  EXPECT_EQ(count("clusterroles.rbac.authorization.k8s.io", UpdatedPart::kMain, "metadata.labels"), 5);
  EXPECT_EQ(count("poddisruptionbudgets.policy", UpdatedPart::kMain, "metadata.labels"), 2);
  EXPECT_EQ(count("poddisruptionbudgets.policy", UpdatedPart::kMain, "metadata.finalizers[0]"), 0);
  EXPECT_EQ(count("leases.coordination.k8s.io", UpdatedPart::kMain, "metadata.finalizers[0]"), 0);
}

TEST(ObjectChange, TimesOfManagersDoNotCount) {
  const Json a = json(R"({"metadata":{"name":"a","managedFields":[{"manager":"m","time":"1"}]},"data":{"k":"v"}})");
  Json b = a;
  (*b.at({"metadata", "managedFields"})->if_array())[0]["time"] = "2";
  EXPECT_TRUE(same_but_manager_times(a, b));
  (*b.at({"metadata", "managedFields"})->if_array())[0]["manager"] = "n";
  EXPECT_FALSE(same_but_manager_times(a, b));
  Json c = a;
  c.make({"data", "l"}) = "v";
  EXPECT_FALSE(same_but_manager_times(a, c));
  EXPECT_FALSE(same_but_manager_times(c, a));
  Json d = a;
  d.erase({"metadata", "managedFields"});
  EXPECT_FALSE(same_but_manager_times(a, d));
}

TEST(ObjectChange, OnlyNewValuesOfASoleOwnerAreARepeat) {
  const Json old = json(R"({"metadata":{"name":"a","managedFields":[{"manager":"m","operation":"Update"}]},
                            "spec":{"renewTime":"1","list":["x"]}})");
  Json renewed = old;
  renewed["spec"]["renewTime"] = "2";
  EXPECT_TRUE(is_repeated_update(renewed, old, "m", ""));
  EXPECT_FALSE(is_repeated_update(renewed, old, "n", ""));
  EXPECT_FALSE(is_repeated_update(renewed, old, "m", "status"));
  Json longer = renewed;
  longer["spec"]["holder"] = "h";
  EXPECT_FALSE(is_repeated_update(longer, old, "m", ""));
  Json reordered = renewed;
  reordered["spec"]["list"] = Json::array({"y"});
  EXPECT_FALSE(is_repeated_update(reordered, old, "m", ""));
  Json labelled = renewed;
  labelled.make({"metadata", "labels", "a"}) = "b";
  EXPECT_FALSE(is_repeated_update(labelled, old, "m", ""));
  Json forgotten = renewed;
  forgotten["metadata"]["managedFields"] = Json::array({Json::object()});
  EXPECT_FALSE(is_repeated_update(forgotten, old, "m", ""));
}

TEST(StoredObject, TheRevisionIsPutInAndTakenOut) {
  for (const char* bytes :
       {R"({"kind":"ConfigMap","metadata":{"name":"a"}})", R"({"metadata":{},"z":"\"metadata\":{"})",
        R"({"a":{"metadata":{"x":1}},"metadata":{"name":"b"}})", R"({"kind":"X"})", "{}"}) {
    const Json document = json(bytes);
    const ObjectPtr object = make_object("ns/a", bytes, store::Revision(99), {});
    EXPECT_EQ(object->ns, "ns");
    EXPECT_EQ(object->name, "a");
    Json want = document;
    want.make({"metadata", "resourceVersion"}) = "99";
    EXPECT_EQ(object->document(), want) << *object->text;
    want.make({"metadata", "resourceVersion"}) = "100";
    EXPECT_EQ(json(object->text_at(store::Revision(100))), want);
    Json shown = object->document();
    EXPECT_EQ(to_stored_text(shown).find("resourceVersion"), std::string::npos);
  }
}

TEST(StoredObject, FieldsOfSelectorsAreExtracted) {
  const Resource& pods = registry().get("pods");
  const Extract meta = extract(pods, json(R"({"metadata":{"uid":"u","labels":{"a":"b"},"finalizers":["orphan"],
      "ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"1","controller":true}]},
      "spec":{"nodeName":"n1"},"status":{"phase":"Running","podIPs":[{"ip":"1"},{"ip":"2"}]}})"));
  EXPECT_EQ(meta.fields.front(), "n1");
  EXPECT_EQ(meta.fields[4], "false");  // spec.hostNetwork
  EXPECT_EQ(meta.fields[5], "Running");
  EXPECT_EQ(meta.fields[7], "1,2");
  EXPECT_TRUE(meta.orphaning);
  EXPECT_FALSE(meta.finalized);
  ASSERT_EQ(meta.owners.size(), 1U);
  EXPECT_TRUE(meta.owners.front().controller);
}

PolicyRule rule(std::vector<std::string> verbs, std::vector<std::string> resources,
                std::vector<std::string> names = {}) {
  return {std::move(verbs), {""}, std::move(resources), std::move(names), {}};
}

TEST(Escalation, OnlyWhatIsHeldCanBeGranted) {
  const PolicyRule held[] = {rule({"get", "list"}, {"pods", "configmaps"}),
                             rule({"*"}, {"secrets"}, {"s"}),
                             {{"get"}, {}, {}, {}, {"/metrics", "/debug/*"}}};
  EXPECT_TRUE(covers(held, rule({"get"}, {"pods"})));
  EXPECT_TRUE(covers(held, rule({"get"}, {"pods"}, {"p"})));
  EXPECT_TRUE(covers(held, rule({"delete"}, {"secrets"}, {"s"})));
  EXPECT_TRUE(covers(held, {{"get"}, {}, {}, {}, {"/debug/pprof"}}));
  EXPECT_FALSE(covers(held, rule({"get"}, {"secrets"})));
  EXPECT_FALSE(covers(held, rule({"get", "delete"}, {"pods"})));
  EXPECT_FALSE(covers(held, rule({"*"}, {"pods"})));
  EXPECT_FALSE(covers(held, rule({"get"}, {"*"})));
  EXPECT_FALSE(covers(held, {{"get"}, {}, {}, {}, {"/*"}}));
}

TEST(NodeRestriction, LabelsANodeMaySetOnItself) {
  for (const char* key :
       {"free", "example.com/x", "kubernetes.io/hostname", "topology.kubernetes.io/zone",
        "node.kubernetes.io/instance-type", "sub.kubelet.kubernetes.io/x", "beta.kubernetes.io/arch"}) {
    EXPECT_TRUE(node_may_label(key)) << key;
  }
  for (const char* key : {"node-restriction.kubernetes.io/x", "a.node-restriction.kubernetes.io/x",
                          "node-role.kubernetes.io/boss", "kubernetes.io/made-up", "x.k8s.io/y"}) {
    EXPECT_FALSE(node_may_label(key)) << key;
  }
}

TEST(OpenApi, EveryDocumentOfTheIndexIsThereAndPatchesTellTheirKind) {
  OpenApi openapi(registry(), "0");
  const Json index = json(openapi.v3_index().text);
  EXPECT_GE(index.find("paths")->if_object()->size(), 12U);
  for (const auto& [path, entry] : *index.find("paths")->if_object()) {
    const OpenApi::Document* found = openapi.v3_document(path);
    ASSERT_NE(found, nullptr) << path;
    const std::string* text = &found->text;
    // Every reference leads somewhere.
    const Json document = json(*text);
    const Json* schemas = document.at({"components", "schemas"});
    std::size_t references = 0;
    for (std::size_t at = text->find("#/components/schemas/"); at != std::string::npos;
         at = text->find("#/components/schemas/", at + 1)) {
      const std::size_t from = at + std::string_view("#/components/schemas/").size();
      const std::string name = text->substr(from, text->find('"', from) - from);
      EXPECT_NE(schemas->find(name), nullptr) << path << " " << name;
      ++references;
    }
    EXPECT_GT(references, 0U);
  }
  const Json core = json(openapi.v3_document("api/v1")->text);
  const Json* patch = core.at({"paths", "/api/v1/namespaces/{namespace}/pods/{name}", "patch"});
  ASSERT_NE(patch, nullptr);
  EXPECT_EQ(patch->string_at({"x-kubernetes-group-version-kind", "kind"}), "Pod");
  EXPECT_EQ(patch->find("parameters")->if_array()->front().string_at({"name"}), "fieldValidation");
  EXPECT_EQ(openapi.v3_document("apis/nosuch/v1"), nullptr);
  EXPECT_EQ(openapi.v2_protobuf().text.substr(0, 5), std::string("\x0a\x03") + "2.0");
}

}  // namespace

}  // namespace spillway::apiserver
