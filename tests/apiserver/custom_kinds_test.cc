// Custom kinds: a definition becomes a kind that is served like any other, changes, and goes with its objects.
#include "apiserver/crontabs.h"
#include "apiserver/request/read_request.h"
#include "apiserver/resource/custom_kind.h"
#include "apiserver/server_fixture.h"
#include "apiserver/shared_store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using Names = std::vector<std::string>;

/// "Status/Reason" of a condition.
std::string condition(const Json& object, std::string_view type) {
  const Json* list = object.at({"status", "conditions"});
  if (list == nullptr || list->if_array() == nullptr) return {};
  for (const Json& each : *list->if_array()) {
    if (each.string_at({"type"}) == type) {
      return fmt::format("{}/{}", each.string_at({"status"}), each.string_at({"reason"}));
    }
  }
  return {};
}

void define(TestServer& server, const std::string& body) {
  const Answer made = server.post(kDefinitionsPath, body);
  ASSERT_EQ(made.code, 201) << made.text;
  server.run_until_idle();
}

TEST(CustomKinds, ADefinitionIsNamedEstablishedAndServed) {
  TestServer server;
  EXPECT_EQ(server.get(kTabs).code, 404);
  define(server, definition());
  const Answer made = server.get(kDefinitionsPath + "/crontabs.stable.example.com");
  EXPECT_EQ(condition(made.body, "NamesAccepted"), "True/NoConflicts");
  EXPECT_EQ(condition(made.body, "Established"), "True/InitialNamesAccepted");
  EXPECT_EQ(made.string_at({"status", "acceptedNames", "listKind"}), "CronTabList");
  EXPECT_EQ(made.string_at({"status", "acceptedNames", "singular"}), "crontab");
  EXPECT_EQ(api::to_text(*made.body.at({"status", "storedVersions"})), R"(["v1"])");
  const Answer list = server.get(kTabs);
  EXPECT_EQ(list.code, 200) << list.text;
  EXPECT_EQ(list.string_at({"kind"}), "CronTabList");
  EXPECT_EQ(server.get("/apis/stable.example.com/v1/crontabs").code, 200);
}

TEST(CustomKinds, TheAnswerToACreationHasAnEmptyStatus) {
  TestServer server;
  const Answer made = server.post(kDefinitionsPath + "?dryRun=All", definition());
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(*made.body.find("status"),
            *api::parse_json(R"({"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":["v1"]})"));
}

TEST(CustomKinds, ADefinitionOfAProtectedGroupShowsItsApproval) {
  constexpr std::string_view kCondition = "KubernetesAPIApprovalPolicyConformant";
  TestServer server;
  const auto annotated = [](std::string_view plural, std::string_view kind, std::string_view why) {
    Json made = *api::parse_json(definition(plural, kind, "example.k8s.io", kV1, "[]"));
    made.make({"metadata", "annotations", "api-approved.kubernetes.io"}) = why;
    return api::to_text(made);
  };
  define(server, annotated("apprs", "Appr", "https://github.com/kubernetes/enhancements/pull/1"));
  const std::string path = kDefinitionsPath + "/apprs.example.k8s.io";
  const Answer approved = server.get(path);
  EXPECT_EQ(condition(approved.body, kCondition), "True/ApprovedAnnotation");
  EXPECT_NE(approved.text.find("approved in https://github.com/kubernetes/enhancements/pull/1"), std::string::npos);
  define(server, annotated("others", "Other", "unapproved, experimental"));
  const Answer bypassed = server.get(kDefinitionsPath + "/others.example.k8s.io");
  EXPECT_EQ(condition(bypassed.body, kCondition), "False/UnapprovedAnnotation");
  EXPECT_NE(bypassed.text.find(R"(not approved: \"unapproved, experimental\")"), std::string::npos) << bypassed.text;
  ASSERT_EQ(server.merge(path, R"({"metadata":{"annotations":{"api-approved.kubernetes.io":"unapproved"}}})").code,
            200);
  server.run_until_idle();
  EXPECT_EQ(condition(server.get(path).body, kCondition), "False/UnapprovedAnnotation") << "the annotation changed";
  define(server, definition());
  EXPECT_EQ(condition(server.get(kDefinitionsPath + "/crontabs.stable.example.com").body, kCondition), "");
}

TEST(CustomKinds, ADefinitionMayHaveAsManyBytesAsEtcdTakes) {
  TestServer server;
  const auto sized = [](std::string_view plural, std::string_view kind, std::size_t bytes) {
    Json made = *api::parse_json(definition(plural, kind));
    made.at({"spec", "versions"})->if_array()->front().make({"schema", "openAPIV3Schema", "description"}) =
        std::string(bytes, 'd');
    return api::to_text(made);
  };
  define(server, sized("crontabs", "CronTab", 1'400'000));
  EXPECT_EQ(server.get(kTabs).code, 200);
  const Answer larger = server.post(kDefinitionsPath, sized("others", "Other", 1'600'000));
  EXPECT_EQ(larger.code, 413) << larger.text.substr(0, 500);
  EXPECT_NE(larger.text.find("may have at most 1572864 bytes"), std::string::npos) << larger.text.substr(0, 500);
}

