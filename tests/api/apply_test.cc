#include "api/patch/apply.h"

#include "api/patch/managed_fields.h"
#include "api/schema/document_fields.h"
#include "api/schema/typed.h"
#include "base/rng.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>

namespace spillway::api {
namespace {

constexpr std::string_view kStatus[] = {"status"};

const Type& config_map() {
  return *find_kind("v1", "ConfigMap");
}

const Type& pod() {
  return *find_kind("v1", "Pod");
}

Json parse(std::string_view text) {
  return parse_json(text).value();
}

Json typed(const Type& type, std::string_view text) {
  return read_body(type, parse(text))->object;
}

FieldWriter writer(std::string manager, int second = 0, std::string subresource = {}) {
  return {std::move(manager), std::move(subresource), WallTime{seconds(1'700'000'000 + second)}, kStatus};
}

Json config(std::string_view rest) {
  return parse(fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c"}}{}}})", rest));
}

std::string owners(const Json& object) {
  std::string out;
  for (const ManagedFieldsEntry& entry : ManagedFields::of(object).entries()) {
    out += fmt::format("{}{}:{};", entry.manager, entry.operation == FieldOperation::kApply ? "!" : "",
                       fmt::join(entry.fields.paths(), ","));
  }
  return out;
}

TEST(FieldSets, ParseAndPrintFieldsV1) {
  const Json document = parse(R"({"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}}},
      "f:metadata":{"f:finalizers":{".":{},"v:\"x\"":{}}},"f:list":{"i:3":{}}})");
  const auto set = FieldSet::parse(document);
  ASSERT_TRUE(set) << set.error().text();
  EXPECT_EQ(set->to_json(), document);
  EXPECT_EQ(set->paths(),
            (std::vector<std::string>{".list[3]", ".metadata.finalizers", ".metadata.finalizers[=\"x\"]",
                                      ".spec.containers[name=\"c\"]", ".spec.containers[name=\"c\"].image"}));
}

TEST(FieldSets, KeysAreCanonical) {
  const auto set = FieldSet::parse(parse(R"({"k:{ \"protocol\":\"TCP\", \"containerPort\":80 }":{}})"));
  ASSERT_TRUE(set) << set.error().text();
  EXPECT_EQ(set->to_json(), parse(R"({"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{}})"));
}

/// A key of any spelling is stored in the canonical spelling of its document.
TEST(FieldSets, KeysOfEverySpellingAreCanonical) {
  for (const std::string_view keys : {R"({"type":"Ready"})",  R"({"name":"a-b.c_d/9"})",
                                      R"({"":""})",           R"({"a":""})",
                                      R"({"":"b"})",          R"({"a": "b"})",
                                      R"({"a" :"b"})",        R"({ "a":"b"})",
                                      R"({"a":"b" })",        R"({"a":"b","c":"d"})",
                                      R"({"c":"d","a":"b"})", R"({"a":"b","a":"c"})",
                                      R"({"a":":"})",         R"({"a":"\""})",
                                      R"({"a":"\u0062"})",    R"({"\u0061":"b"})",
                                      R"({"a":"b\/c"})",      R"({"a":"<b>"})",
                                      R"({"a":"b&c"})",       R"({"a":"b c"})",
                                      R"({"a":"\\"})",        R"({"a":"ä"})",
                                      R"({"a":"\u00e4"})",    R"({"a":80})",
                                      R"({"a":true})",        R"({"a":{"b":"c"}})",
                                      R"({"a":["b"]})",       R"({})"}) {
    const std::string element = fmt::format("k:{}", keys);
    const auto set = FieldSet::parse(Json::object({{element, Json::object()}}));
    ASSERT_TRUE(set) << element;
    ASSERT_EQ(set->children().size(), 1U);
    EXPECT_EQ(set->children().begin()->first, "k:" + to_text(parse(keys))) << element;
  }
  for (const std::string_view keys : {R"({":"})", R"({"a":"b"}})", R"({"a":"b"}"})", R"({"a":"b"c":"d"})", R"({"a":"})",
                                      R"({"a""b"})", R"({"a":b"})", R"({"a":"b"},"c":"d"})"}) {
    EXPECT_FALSE(FieldSet::parse(Json::object({{fmt::format("k:{}", keys), Json::object()}}))) << keys;
  }
}

