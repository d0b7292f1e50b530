// Pure parts of the write path: metadata rules, what changed, who may grant what, what an object is made of.
#include "api/json/json.h"
#include "apiserver/access/escalation.h"
#include "apiserver/access/node_restriction.h"
#include "apiserver/kinds/kind_rows.h"
#include "apiserver/read/stored_object.h"
#include "apiserver/request/openapi.h"
#include "apiserver/resource/metadata_rules.h"
#include "apiserver/resource/object_change.h"
#include "apiserver/roles/rule_cover.h"
#include "base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;

Json json(std::string_view text) {
  return api::parse_json(text).value();
}

const ResourceRegistry& registry() {
  static const ResourceRegistry made(kinds::kind_rows());
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
  EXPECT_TRUE(name_problems(NameRule::kDnsLabel, "1a").empty());
  EXPECT_TRUE(name_problems(NameRule::kPathSegment, "system:node:x").empty());
  EXPECT_FALSE(name_problems(NameRule::kPathSegment, "a/b").empty());
  EXPECT_FALSE(name_problems(NameRule::kPathSegment, "..").empty());
}

TEST(MetadataRules, EveryErrorNamesItsField) {
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

TEST(MetadataRules, CausesAreRepeatedAsOftenAsTheChecksOfTheKindRun) {
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
  EXPECT_EQ(count("clusterroles.rbac.authorization.k8s.io", UpdatedPart::kMain, "metadata.labels"), 4);
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

TEST(FieldValues, HoldAnyTextInOrder) {
  const std::string with_nul("a\0b", 3);
  const std::string large(70'000, 'x');
  FieldValues values;
  EXPECT_TRUE(values.empty());
  EXPECT_FALSE(values.contains(""));
  for (const std::string& value : {std::string(), with_nul, std::string("Running"), large}) values.push_back(value);
  values.shrink();
  ASSERT_EQ(values.size(), 4U);
  EXPECT_EQ(values.front(), "");
  EXPECT_EQ(values[1], with_nul);
  EXPECT_EQ(values[2], "Running");
  EXPECT_EQ(values[3], large);
  EXPECT_TRUE(values.contains("Running"));
  EXPECT_TRUE(values.contains(""));
  EXPECT_FALSE(values.contains("Run"));
  FieldValues others;
  for (const std::string& value : {std::string("a"), std::string("b")}) others.push_back(value);
  FieldValues joined;
  joined.push_back("ab");
  EXPECT_FALSE(others == joined) << "values do not run together";
  EXPECT_FALSE(values == others);
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

RuleComparison compare(const std::vector<PolicyRule>& held, const std::vector<PolicyRule>& wanted) {
  std::vector<const PolicyRule*> places;
  for (const PolicyRule& each : held) places.push_back(&each);
  return compare_rules(places, wanted);
}

bool covers(std::span<const PolicyRule> held, const PolicyRule& wanted) {
  return are_covered(held, std::span(&wanted, 1));
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

/// "p0", "p1", ...
std::vector<std::string> numbered(const char* prefix, std::size_t count) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < count; ++i) words.push_back(prefix + std::to_string(i));
  return words;
}

/// The bounds of documents let 10,000 values through, so the product of three lists is 3,300 to the third.
constexpr std::size_t kThird = 3'300;

TEST(Escalation, WordsThatAreRepeatedCountOnce) {
  const std::vector<PolicyRule> held{rule({"get"}, {"pods"}), rule({"list"}, {"pods"})};
  const PolicyRule wanted{std::vector<std::string>(kThird, "get"),
                          std::vector<std::string>(kThird, ""),
                          std::vector<std::string>(kThird, "pods"),
                          {},
                          {}};
  const RuleComparison same = compare(held, {wanted});
  EXPECT_EQ(same.answer, RuleComparison::Answer::kCovered);
  EXPECT_LE(same.steps, 80 * 3 * kThird) << "a step or two for each word, not for each product";
  PolicyRule more = wanted;
  more.verbs.back() = "watch";
  EXPECT_EQ(compare(held, {more}).answer, RuleComparison::Answer::kLacking);
}

TEST(Escalation, WordsThatTheSameRulesGrantCountOnce) {
  const PolicyRule wanted{numbered("v", kThird), numbered("g", kThird), numbered("r", kThird), {}, {}};
  const std::vector<PolicyRule> everything{{{"*"}, {"*"}, {"*"}, {}, {}}};
  EXPECT_EQ(compare(everything, {wanted}).answer, RuleComparison::Answer::kCovered);
  // Each of two rules has half of the verbs, so neither grants all of them.
  PolicyRule first{numbered("v", kThird / 2), {"*"}, {"*"}, {}, {}};
  PolicyRule second{{wanted.verbs.begin() + kThird / 2, wanted.verbs.end()}, wanted.api_groups, {"*"}, {}, {}};
  const RuleComparison halves = compare({first, second}, {wanted});
  EXPECT_EQ(halves.answer, RuleComparison::Answer::kCovered);
  EXPECT_LE(halves.steps, 2 * 80 * 3 * kThird);
  second.api_groups.pop_back();
  EXPECT_EQ(compare({first, second}, {wanted}).answer, RuleComparison::Answer::kLacking);
}

TEST(Escalation, ManyRulesAgainstManyHeldEndWithinTheBound) {
  std::vector<PolicyRule> held;
  std::vector<PolicyRule> wanted;
  for (std::size_t i = 0; i < 1'400; ++i) {
    held.push_back(rule({"get"}, {"pods"}, {"p" + std::to_string(i)}));
    wanted.push_back(rule({"get"}, {"pods"}, {"p" + std::to_string(i), "p0"}));
  }
  const RuleComparison each = compare(held, wanted);
  EXPECT_EQ(each.answer, RuleComparison::Answer::kCovered);
  EXPECT_LE(each.steps, kCoverStepsMax);
  wanted[700].resource_names.emplace_back("other");
  const RuleComparison other = compare(held, wanted);
  EXPECT_EQ(other.answer, RuleComparison::Answer::kLacking);
  EXPECT_EQ(other.lacking, 700U);
}

TEST(Escalation, TooManyStepsAreRefusedAndNotTaken) {
  // Every verb is held for another resource and every resource for another verb: no rule grants more than one product.
  std::vector<PolicyRule> held;
  for (std::size_t v = 0; v < 300; ++v) {
    for (std::size_t r = 0; r < 300; ++r) {
      held.push_back(rule({"v" + std::to_string(v)}, {"r" + std::to_string(r)}));
    }
  }
  const RuleComparison large = compare(held, {rule(numbered("v", 300), numbered("r", 300))});
  EXPECT_EQ(large.answer, RuleComparison::Answer::kTooLarge);
  EXPECT_LE(large.steps, kCoverStepsMax);
}

/// The comparison decides as walking every product does.
TEST(Escalation, DecidesLikeAWalkOverAllProducts) {
  Rng rng = Rng(7).fork("rules");
  const auto some = [&](std::initializer_list<const char*> words) {
    std::vector<std::string> out;
    for (const char* word : words) {
      if (rng.below(2) == 0) out.emplace_back(word);
    }
    return out;
  };
  const auto any_rule = [&] {
    return PolicyRule{some({"get", "list", "*"}), some({"", "apps", "*"}), some({"pods", "nodes", "*"}),
                      rng.below(2) == 0 ? std::vector<std::string>() : some({"a", "b"}), some({"/a/*", "/a/b", "*"})};
  };
  const auto has = [](const std::vector<std::string>& list, const std::string& word) {
    return std::ranges::any_of(list, [&](const std::string& one) { return one == "*" || one == word; });
  };
  const auto walk = [&](const std::vector<PolicyRule>& held, const PolicyRule& wanted) {
    for (const std::string& verb : wanted.verbs) {
      for (const std::string& url : wanted.non_resource_urls) {
        if (std::ranges::none_of(held, [&](const PolicyRule& one) {
              return has(one.verbs, verb) &&
                     std::ranges::any_of(one.non_resource_urls, [&](const std::string& held_url) {
                       return held_url == url ||
                              (held_url.ends_with('*') && url.starts_with(held_url.substr(0, held_url.size() - 1)));
                     });
            })) {
          return false;
        }
      }
      for (const std::string& group : wanted.api_groups) {
        for (const std::string& resource : wanted.resources) {
          std::vector<std::string> names = wanted.resource_names;
          if (names.empty()) names.emplace_back();
          for (const std::string& name : names) {
            if (std::ranges::none_of(held, [&](const PolicyRule& one) {
                  return has(one.verbs, verb) && has(one.api_groups, group) && has(one.resources, resource) &&
                         (one.resource_names.empty() ||
                          std::ranges::find(one.resource_names, name) != one.resource_names.end());
                })) {
              return false;
            }
          }
        }
      }
    }
    return true;
  };
  std::size_t covered = 0;
  for (int round = 0; round < 4'000; ++round) {
    std::vector<PolicyRule> held;
    for (std::size_t i = 0; i < 1 + rng.below(5); ++i) held.push_back(any_rule());
    const PolicyRule wanted = any_rule();
    const bool want = walk(held, wanted);
    covered += want ? 1 : 0;
    ASSERT_EQ(covers(held, wanted), want) << api::to_text(to_json(wanted));
  }
  EXPECT_GT(covered, 100U);
  EXPECT_LT(covered, 3'900U);
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

TEST(OpenApi, EveryDocumentOfTheIndexIsServedAndPatchesNameTheirKind) {
  OpenApi openapi(registry(), "0");
  const Json index = json(openapi.whole({.of = OpenApi::Page::Of::kV3Index})->text);
  EXPECT_GE(index.find("paths")->if_object()->size(), 12U);
  for (const auto& [path, entry] : *index.find("paths")->if_object()) {
    const OpenApi::Document* found = openapi.whole({.of = OpenApi::Page::Of::kV3Document, .path = path});
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
  const Json core = json(openapi.whole({.of = OpenApi::Page::Of::kV3Document, .path = "api/v1"})->text);
  const Json* patch = core.at({"paths", "/api/v1/namespaces/{namespace}/pods/{name}", "patch"});
  ASSERT_NE(patch, nullptr);
  EXPECT_EQ(patch->string_at({"x-kubernetes-group-version-kind", "kind"}), "Pod");
  EXPECT_EQ(patch->find("parameters")->if_array()->front().string_at({"name"}), "fieldValidation");
  EXPECT_EQ(openapi.whole({.of = OpenApi::Page::Of::kV3Document, .path = "apis/nosuch/v1"}), nullptr);
  EXPECT_EQ(openapi.whole({.of = OpenApi::Page::Of::kV2Protobuf})->text.substr(0, 5), std::string("\x0a\x03") + "2.0");
}

}  // namespace

}  // namespace spillway::apiserver