TEST(CustomKinds, DiscoveryListsIt) {
  TestServer server;
  define(server, definition());
  const Answer group = server.get("/apis/stable.example.com");
  EXPECT_EQ(group.code, 200);
  EXPECT_EQ(group.string_at({"preferredVersion", "groupVersion"}), "stable.example.com/v1");
  const Answer rows = server.get("/apis/stable.example.com/v1");
  EXPECT_NE(rows.text.find(R"("name":"crontabs/scale")"), std::string::npos) << rows.text;
  EXPECT_NE(rows.text.find(R"("shortNames":["ct"])"), std::string::npos) << rows.text;
  const Answer schema = server.get("/openapi/v3/apis/stable.example.com/v1");
  EXPECT_NE(schema.text.find(R"("com.example.stable.v1.CronTab")"), std::string::npos) << schema.text;
  EXPECT_NE(schema.text.find(R"("pattern")"), std::string::npos) << schema.text;
  EXPECT_NE(server.get("/openapi/v3").text.find("apis/stable.example.com/v1"), std::string::npos);
}

TEST(CustomKinds, ObjectsAreDefaultedPrunedAndChecked) {
  TestServer server;
  define(server, definition());
  const Answer made = server.post(kTabs, tab("a", R"({"cron":"* *","extra":1})"));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(api::to_text(*made.body.find("spec")), R"({"cron":"* *","replicas":2})");
  EXPECT_EQ(*made.body.at({"metadata", "generation"}), Json(1));
  const Answer strict = server.post(kTabs + "?fieldValidation=Strict", tab("b", R"({"cron":"* *","extra":1})"));
  EXPECT_EQ(strict.code, 400);
  EXPECT_NE(strict.text.find(R"(unknown field \"spec.extra\")"), std::string::npos) << strict.text;
  const Answer bad = server.post(kTabs, tab("b", R"({"cron":"daily","replicas":11})"));
  EXPECT_EQ(bad.code, 422) << bad.text;
  EXPECT_EQ(api::to_text(causes_of(bad.body)),
            R"([["spec.cron","FieldValueInvalid"],["spec.replicas","FieldValueInvalid"]])");
  EXPECT_EQ(server.post(kTabs, tab("b", "{}")).code, 422);
  EXPECT_EQ(server
                .post(kTabs, R"({"apiVersion":"stable.example.com/v1","kind":"Other","metadata":{"name":"b"},
                                   "spec":{"cron":"*"}})")
                .code,
            422);
  EXPECT_EQ(
      server.post(kTabs, R"({"apiVersion":"stable.example.com/v2","kind":"CronTab","metadata":{"name":"b"}})").code,
      400);
  EXPECT_EQ(server.post(kTabs, R"({"metadata":{"name":"b"},"spec":{"cron":"*"}})").code, 400);
}

TEST(CustomKinds, UpdatesPatchesAndGenerations) {
  TestServer server;
  define(server, definition());
  const Answer made = server.post(kTabs, tab("a"));
  const std::string path = kTabs + "/a";
  EXPECT_EQ(server.strategic(path, R"({"spec":{"replicas":3}})").code, 415);
  const Answer merged = server.merge(path, R"({"spec":{"replicas":3}})");
  ASSERT_EQ(merged.code, 200) << merged.text;
  EXPECT_EQ(*merged.body.at({"metadata", "generation"}), Json(2));
  EXPECT_EQ(server.merge(path, R"({"metadata":{"labels":{"a":"b"}}})").body.at({"metadata", "generation"})->if_int64(),
            2);
  EXPECT_EQ(server.json_patch(path, R"([{"op":"replace","path":"/spec/replicas","value":0}])").code, 422);
  EXPECT_EQ(server.put(path, made.text).code, 409) << "its resourceVersion is stale";
  const Answer status = server.merge(path + "/status", R"({"status":{"replicas":3},"spec":{"replicas":9},
                                                           "metadata":{"labels":{"a":"c"}}})");
  ASSERT_EQ(status.code, 200) << status.text;
  EXPECT_EQ(*status.body.at({"spec", "replicas"}), Json(3));
  EXPECT_EQ(*status.body.at({"status", "replicas"}), Json(3));
  EXPECT_EQ(status.string_at({"metadata", "labels", "a"}), "b") << "a status update changes no metadata";
  EXPECT_EQ(*status.body.at({"metadata", "generation"}), Json(2));
  const Answer main = server.merge(path, R"({"status":{"replicas":7}})");
  EXPECT_EQ(*main.body.at({"status", "replicas"}), Json(3)) << "the main endpoint leaves the status";
}

TEST(CustomKinds, TheScaleIsAtThePathsOfTheDefinition) {
  TestServer server;
  define(server, definition());
  server.post(kTabs, tab("a"));
  server.merge(kTabs + "/a/status", R"({"status":{"replicas":1,"selector":"app=a"}})");
  const Answer scale = server.get(kTabs + "/a/scale");
  EXPECT_EQ(*scale.body.at({"spec", "replicas"}), Json(2)) << scale.text;
  EXPECT_EQ(*scale.body.at({"status", "replicas"}), Json(1));
  EXPECT_EQ(scale.string_at({"status", "selector"}), "app=a");
  EXPECT_EQ(server.merge(kTabs + "/a/scale", R"({"spec":{"replicas":5}})").code, 200);
  EXPECT_EQ(*server.get(kTabs + "/a").body.at({"spec", "replicas"}), Json(5));
  EXPECT_EQ(server.merge(kTabs + "/a/scale", R"({"spec":{"replicas":50}})").code, 422)
      << "the schema holds there as well";
}