TEST(FieldSets, ElementsOfAnyOrderAreSorted) {
  const auto set = FieldSet::parse(Json::object({{R"(k:{"b":"x"})", Json::object()},
                                                 {R"(k:{ "b":"x"})", Json::object({{"f:c", Json::object()}})},
                                                 {"f:z", Json::object()},
                                                 {"f:a", Json::object()}}));
  ASSERT_TRUE(set) << set.error().text();
  EXPECT_EQ(to_text(set->to_json()), R"({"f:a":{},"f:z":{},"k:{\"b\":\"x\"}":{}})");
}

TEST(FieldSets, ForeignElementsAreRefused) {
  for (const std::string_view text : {R"({"x:a":{}})", R"({"f":{}})", R"({"k:[]":{}})", R"({"k:{":{}})", R"({"v:":{}})",
                                      R"({"i:x":{}})", R"({"f:a":1})", R"([])"}) {
    EXPECT_FALSE(FieldSet::parse(parse(text))) << text;
  }
}

TEST(FieldSets, AreSetsOfExactPaths) {
  const auto set = [](std::string_view text) { return FieldSet::parse(parse(text)).value(); };
  FieldSet a = set(R"({"f:a":{".":{},"f:b":{}},"f:c":{}})");
  EXPECT_EQ(a.intersection(set(R"({"f:a":{}})")), set(R"({"f:a":{}})"));
  EXPECT_EQ(a.intersection(set(R"({"f:a":{"f:b":{}}})")), set(R"({"f:a":{"f:b":{}}})"));
  EXPECT_TRUE(a.intersection(set(R"({"f:d":{}})")).empty());
  a.subtract(set(R"({"f:a":{}})"));
  EXPECT_EQ(a, set(R"({"f:a":{"f:b":{}},"f:c":{}})"));
  a.subtract(set(R"({"f:a":{"f:b":{}}})"));
  EXPECT_EQ(a, set(R"({"f:c":{}})"));
  a.add(set(R"({"f:c":{"f:d":{}}})"));
  EXPECT_EQ(a, set(R"({"f:c":{".":{},"f:d":{}}})"));
  EXPECT_TRUE(FieldSet().empty());
}

TEST(DocumentFields, OwnershipEndsAtAtomicValues) {
  const auto set = fields_of(pod(), parse(R"({"metadata":{"ownerReferences":[{"uid":"u","name":"o"}],
      "finalizers":["f"]},"spec":{"nodeSelector":{"a":"b"},"tolerations":[{"key":"k"}],"volumes":[{"name":"v",
      "emptyDir":{}}],"containers":[{"name":"c","ports":[{"containerPort":80}],"env":[]}]}})"));
  ASSERT_TRUE(set) << set.error().text();
  EXPECT_EQ(set->to_json(), parse(R"({"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}},
      "f:finalizers":{"v:\"f\"":{}}},"f:spec":{"f:nodeSelector":{},"f:tolerations":{},
      "f:volumes":{"k:{\"name\":\"v\"}":{".":{},"f:name":{},"f:emptyDir":{}}},
      "f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{},"f:env":{},
        "f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}})"));
}

TEST(DocumentFields, ListsNeedTheirKeysOnce) {
  EXPECT_FALSE(fields_of(pod(), parse(R"({"spec":{"containers":[{"image":"i"}]}})")));
  EXPECT_FALSE(fields_of(pod(), parse(R"({"spec":{"containers":[{"name":"c"},{"name":"c"}]}})")));
  EXPECT_FALSE(fields_of(pod(), parse(R"({"metadata":{"finalizers":["f","f"]}})")));
}

TEST(DocumentFields, AppliedListsKeepLiveElementsInPlace) {
  const auto merged = [](std::string_view live, std::string_view sent) {
    const auto list = [](std::string_view names) {
      Json::Array out;
      for (const char name : names) out.push_back(Json::object({{"name", std::string(1, name)}}));
      return Json::object({{"spec", Json::object({{"containers", Json(std::move(out))}})}});
    };
    const Json result = merge_applied(pod(), list(live), list(sent));
    std::string out;
    for (const Json& one : *result.at({"spec", "containers"})->if_array()) {
      out += one.string_at({"name"});
    }
    return out;
  };
  EXPECT_EQ(merged("", "ab"), "ab");
  EXPECT_EQ(merged("ab", ""), "ab");
  EXPECT_EQ(merged("ab", "ba"), "ba");
  EXPECT_EQ(merged("abc", "b"), "abc");
  EXPECT_EQ(merged("abc", "ca"), "bca");
  EXPECT_EQ(merged("ab", "xb"), "axb");
  EXPECT_EQ(merged("ab", "bx"), "abx");
  EXPECT_EQ(merged("a", "xyz"), "axyz");
}

