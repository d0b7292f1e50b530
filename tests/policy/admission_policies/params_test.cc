// Parameters of a policy: where they are found, and the effect of missing ones.
#include "policy/admission_policies/world.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::admission_policies {

namespace {

constexpr std::string_view kSpec =
    "'paramKind':{'apiVersion':'t/v1','kind':'Limit'},'validations':[{'expression':'params.max > 3'}]";

struct ParamWorld : World {
  ParamWorld() {
    params.kinds = {{"Limit", true}, {"Wide", false}};
    put("Limit/default/low", 1);
    put("Limit/default/high", 9);
    put("Limit/other/low", 2);
    put("Wide//low", 1);
  }

  void put(const std::string& key, std::int64_t max) {
    params.objects[key] = std::make_shared<api::Json>(api::Json::object({{"max", max}}));
  }

  std::string said(std::string_view ref, std::string_view spec = kSpec) {
    policies.clear();
    add("p", spec, {fmt::format("'validationActions':['Deny'],'paramRef':{{{}}}", ref)});
    return refusal();
  }
};

constexpr std::string_view kFailed = "ValidatingAdmissionPolicy 'p' with binding 'b0' denied request: failed ";

TEST(PolicyParams, AreFoundByNameInTheNamespaceOfTheRequest) {
  ParamWorld world;
  EXPECT_EQ(world.said("'name':'high'"), "");
  EXPECT_EQ(world.said("'name':'low'"), std::string(kFailed) + "expression: params.max > 3");
  world.put("Limit/default/low", 8);
  EXPECT_EQ(world.said("'name':'low'"), "");
  EXPECT_EQ(world.said("'name':'low','namespace':'other'"), std::string(kFailed) + "expression: params.max > 3");
}

TEST(PolicyParams, EachThatIsSelectedCounts) {
  ParamWorld world;
  EXPECT_EQ(world.said("'selector':{}"), std::string(kFailed) + "expression: params.max > 3");
  EXPECT_EQ(world.said("'selector':{'matchLabels':{'name':'high'}}"), "");
  for (std::size_t i = 0; i <= kParamsMax; ++i) world.put(fmt::format("Limit/many/m{}", i), 5);
  EXPECT_EQ(world.said("'selector':{},'namespace':'many'"),
            std::string(kFailed) + "to configure binding: paramRef.selector selects more than 1000 objects");
  world.params.objects.erase("Limit/many/m0");
  EXPECT_EQ(world.said("'selector':{},'namespace':'many'"), "");
}

TEST(PolicyParams, MissingOnesAreAFailureUnlessAllowed) {
  ParamWorld world;
  const std::string none =
      std::string(kFailed) +
      "to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
  EXPECT_EQ(world.said("'name':'none','parameterNotFoundAction':'Deny'"), none);
  EXPECT_EQ(world.said("'name':'none'"), none);
  EXPECT_EQ(world.said("'selector':{'matchLabels':{'name':'none'}}"), none);
  EXPECT_EQ(world.said("'name':'none','parameterNotFoundAction':'Allow'"), "");
  EXPECT_EQ(world.said("'name':'none'", std::string(kSpec) + ",'failurePolicy':'Ignore'"), "");
}

TEST(PolicyParams, ABindingWithoutThemSeesNull) {
  World world;
  world.params.kinds = {{"Limit", true}};
  world.add("p", "'paramKind':{'apiVersion':'t/v1','kind':'Limit'},'validations':[{'expression':'params == null'}]");
  EXPECT_EQ(world.refusal(), "");
}

TEST(PolicyParams, OfTheClusterHaveNoNamespace) {
  ParamWorld world;
  const std::string spec =
      "'paramKind':{'apiVersion':'t/v1','kind':'Wide'},'validations':[{'expression':'params.max == 1'}]";
  EXPECT_EQ(world.said("'name':'low'", spec), "");
  EXPECT_EQ(world.said("'name':'low','namespace':'default'", spec),
            std::string(kFailed) +
                "to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
}

TEST(PolicyParams, AKindHasToBeServed) {
  ParamWorld world;
  const std::string spec = "'paramKind':{'apiVersion':'t/v1','kind':'Gone'},'validations':[{'expression':'true'}]";
  EXPECT_EQ(world.said("'name':'low'", spec),
            "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource "
            "referenced by paramKind: 't/v1, Kind=Gone'");
  EXPECT_EQ(world.said("'name':'low'", spec + ",'failurePolicy':'Ignore'"), "");
}

TEST(PolicyParams, AClusterScopedRequestHasNoNamespaceForParameters) {
  const AdmissionPolicy policy =
      policy_of(json("{'metadata':{'name':'p'},'spec':{'paramKind':{'apiVersion':'t/v1','kind':'Limit'}}}"));
  PolicyBinding binding{.name = "b", .policy = "p", .params = ParamRef{.name = "low", .ns = ""}};
  ParamWorld world;
  EXPECT_FALSE(collect_params(policy, binding, "", world.params));
  binding.params->ns = "other";
  EXPECT_TRUE(collect_params(policy, binding, "", world.params));
}

}  // namespace

}  // namespace spillway::admission_policies