TEST(CustomKinds, TablesShowTheColumnsOfTheDefinition) {
  TestServer server;
  define(server, definition());
  server.post(kTabs, tab("a"));
  const Answer table = server.get(kTabs, "application/json;as=Table;v=v1;g=meta.k8s.io");
  const Json::Array* columns = table.body.find("columnDefinitions")->if_array();
  ASSERT_EQ(columns->size(), 3U) << table.text;
  EXPECT_EQ((*columns)[1].string_at({"name"}), "Cron");
  EXPECT_EQ(api::to_text(*table.body.find("rows")->if_array()->front().find("cells")), R"(["a","* * *",2])");
}

TEST(CustomKinds, ServerSideApplyKnowsKeyedLists) {
  TestServer server;
  define(server, definition());
  const auto apply = [&](std::string_view manager, std::string_view spec) {
    return server.call(api::Method::kPatch, fmt::format("{}/a?fieldManager={}", kTabs, manager), tab("a", spec),
                       {{"Content-Type", "application/apply-patch+yaml"}});
  };
  EXPECT_EQ(apply("one", R"({"cron":"*","jobs":[{"name":"x","n":1}]})").code, 201);
  const Answer second = apply("two", R"({"cron":"*","jobs":[{"name":"y","n":2}]})");
  ASSERT_EQ(second.code, 200) << second.text;
  EXPECT_EQ(second.body.at({"spec", "jobs"})->if_array()->size(), 2U);
  EXPECT_EQ(apply("two", R"({"cron":"*","jobs":[{"name":"x","n":5}]})").code, 409);
  const Answer back = apply("one", R"({"cron":"*"})");
  ASSERT_EQ(back.code, 200) << back.text;
  EXPECT_EQ(api::to_text(*back.body.at({"spec", "jobs"})), R"([{"n":2,"name":"y"}])");
}

TEST(CustomKinds, SelectableFieldsAndWatches) {
  TestServer server;
  define(server, definition());
  const auto all = server.watch(kTabs + "?watch=1");
  const auto some = server.watch(kTabs + "?watch=1&fieldSelector=spec.cron%3D0");
  server.post(kTabs, tab("a"));
  server.post(kTabs, tab("b", R"({"cron":"0"})"));
  server.remove(kTabs + "/a");
  EXPECT_EQ(all->names(), (Names{"ADDED:a", "ADDED:b", "DELETED:a"}));
  EXPECT_EQ(some->names(), (Names{"ADDED:b"}));
  EXPECT_EQ(server.get(kTabs + "?fieldSelector=spec.cron%3D0").body.find("items")->if_array()->size(), 1U);
  EXPECT_EQ(server.get(kTabs + "?fieldSelector=spec.replicas%3D1").code, 400);
}

TEST(CustomKinds, ADeletedDefinitionTakesItsObjectsAlong) {
  TestServer server;
  define(server, definition());
  server.post(kTabs, tab("a"));
  server.post(kTabs, R"({"apiVersion":"stable.example.com/v1","kind":"CronTab","spec":{"cron":"*"},
                         "metadata":{"name":"held","finalizers":["example.com/held"]}})");
  const auto watch = server.watch(kTabs + "?watch=1");
  const std::string path = kDefinitionsPath + "/crontabs.stable.example.com";
  EXPECT_EQ(server.remove(path).code, 200);
  server.run_until_idle();
  const Answer going = server.get(path);
  EXPECT_EQ(going.code, 200) << "an object is held";
  EXPECT_EQ(condition(going.body, "Terminating").substr(0, 5), "True/");
  EXPECT_EQ(server.get(kTabs + "/a").code, 404);
  EXPECT_EQ(server.post(kTabs, tab("late")).code, 405);
  EXPECT_FALSE(watch->ended);
  EXPECT_EQ(server.merge(kTabs + "/held", R"({"metadata":{"finalizers":null}})").code, 200);
  server.run_until_idle();
  server.advance(seconds(2));
  EXPECT_EQ(server.get(path).code, 404);
  EXPECT_EQ(server.get(kTabs).code, 404);
  EXPECT_EQ(server.get("/apis/stable.example.com").code, 404);
  EXPECT_TRUE(watch->ended);
  EXPECT_EQ(watch->names().back(), "DELETED:held");
  EXPECT_TRUE(server.at_rest("/registry/stable.example.com/crontabs/default/a").empty());
  define(server, definition());
  EXPECT_EQ(server.post(kTabs, tab("a")).code, 201) << "the kind may come back";
  EXPECT_EQ(server.get(kTabs).body.find("items")->if_array()->size(), 1U);
}

TEST(CustomKinds, ADefinitionThatIsNotServedStaysWhileThereAreObjects) {
  TestServer server;
  define(server, definition());
  define(server, definition("cronjobbies", "CronTab"));  // the kind is another's
  const std::string key = "/registry/stable.example.com/cronjobbies/default/a";
  server.put_at_rest(key, tab("a"));
  const std::string path = kDefinitionsPath + "/cronjobbies.stable.example.com";
  EXPECT_EQ(server.remove(path).code, 200);
  server.advance(minutes(2));
  EXPECT_EQ(server.get(path).code, 200) << "whoever serves it may have to clear something away";
  server.put_at_rest(key, {});
  server.advance(minutes(1));
  EXPECT_EQ(server.get(path).code, 404);
}