TEST(ServerSideApply, CreatesAndOwnsWhatIsSent) {
  const auto object = apply_config(config_map(), nullptr, config(R"(,"data":{"a":"1"})"), writer("m"), Force::kNo);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(*object->find("data"), parse(R"({"a":"1"})"));
  EXPECT_EQ(*object->at({"metadata", "managedFields"}),
            parse(R"([{"manager":"m","operation":"Apply","apiVersion":"v1","time":"2023-11-14T22:13:20Z",
                       "fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}}}}])"));
}

TEST(ServerSideApply, TheSameAgainChangesNothing) {
  const Json once = *apply_config(config_map(), nullptr, config(R"(,"data":{"a":"1"})"), writer("m"), Force::kNo);
  const Json twice = *apply_config(config_map(), &once, config(R"(,"data":{"a":"1"})"), writer("m", 60), Force::kNo);
  EXPECT_EQ(once, twice);
}

TEST(ServerSideApply, ConflictsNameManagersAndPaths) {
  const Json live =
      *apply_config(config_map(), nullptr, config(R"(,"data":{"a":"1","b":"1"})"), writer("m1"), Force::kNo);
  const Json changed = config(R"(,"data":{"a":"2","b":"2","c":"2"})");
  const auto refused = apply_config(config_map(), &live, changed, writer("m2"), Force::kNo);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, 409);
  EXPECT_EQ(refused.error().reason, "Conflict");
  EXPECT_EQ(refused.error().message, "Apply failed with 2 conflicts: conflicts with \"m1\":\n- .data.a\n- .data.b");
  ASSERT_EQ(refused.error().details->causes.size(), 2u);
  EXPECT_EQ(refused.error().details->causes[0],
            (StatusCause{"FieldManagerConflict", "conflict with \"m1\"", ".data.a"}));

  const auto forced = apply_config(config_map(), &live, changed, writer("m2"), Force::kYes);
  ASSERT_TRUE(forced);
  EXPECT_EQ(owners(*forced), "m2!:.data.a,.data.b,.data.c;");

  const auto single = apply_config(config_map(), &live, config(R"(,"data":{"a":"2"})"), writer("m2"), Force::kNo);
  EXPECT_EQ(single.error().message, "Apply failed with 1 conflict: conflict with \"m1\": .data.a");
}

TEST(ServerSideApply, EqualValuesAreShared) {
  const Json live = *apply_config(config_map(), nullptr, config(R"(,"data":{"a":"1"})"), writer("m1"), Force::kNo);
  const Json shared = *apply_config(config_map(), &live, config(R"(,"data":{"a":"1"})"), writer("m2"), Force::kNo);
  // No time: m2 changed nothing.
  EXPECT_EQ(owners(shared), "m2!:.data.a;m1!:.data.a;");
  // A manager that leaves the field out gives it up; without any manager the field is removed.
  const Json one = *apply_config(config_map(), &shared, config(""), writer("m1"), Force::kNo);
  EXPECT_EQ(*one.find("data"), parse(R"({"a":"1"})"));
  const Json none = *apply_config(config_map(), &one, config(""), writer("m2"), Force::kNo);
  EXPECT_EQ(none.find("data"), nullptr);
  EXPECT_EQ(none.at({"metadata", "managedFields"}), nullptr);
}

constexpr std::string_view kAnnotation = "kubectl.kubernetes.io/last-applied-configuration";

std::string last_applied(const Json& object) {
  return std::string(object.string_at({"metadata", "annotations", kAnnotation}));
}

Json applied_by_client(std::string_view text) {
  Json object = typed(config_map(), R"({"metadata":{"name":"c"},"data":{"a":"1","b":"2"}})");
  object.make({"metadata", "annotations", kAnnotation}) = text;
  return object;
}

