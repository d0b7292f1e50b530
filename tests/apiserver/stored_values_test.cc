// The check of a store's keys and values: the object that a key means, and the faults of the value.
#include "apiserver/stored_values.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::apiserver {
namespace {

constexpr std::string_view kMap =
    R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","uid":"u"},"data":{"x":"1"}})";
constexpr std::string_view kNode = R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n","uid":"u"}})";

struct Case {
  std::string_view key;
  std::string value;
  std::string_view resource;
  std::string_view problem;
};

TEST(StoredValues, KnowsWhatAKeyMeansAndWhatIsWrongWithTheValue) {
  const StoredValues values;
  const Case cases[] = {
      {"/registry/configmaps/default/a", std::string(kMap), "configmaps", ""},
      {"/registry/minions/n", std::string(kNode), "nodes", ""},
      {"/registry/newkinds/default/a", "\x01", "(unknown)", ""},
      {"/registry/configmaps/default/b", std::string(kMap), "configmaps",
       "says it is \"default/a\", expected \"default/b\" as its key does"},
      {"/registry/configmaps/other/a", std::string(kMap), "configmaps",
       "says it is \"default/a\", expected \"other/a\" as its key does"},
      {"/registry/configmaps/a", std::string(kMap), "configmaps",
       "says it is \"default/a\", expected \"a\" as its key does"},
      {"/registry/minions/m", std::string(kNode), "nodes", "says it is \"n\", expected \"m\" as its key does"},
      {"/registry/pods/default/a", std::string(kMap), "pods", "is a \"ConfigMap\" of \"v1\", expected a Pod of v1"},
      {"/registry/deployments/default/a", "[]", "deployments.apps", "is no JSON object, expected a Deployment"},
      {"/registry/configmaps/default/a",
       R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}})", "configmaps",
       "has no uid, expected one"},
  };
  for (const Case& each : cases) {
    const StoredValues::Verdict verdict = values.check(each.key, each.value);
    EXPECT_EQ(verdict.resource, each.resource) << each.key;
    EXPECT_EQ(verdict.problem, each.problem) << each.key;
  }
}

TEST(StoredValues, FindsBytesThatAreNoObjectOfTheKind) {
  const StoredValues values;
  const std::string_view key = "/registry/configmaps/default/a";
  const std::string cut(kMap.substr(0, kMap.size() / 2));
  EXPECT_NE(values.check(key, cut).problem.find("is no JSON ("), std::string::npos) << values.check(key, cut).problem;
  const std::string odd =
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","uid":"u"},"data":[1]})";
  EXPECT_NE(values.check(key, odd).problem.find("cannot be handled as a ConfigMap"), std::string::npos)
      << values.check(key, odd).problem;
}

}  // namespace
}  // namespace spillway::apiserver