TEST(CustomKinds, ADefinitionGoesOnceWhatCannotBeReadHasGone) {
  TestServer server;
  define(server, definition());
  const std::string key = "/registry/stable.example.com/crontabs/default/broken";
  server.put_at_rest(key, "{");
  const std::string path = kDefinitionsPath + "/crontabs.stable.example.com";
  EXPECT_EQ(server.remove(path).code, 200);
  server.advance(seconds(2));
  EXPECT_EQ(server.get(path).code, 200);
  server.put_at_rest(key, {});
  server.advance(minutes(1));
  EXPECT_EQ(server.get(path).code, 404);
}

TEST(CustomKinds, ARestartFindsEverythingAgain) {
  TestServer server;
  define(server, definition());
  server.post(kTabs, tab("a"));
  const std::string before = server.get(kTabs).text;
  server.restart();
  EXPECT_EQ(server.get(kTabs).text, before);
  const auto watch = server.watch(kTabs + "?watch=1");
  server.post(kTabs, tab("b"));
  EXPECT_EQ(watch->names(), (Names{"ADDED:a", "ADDED:b"}));
}

TEST(CustomKinds, NamesThatOthersHaveAreRefused) {
  TestServer server;
  define(server, definition());
  define(server, definition("cronjobbies", "CronTab"));
  const Answer taken = server.get(kDefinitionsPath + "/cronjobbies.stable.example.com");
  EXPECT_EQ(condition(taken.body, "NamesAccepted"), "False/ListKindConflict");
  EXPECT_EQ(condition(taken.body, "Established"), "False/NotAccepted");
  EXPECT_EQ(server.get("/apis/stable.example.com/v1/cronjobbies").code, 404);
  define(server, definition("others", "Other"));
  const Answer named_short = server.get(kDefinitionsPath + "/others.stable.example.com");
  EXPECT_EQ(condition(named_short.body, "NamesAccepted"), "False/ShortNamesConflict");
  server.remove(kDefinitionsPath + "/crontabs.stable.example.com");
  server.run_until_idle();
  server.advance(seconds(2));
  const Answer freed = server.get(kDefinitionsPath + "/cronjobbies.stable.example.com");
  EXPECT_EQ(condition(freed.body, "Established"), "True/InitialNamesAccepted") << freed.text;
}

TEST(CustomKinds, NamesAreAcceptedByThePresentState) {
  TestServer server;
  define(server, definition());
  define(server, definition("others", "Other"));  // whose short name is the other's
  const auto accepted = [&](std::string_view plural) {
    const Answer answer = server.get(fmt::format("{}/{}.stable.example.com", kDefinitionsPath, plural));
    return condition(answer.body, "NamesAccepted");
  };
  EXPECT_EQ(accepted("others"), "False/ShortNamesConflict");
  server.merge(kDefinitionsPath + "/crontabs.stable.example.com", R"({"spec":{"names":{"shortNames":["cr"]}}})");
  server.run_until_idle();
  define(server, definition("thirds", "Third", "stable.example.com", kV1, R"(["cr"])"));
  EXPECT_EQ(accepted("thirds"), "False/ShortNamesConflict") << "it has been given away since";
  define(server, definition("fourths", "Fourth"));
  EXPECT_EQ(accepted("fourths"), "True/NoConflicts") << "nobody has it any more";
  define(server, definition("fifths", "Fifth", "example.com"));
  EXPECT_EQ(accepted("crontabs"), "True/NoConflicts");
  EXPECT_EQ(condition(server.get(kDefinitionsPath + "/fifths.example.com").body, "NamesAccepted"), "True/NoConflicts")
      << "other groups have their own";
}

TEST(CustomKinds, BuiltInGroupsAreNotForDefinitions) {
  TestServer server;
  EXPECT_EQ(server.post(kDefinitionsPath, definition("roles", "Role", "rbac.authorization.k8s.io")).code, 403);
  EXPECT_EQ(server.post(kDefinitionsPath, definition("reserved", "Reserved", "spillway.dev")).code, 403)
      << "addresses are reserved there";
  EXPECT_EQ(server.get("/apis/rbac.authorization.k8s.io/v1/clusterroles").code, 200);
}

TEST(CustomKinds, SeveralVersionsShowTheSameObjects) {
  TestServer server;
  const std::string other = R"({"name":"v1beta1","served":true,"storage":false,"deprecated":true,
    "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
      "cron":{"type":"string"},"old":{"type":"string","default":"yes"}}}}}}})";
  define(server, definition("crontabs", "CronTab", "stable.example.com", std::string(kV1) + "," + other));
  const std::string old_path = "/apis/stable.example.com/v1beta1/namespaces/default/crontabs";
  EXPECT_EQ(server.get("/apis/stable.example.com").string_at({"preferredVersion", "version"}), "v1");
  server.post(kTabs, tab("a"));
  const Answer shown = server.get(old_path + "/a");
  EXPECT_EQ(shown.string_at({"apiVersion"}), "stable.example.com/v1beta1") << shown.text;
  EXPECT_EQ(shown.string_at({"spec", "old"}), "yes");
  EXPECT_EQ(shown.body.at({"spec", "replicas"}), nullptr) << "this version has none";
  const auto watch = server.watch(old_path + "?watch=1");
  const Answer made = server.post(old_path, R"({"apiVersion":"stable.example.com/v1beta1","kind":"CronTab",
                                                "metadata":{"name":"b"},"spec":{"cron":"0"}})");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"apiVersion"}), "stable.example.com/v1beta1");
  EXPECT_TRUE(std::ranges::any_of(made.headers, [](const auto& header) {
    return header.first == "Warning" && header.second.find("v1beta1 CronTab is deprecated") != std::string::npos;
  })) << "a write of a deprecated version";
  EXPECT_EQ(server.get(kTabs + "/b").string_at({"apiVersion"}), "stable.example.com/v1");
  ASSERT_EQ(watch->names(), (Names{"ADDED:a", "ADDED:b"}));
  EXPECT_EQ(watch->events()[1].string_at({"object", "apiVersion"}), "stable.example.com/v1beta1");
  EXPECT_NE(server.at_rest("/registry/stable.example.com/crontabs/default/b").find("example.com/v1\""),
            std::string::npos);
}