TEST(ServerSideApply, OfKubectlUpdatesTheLastAppliedAnnotation) {
  const Json live = applied_by_client("{\"data\":{\"a\":\"1\",\"b\":\"2\"}}\n");
  const Json sent = config(R"(,"data":{"a":"1","c":"3"})");
  const auto object = apply_config(config_map(), &live, sent, writer("kubectl"), Force::kNo);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(last_applied(*object), to_text(sent) + "\n");
  // The annotation belongs to the manager that sent it alone.
  EXPECT_EQ(owners(*object).find("kubectl!:.data.a,.data.c;"), 0u) << owners(*object);

  Json with_annotation = sent;
  with_annotation.make({"metadata", "annotations", kAnnotation}) = "mine";
  const auto own = apply_config(config_map(), &live, with_annotation, writer("kubectl"), Force::kYes);
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(last_applied(*own).find("mine"), std::string::npos) << "it does not tell of itself";
}

TEST(ServerSideApply, KeepsTheAnnotationOfOthers) {
  const Json live = applied_by_client("{}");
  const Json sent = config(R"(,"data":{"a":"1"})");
  EXPECT_EQ(last_applied(*apply_config(config_map(), &live, sent, writer("kubectl-last-applied"), Force::kNo)), "{}");
  EXPECT_EQ(last_applied(*apply_config(config_map(), &live, sent, writer("m"), Force::kNo)), "{}");
  const Json without = typed(config_map(), R"({"metadata":{"name":"c"}})");
  const Json none = *apply_config(config_map(), &without, sent, writer("kubectl"), Force::kNo);
  EXPECT_EQ(none.at({"metadata", "annotations"}), nullptr);
  const Json empty = applied_by_client("");
  EXPECT_EQ(last_applied(*apply_config(config_map(), &empty, sent, writer("kubectl"), Force::kNo)), "");
}

TEST(ServerSideApply, WithoutRoomTheAnnotationGoes) {
  const Json live = applied_by_client("{}");
  const auto of_length = [&](std::size_t length) {
    const Json sent = config(fmt::format(R"(,"data":{{"a":"{}"}})", std::string(length, 'x')));
    return *apply_config(config_map(), &live, sent, writer("kubectl"), Force::kYes);
  };
  const std::size_t around = to_text(config(R"(,"data":{"a":""})")).size() + 1 + kAnnotation.size();
  const std::size_t most = 256 * 1024 - around;
  EXPECT_NE(last_applied(of_length(most)), "");
  EXPECT_EQ(last_applied(of_length(most + 1)), "");
}

TEST(ServerSideApply, BadConfigurationsAreBadRequests) {
  for (const std::string_view text :
       {R"({"kind":"ConfigMap","metadata":{"name":"c"}})", R"({"apiVersion":"v1","metadata":{"name":"c"}})",
        R"({"apiVersion":"v1","kind":"Secret"})", R"({"apiVersion":"v1","kind":"ConfigMap","foo":1})",
        R"({"apiVersion":"v1","kind":"ConfigMap","data":{"a":1}})", R"([])",
        R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[{}]}})"}) {
    const auto result = apply_config(config_map(), nullptr, parse(text), writer("m"), Force::kYes);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, 400) << text;
  }
}

TEST(ServerSideApply, ObjectsWithoutOwnersBelongToEarlierWriters) {
  const Json live = typed(config_map(), R"({"metadata":{"name":"c"},"data":{"a":"1"}})");
  const auto refused = apply_config(config_map(), &live, config(R"(,"data":{"a":"2"})"), writer("m"), Force::kNo);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a");
  const auto added = apply_config(config_map(), &live, config(R"(,"data":{"b":"2"})"), writer("m"), Force::kNo);
  ASSERT_TRUE(added);
  EXPECT_EQ(owners(*added), "m!:.data.b;before-first-apply:.data,.data.a;");
}