TEST(CustomKinds, AChangedSchemaIsFollowed) {
  TestServer server;
  define(server, definition());
  server.post(kTabs, tab("a"));
  const auto watch = server.watch(kTabs + "?watch=1");
  const std::string path = kDefinitionsPath + "/crontabs.stable.example.com";
  const Answer patched = server.json_patch(
      path, R"([{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/zone",
                 "value":{"type":"string","default":"west"}}])");
  ASSERT_EQ(patched.code, 200) << patched.text;
  server.run_until_idle();
  EXPECT_TRUE(watch->ended) << "whoever watches looks again";
  EXPECT_EQ(server.get(kTabs + "/a").string_at({"spec", "zone"}), "west") << "defaults hold for what is stored";
  EXPECT_EQ(server.post(kTabs, tab("b", R"({"cron":"*","zone":"east"})")).string_at({"spec", "zone"}), "east");
}

TEST(CustomKinds, OwnersNamespacesAndQuotasKnowThem) {
  TestServer server;
  define(server, definition());
  const Answer owner = server.post(kTabs, tab("a"));
  const std::string uid = owner.string_at({"metadata", "uid"});
  server.post(kMaps, fmt::format(R"({{"metadata":{{"name":"owned","ownerReferences":[{{
    "apiVersion":"stable.example.com/v1","kind":"CronTab","name":"a","uid":"{}"}}]}}}})",
                                 uid));
  server.remove(kTabs + "/a");
  server.run_until_idle();
  server.advance(seconds(1));
  EXPECT_EQ(server.get(kMaps + "/owned").code, 404);

  server.post("/api/v1/namespaces", R"({"metadata":{"name":"away"}})");
  const std::string away = "/apis/stable.example.com/v1/namespaces/away/crontabs";
  EXPECT_EQ(server.post(away, tab("a")).code, 201);
  server.remove("/api/v1/namespaces/away");
  server.run_until_idle();
  server.advance(seconds(1));
  EXPECT_EQ(server.get(away + "/a").code, 404);
  EXPECT_EQ(server.get("/api/v1/namespaces/away").code, 404);

  server.post("/api/v1/namespaces/default/resourcequotas",
              R"({"metadata":{"name":"q"},"spec":{"hard":{"count/crontabs.stable.example.com":"1"}}})");
  server.run_until_idle();
  server.advance(seconds(1));
  EXPECT_EQ(server.post(kTabs, tab("one")).code, 201);
  EXPECT_EQ(server.post(kTabs, tab("two")).code, 403);
}

TEST(CustomKinds, AnOpenSchemaIsPublishedAsAnObjectInOpenApiV2) {
  TestServer server;
  const std::string open = R"({"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
    "description":"Anything.","x-kubernetes-preserve-unknown-fields":true}}})";
  ASSERT_EQ(server.post(kDefinitionsPath, definition("things", "Thing", "open.example.com", open, "[]")).code, 201);
  server.run_until_idle();
  server.advance(seconds(1));
  const Json v2 = server.get("/openapi/v2").body;
  const Json* thing = v2.at({"definitions", "com.example.open.v1.Thing"});
  ASSERT_NE(thing, nullptr);
  EXPECT_EQ(
      api::to_text(*thing),
      R"({"type":"object","x-kubernetes-group-version-kind":[{"group":"open.example.com","kind":"Thing","version":"v1"}]})");
  const Json v3 = server.get("/openapi/v3/apis/open.example.com/v1").body;
  EXPECT_NE(v3.at({"components", "schemas", "com.example.open.v1.Thing", "properties", "metadata"}), nullptr);
}

constexpr std::string_view kOpenVersion = R"({"name":"v1","served":true,"storage":true,
 "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}})";

/// A kind of stable.example.com whose name a built-in kind of another group has.
void define_namesake(TestServer& server, std::string_view plural, std::string_view kind, bool namespaced = true) {
  std::string body = definition(plural, kind, "stable.example.com", kOpenVersion, "[]");
  constexpr std::string_view kNamespaced = R"("scope":"Namespaced")";
  if (!namespaced) body.replace(body.find(kNamespaced), kNamespaced.size(), R"("scope":"Cluster")");
  define(server, body);
}

std::string namesake(std::string_view kind, std::string_view name, std::string_view spec = "{}",
                     std::string_view finalizers = "[]") {
  return fmt::format(R"({{"apiVersion":"stable.example.com/v1","kind":"{}",
    "metadata":{{"name":"{}","finalizers":{}}},"spec":{}}})",
                     kind, name, finalizers, spec);
}

TEST(CustomKinds, OneNamedNamespaceIsLikeAnyOther) {
  TestServer server;
  define_namesake(server, "namespaces", "Namespace", false);
  const std::string path = "/apis/stable.example.com/v1/namespaces";
  ASSERT_EQ(server.post(path, namesake("Namespace", "default", R"({"n":1,"finalizers":["kubernetes"]})")).code, 201);
  const Answer changed = server.merge(path + "/default", R"({"spec":{"n":2}})");
  EXPECT_EQ(changed.code, 200) << changed.text;
  ASSERT_NE(changed.body.at({"spec", "n"}), nullptr);
  EXPECT_EQ(*changed.body.at({"spec", "n"}), Json(2)) << "only the spec of a core/v1 Namespace stays as it is";
  EXPECT_EQ(server.remove(path + "/default").code, 200);
  EXPECT_EQ(server.get(path + "/default").code, 404) << "no controller acts on its spec.finalizers";

  ASSERT_EQ(server.post(path, namesake("Namespace", "held", "{}", R"(["example.com/x"])")).code, 201);
  const Answer held = server.remove(path + "/held");
  EXPECT_EQ(held.code, 200) << held.text;
  const Json stays = server.get(path + "/held").body;
  EXPECT_EQ(stays.at({"status", "phase"}), nullptr);
  ASSERT_NE(stays.at({"metadata", "deletionGracePeriodSeconds"}), nullptr);

  EXPECT_EQ(server.remove("/api/v1/namespaces/default").code, 403);
  EXPECT_EQ(server.merge("/api/v1/namespaces/default", R"({"spec":{"finalizers":["x.io/y"]}})").code, 200);
  const Json core = server.get("/api/v1/namespaces/default").body;
  EXPECT_EQ(api::to_text(*core.at({"spec", "finalizers"})), R"(["kubernetes"])");
}

/// The name of the object is no namespace: rights in the namespace of that name are no rights on it.
TEST(CustomKinds, RightsInANamespaceAreNoneOnACustomNamespace) {
  TestServer server;
  define_namesake(server, "namespaces", "Namespace", false);
  const std::string path = "/apis/stable.example.com/v1/namespaces";
  ASSERT_EQ(server.post(path, namesake("Namespace", "default")).code, 201);
  constexpr const char* kRbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
  ASSERT_EQ(
      server
          .post(fmt::format("{}/rolebindings", kRbac),
                R"({"metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",
                          "name":"cluster-admin"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"t"}]})")
          .code,
      201);
  server.user = {"t", {}, {"system:authenticated"}};
  EXPECT_EQ(server.get("/api/v1/namespaces/default").code, 200);
  EXPECT_EQ(server.get(path + "/default").code, 403);
  server.user = kAdmin;
}

/// The rules for the Nodes, Leases and pods of a node do not hold for other kinds of these names.
TEST(CustomKinds, NodesMayDoWithNamesakesWhatTheirRolesSay) {
  TestServer server;
  for (const auto& [plural, kind] : {std::pair{"nodes", "Node"},
                                     {"leases", "Lease"},
                                     {"pods", "Pod"},
                                     {"csinodes", "CSINode"},
                                     {"csidrivers", "CSIDriver"},
                                     {"tokenreviews", "TokenReview"}}) {
    define_namesake(server, plural, kind);
  }
  const std::string path = "/apis/stable.example.com/v1/namespaces/default/";
  const auto as_node = [&](auto call) {
    server.user = kNode;
    const Answer answer = call();
    server.user = kAdmin;
    return answer.code;
  };
  EXPECT_EQ(as_node([&] { return server.get(path + "csidrivers"); }), 403) << "only storage.k8s.io has drivers";
  EXPECT_EQ(as_node([&] { return server.post(path + "tokenreviews", namesake("TokenReview", "a")); }), 403);
  ASSERT_EQ(
      server
          .post(
              "/apis/rbac.authorization.k8s.io/v1/clusterroles",
              R"({"metadata":{"name":"r"},"rules":[{"apiGroups":["stable.example.com"],"resources":["*"],"verbs":["*"]}]})")
          .code,
      201);
  ASSERT_EQ(
      server
          .post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                R"({"metadata":{"name":"r"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",
                          "name":"r"},"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:nodes"}]})")
          .code,
      201);
  for (const auto& [plural, kind] :
       {std::pair{"nodes", "Node"}, {"leases", "Lease"}, {"pods", "Pod"}, {"csinodes", "CSINode"}}) {
    EXPECT_EQ(as_node([&] { return server.post(path + plural, namesake(kind, "another")); }), 201) << kind;
    EXPECT_EQ(as_node([&] { return server.merge(path + plural + "/another", R"({"spec":{"n":1}})"); }), 200) << kind;
  }
  EXPECT_EQ(as_node([&] { return server.post("/api/v1/nodes", R"({"metadata":{"name":"another"}})"); }), 403);
}

TEST(CustomKinds, OnlyBuiltInEventsAreOutsideQuotas) {
  TestServer server;
  define_namesake(server, "events", "Event");
  server.post("/api/v1/namespaces/default/resourcequotas",
              R"({"metadata":{"name":"q"},"spec":{"hard":{"count/events.stable.example.com":"1"}}})");
  server.run_until_idle();
  server.advance(seconds(1));
  const std::string path = "/apis/stable.example.com/v1/namespaces/default/events";
  EXPECT_EQ(server.post(path, namesake("Event", "one")).code, 201);
  EXPECT_EQ(server.post(path, namesake("Event", "two")).code, 403);
}