TEST(ServerSideApply, KubectlTakesOverItsClientSideApply) {
  Json before = typed(config_map(), R"({"metadata":{"name":"c","annotations":{
      "kubectl.kubernetes.io/last-applied-configuration":
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},\"data\":{\"a\":\"1\"}}\n"}},
      "data":{"a":"1","b":"1"}})");
  const Json live = track_update(config_map(), nullptr, std::move(before), writer("kubectl-client-side-apply"));
  EXPECT_TRUE(apply_config(config_map(), &live, config(R"(,"data":{"a":"2"})"), writer("kubectl"), Force::kNo));
  EXPECT_FALSE(apply_config(config_map(), &live, config(R"(,"data":{"a":"2"})"), writer("other"), Force::kNo));
  EXPECT_FALSE(apply_config(config_map(), &live, config(R"(,"data":{"b":"2"})"), writer("kubectl"), Force::kNo));
}

TEST(ServerSideApply, UntrackedMembersAreNeitherAppliedNorOwned) {
  const Json sent = parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[
      {"name":"c","image":"i"}]},"status":{"phase":"Running"}})");
  const auto object = apply_config(pod(), nullptr, sent, writer("m"), Force::kNo);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(*object->find("status"), Json::object());
  EXPECT_EQ(ManagedFields::of(*object).entries()[0].fields.find("f:status"), nullptr);
}

TEST(TrackUpdate, CreateOwnsEverythingButTheServersOwn) {
  const Json created = track_update(
      pod(), nullptr,
      typed(pod(), R"({"metadata":{"name":"p","uid":"u","labels":{"a":"b"}},"spec":{"containers":[{"name":"c",
          "image":"i"}],"volumes":[{"name":"v","emptyDir":{}}]},"status":{"phase":"Pending"}})"),
      writer("kubectl-create"));
  EXPECT_EQ(ManagedFields::of(created).entries().at(0).fields.to_json(), parse(R"({
      "f:metadata":{"f:labels":{".":{},"f:a":{}}},
      "f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}},
                "f:volumes":{".":{},"k:{\"name\":\"v\"}":{".":{},"f:emptyDir":{},"f:name":{}}}}})"));
}

TEST(TrackUpdate, ChangesMoveToTheWriterAndRemovedKeysHaveNoManager) {
  const Json live =
      track_update(config_map(), nullptr,
                   typed(config_map(), R"({"metadata":{"name":"c"},"data":{"a":"1","b":"1","c":"1"}})"), writer("m1"));
  Json after = typed(config_map(), R"({"metadata":{"name":"c"},"data":{"a":"1","b":"2"}})");
  const Json updated = track_update(config_map(), &live, std::move(after), writer("m2", 5));
  EXPECT_EQ(owners(updated), "m1:.data,.data.a;m2:.data.b;");
}

/// Model: per manager a set of keys and the second of its last write that changed any.
TEST(TrackUpdate, OwnersAreWhoWroteEachKeyLast) {
  constexpr std::string_view kManagers[] = {"m0", "m1", "m2", "m3"};
  Rng rng(11);
  Json live = track_update(config_map(), nullptr, typed(config_map(), R"({"data":{"stays":"1"}})"), writer("m0"));
  std::map<std::string, std::set<std::string>, std::less<>> owned{{"m0", {"stays"}}};
  std::map<std::string, int, std::less<>> written{{"m0", 0}};
  for (int step = 1; step <= 600; ++step) {
    const std::string manager(kManagers[rng.below(std::size(kManagers))]);
    Json after = live;
    std::set<std::string> changed;
    for (std::uint64_t left = rng.below(4); left > 0; --left) {
      const std::string key = fmt::format("k{}", rng.below(6));
      if (rng.below(3) == 0) {
        after.erase({"data", key});
        changed.erase(key);
        continue;
      }
      const std::string value = fmt::format("{}", rng.below(3));
      after.make({"data", key}) = value;
      if (live.string_at({"data", key}) != value) {
        changed.insert(key);
      } else {
        changed.erase(key);
      }
    }
    std::set<std::string> lost = changed;
    for (const auto& [key, value] : *live.find("data")->if_object())
      if (after.at({"data", key}) == nullptr) lost.insert(key);
    live = track_update(config_map(), &live, std::move(after), writer(manager, step));
    for (auto& [name, keys] : owned)
      std::erase_if(keys, [&lost](const std::string& key) { return lost.contains(key); });
    owned[manager].insert(changed.begin(), changed.end());
    if (!changed.empty()) written[manager] = step;
    std::erase_if(owned, [](const auto& each) { return each.second.empty(); });
    std::map<std::string, std::set<std::string>, std::less<>> seen;
    for (const ManagedFieldsEntry& entry : ManagedFields::of(live).entries()) {
      const FieldSet* data = entry.fields.find("f:data");
      ASSERT_NE(data, nullptr) << step;
      for (const auto& [element, below] : data->children()) seen[entry.manager].insert(element.substr(2));
      EXPECT_EQ(entry.time, writer("", written[entry.manager]).time) << step;
    }
    ASSERT_EQ(seen, owned) << step;
  }
}

TEST(TrackUpdate, RepeatingAValueChangesNothing) {
  const Json live = track_update(config_map(), nullptr, typed(config_map(), R"({"data":{"a":"1"}})"), writer("m1"));
  EXPECT_EQ(track_update(config_map(), &live, live, writer("m2", 5)), live);
  // A client that does not know managedFields does not remove them.
  Json unaware = live;
  unaware.erase({"metadata", "managedFields"});
  EXPECT_EQ(track_update(config_map(), &live, unaware, writer("m2", 5)), live);
}

TEST(TrackUpdate, TheListSentCountsAndOneEmptyEntryForgets) {
  const Json live = track_update(config_map(), nullptr, typed(config_map(), R"({"data":{"a":"1"}})"), writer("m1"));
  Json renamed = live;
  (*renamed.at({"metadata", "managedFields"})->if_array())[0]["manager"] = "m9";
  EXPECT_EQ(owners(track_update(config_map(), &live, renamed, writer("m2"))), "m9:.data,.data.a;");
  EXPECT_EQ(owners(track_update(config_map(), &live, renamed, writer("m2", 0, "status"))), "m1:.data,.data.a;");
  Json reset = live;
  *reset.at({"metadata", "managedFields"}) = Json::array({Json::object()});
  EXPECT_EQ(owners(track_update(config_map(), &live, reset, writer("m2"))), "");
  Json broken = live;
  *broken.at({"metadata", "managedFields"}) = parse(R"([{"manager":"x","operation":"Steal"}])");
  EXPECT_EQ(owners(track_update(config_map(), &live, broken, writer("m2"))), "m1:.data,.data.a;");
}

TEST(TrackUpdate, OldUpdatersAreFolded) {
  Json live = track_update(config_map(), nullptr, typed(config_map(), "{}"), writer("m"));
  for (int i = 0; i < 15; ++i) {
    Json after = live;
    after.make({"data", fmt::format("k{:02}", i)}) = "1";
    live = track_update(config_map(), &live, std::move(after), writer(fmt::format("m{:02}", i), i));
  }
  // The first writer owned nothing; an object that was created without fields has no owners to continue.
  EXPECT_EQ(owners(live), "");

  live = track_update(config_map(), nullptr, typed(config_map(), R"({"data":{"k":"1"}})"), writer("m"));
  for (int i = 0; i < 15; ++i) {
    Json after = live;
    after.make({"data", fmt::format("k{:02}", i)}) = "1";
    live = track_update(config_map(), &live, std::move(after), writer(fmt::format("m{:02}", i), i));
  }
  const ManagedFields managed = ManagedFields::of(live);
  EXPECT_EQ(managed.entries().size(), 10u);
  FieldSet all;
  for (const ManagedFieldsEntry& entry : managed.entries()) all.add(entry.fields);
  EXPECT_EQ(all.paths().size(), 17u);
}

TEST(ManagersBounds, ConflictsAreListedUpToABound) {
  const Type& type = *find_kind("v1", "ConfigMap");
  Json config = Json::object({{"apiVersion", "v1"}, {"kind", "ConfigMap"}});
  for (int i = 0; i < 1'000; ++i) config.make({"data", fmt::format("k{}", i)}) = "a";
  const auto first = apply_config(type, nullptr, config, {"one", {}, {}, {}}, Force::kNo);
  ASSERT_TRUE(first) << first.error().message;
  for (auto& [key, value] : *config.find("data")->if_object()) value = "b";
  const auto second = apply_config(type, &*first, config, {"two", {}, {}, {}}, Force::kNo);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, 409);
  EXPECT_EQ(second.error().details->causes.size(), kCausesMax);
}

}  // namespace
}  // namespace spillway::api