/// Each document is made in several slices; a second request gets it at once.
TEST(CustomKinds, SchemasOfManyFieldsAreMadeInSlices) {
  constexpr int kKinds = 20;
  TestServer server;
  std::string fields;
  for (int i = 0; i < 300; ++i) {
    fields += fmt::format(R"({}"field{}":{{"type":"string","description":"A field of an object, number {}."}})",
                          i == 0 ? "" : ",", i, i);
  }
  const std::string version = fmt::format(
      R"({{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{
          "spec":{{"type":"object","properties":{{{}}}}}}}}}}}}})",
      fields);
  for (int i = 0; i < kKinds; ++i) {
    define(server, definition(fmt::format("k{}s", i), fmt::format("K{}", i), "stable.example.com", version, "[]"));
  }
  for (const auto& [path, member] : {std::pair{"/openapi/v2", std::vector<std::string_view>{"definitions"}},
                                     {"/openapi/v3/apis/stable.example.com/v1", {"components", "schemas"}}}) {
    server.slices = 0;
    const Answer answer = server.get(path);
    ASSERT_EQ(answer.code, 200) << path;
    EXPECT_GE(server.slices, kKinds / 4) << path;
    const Json* schemas = &answer.body;
    for (const std::string_view each : member) schemas = schemas->find(each);
    for (int i = 0; i < kKinds; ++i) {
      const Json* schema = schemas->find(fmt::format("com.example.stable.v1.K{}", i));
      ASSERT_NE(schema, nullptr) << path << " " << i;
      EXPECT_EQ(schema->string_at({"properties", "spec", "properties", "field299", "type"}), "string");
    }
    server.slices = 0;
    EXPECT_EQ(server.get(path).text, answer.text);
    EXPECT_EQ(server.slices, 0) << "it is kept";
  }
  EXPECT_EQ(server.get("/openapi/v3/apis/nosuch.example.com/v1").code, 404);
}

TEST(CustomKinds, AreServedHoweverManyWereRemovedBefore) {
  TestServer server;
  const std::string small = R"({"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
    "x-kubernetes-preserve-unknown-fields":true}}})";
  for (int i = 0; i < 300; ++i) {
    const std::string plural = fmt::format("things{}", i);
    ASSERT_EQ(
        server.post(kDefinitionsPath, definition(plural, fmt::format("Thing{}", i), "many.example.com", small, "[]"))
            .code,
        201);
    ASSERT_EQ(server.get("/apis/many.example.com/v1/" + plural).code, 200) << plural;
    ASSERT_EQ(server.remove(fmt::format("{}/{}.many.example.com", kDefinitionsPath, plural)).code, 200);
  }
}

TEST(CustomKinds, ThereAreOnlySoMany) {
  TestServer server;
  const std::string small = R"({"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
    "x-kubernetes-preserve-unknown-fields":true}}})";
  int made = 0;
  Answer refused;
  for (int i = 0; i < 600; ++i) {
    refused = server.post(kDefinitionsPath, definition(fmt::format("things{}", i), fmt::format("Thing{}", i),
                                                       "many.example.com", small, "[]"));
    if (refused.code != 201) break;
    ++made;
  }
  EXPECT_EQ(made, 500);
  EXPECT_EQ(refused.code, 403) << refused.text;
  EXPECT_NE(refused.text.find("at most 500 definitions"), std::string::npos) << refused.text;
}

TEST(CustomKinds, TogetherTheyAreOnlySoLargeAndDoNotGrowBeyondThat) {
  TestServer server;
  define(server, definition());
  Json large = *api::parse_json(definition());
  large.make({"metadata", "annotations", "filler"}) = std::string(1'400'000, 'x');
  for (int i = 0; i < 48; ++i) {
    const std::string name = fmt::format("things{}.roles.example.com", i);
    large["metadata"]["name"] = name;
    large["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";  // neither named nor served
    large["metadata"]["finalizers"] = Json::array({"example.com/held"});
    server.put_at_rest("/registry/apiextensions.k8s.io/customresourcedefinitions/" + name, api::to_text(large));
  }
  const Answer made = server.post(kDefinitionsPath, definition("others", "Other"));
  EXPECT_EQ(made.code, 403) << made.text;
  const std::string path = kDefinitionsPath + "/crontabs.stable.example.com";
  const std::string replicas = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas";
  const auto patch = [&](std::string_view op, std::string_view value) {
    return server.json_patch(path, fmt::format(R"([{{"op":"{}","path":"{}/{}}}])", op, replicas, value));
  };
  const Answer grown = patch("add", R"(description","value":"how many")");
  EXPECT_EQ(grown.code, 403) << grown.text;
  EXPECT_NE(grown.text.find("at most 67108864 bytes in all"), std::string::npos) << grown.text;
  EXPECT_EQ(server.merge(path, R"({"metadata":{"labels":{"a":"b"}}})").code, 403);
  EXPECT_EQ(patch("remove", R"(maximum")").code, 200) << "what makes it smaller is taken";
  EXPECT_EQ(server.remove(path).code, 200);
  server.run_until_idle();
  server.advance(seconds(2));
  EXPECT_EQ(server.get(path).code, 404);
}

TEST(CustomKinds, WhatTheSchemaLeavesOpenStays) {
  TestServer server;
  const std::string open = R"({"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
    "x-kubernetes-preserve-unknown-fields":true}}})";
  define(server, definition("crontabs", "CronTab", "stable.example.com", open));
  const Answer made = server.post(kTabs, tab("a", R"({"cron":null,"zero":0,"empty":[],"big":9007199254740993})"));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(api::to_text(*made.body.find("spec")), R"({"big":9007199254740993,"cron":null,"empty":[],"zero":0})");
}

TEST(CustomKinds, ARequestThatWasReadBeforeTheyChangedFollows) {
  TestServer server;
  const api::Request request{api::Method::kGet, kTabs, {}, {}};
  const auto user = std::make_shared<const api::UserInfo>(kAdmin);
  const auto answer = [&](const std::shared_ptr<const ReadRequest>& read) {
    auto sink = std::make_shared<TestSink>();
    server.server().handle(request, user, read, sink, server.now());
    server.run_until_idle();
    return sink->response->status;
  };
  const auto early = server.server().read(request, *user, ApiServer::Body::kNo);
  define(server, definition());
  EXPECT_EQ(answer(early), 200) << "it leads somewhere by now";
  const auto late = server.server().read(request, *user, ApiServer::Body::kNo);
  server.remove(kDefinitionsPath + "/crontabs.stable.example.com");
  server.run_until_idle();
  server.advance(seconds(2));
  EXPECT_EQ(answer(late), 404) << "the kind has gone";
}

TEST(CustomKinds, AWriteThatWasReadBeforeTheSchemaChangedIsCheckedByTheNewOne) {
  TestServer server;
  define(server, definition());
  const api::Request request{api::Method::kPost, kTabs, {}, tab("a", R"({"cron":"*","replicas":9})")};
  const auto user = std::make_shared<const api::UserInfo>(kAdmin);
  const auto read = server.server().read(request, *user, ApiServer::Body::kYes);
  const Answer patched = server.json_patch(
      kDefinitionsPath + "/crontabs.stable.example.com",
      R"([{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas/maximum",
           "value":5}])");
  ASSERT_EQ(patched.code, 200) << patched.text;
  server.run_until_idle();
  auto sink = std::make_shared<TestSink>();
  server.server().handle(request, user, read, sink, server.now());
  server.run_until_idle();
  EXPECT_EQ(sink->response->status, 422) << sink->response->body;
}

/// Old tables are kept for a while, not forever.
TEST(CustomKinds, ManyChangesInARowAreFollowed) {
  TestServer server;
  define(server, definition());
  const std::string path = kDefinitionsPath + "/crontabs.stable.example.com";
  for (int i = 0; i < 1'100; ++i) {
    server.merge(path, fmt::format(R"({{"spec":{{"names":{{"categories":["c{}"]}}}}}})", i));
  }
  EXPECT_EQ(server.get(kTabs).code, 200);
  server.advance(minutes(11));
  EXPECT_NE(server.get("/apis/stable.example.com/v1").text.find("\"c1099\""), std::string::npos)
      << "the last one shows once there is room";
}

class CustomKindsOfServers : public ::testing::Test {
 protected:
  SharedServers all;
  SharedServers::Server& a = all.add();
  SharedServers::Server& b = all.add();
};

TEST_F(CustomKindsOfServers, EachLearnsOfThemByItself) {
  a.api->act(true, all.now);
  all.run_until_idle();
  ASSERT_EQ(all.call(a, api::Method::kPost, kDefinitionsPath, definition()).code, 201);
  ASSERT_EQ(all.call(a, api::Method::kPost, kTabs, tab("a")).code, 201);
  EXPECT_EQ(all.call(b, api::Method::kGet, kTabs + "/a").code, 200);
  const auto watch = all.begin(b, api::Method::kGet, kTabs + "?watch=1");
  all.run_until_idle();
  ASSERT_EQ(all.call(a, api::Method::kPost, kTabs, tab("b")).code, 201);
  EXPECT_EQ(watch->names(), (Names{"ADDED:a", "ADDED:b"}));
  SharedServers::Server& c = all.add();
  EXPECT_EQ(all.call(c, api::Method::kGet, kTabs).body.find("items")->if_array()->size(), 2U) << "one that comes later";
  ASSERT_EQ(all.call(b, api::Method::kDelete, kDefinitionsPath + "/crontabs.stable.example.com").code, 200);
  all.advance(seconds(3));
  for (SharedServers::Server* server : {&a, &b, &c}) EXPECT_EQ(all.call(*server, api::Method::kGet, kTabs).code, 404);
  EXPECT_TRUE(all.keys("/registry/stable.example.com/").empty());
}

TEST_F(CustomKindsOfServers, ALateServerServesAKindThatAnotherHasNamed) {
  a.api->act(true, all.now);
  all.run_until_idle();
  b.view.late = true;
  ASSERT_EQ(all.call(a, api::Method::kPost, kDefinitionsPath, definition()).code, 201);
  ASSERT_EQ(all.call(a, api::Method::kPost, kTabs, tab("a")).code, 201);
  EXPECT_EQ(all.call(b, api::Method::kGet, kTabs + "/a").code, 200);
}

}  // namespace

}  // namespace spillway::apiserver
