// Requests held against admission policies: who is refused, warned, noted, and in which words.
#include "policy/admission_policies/world.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::admission_policies {

namespace {

using Texts = std::vector<std::string>;

constexpr std::string_view kNo = "ValidatingAdmissionPolicy 'p' with binding 'b0' denied request: ";

std::string no(std::string_view why) {
  return std::string(kNo) + std::string(why);
}

TEST(AdmissionPolicies, AValidationHoldsOrRefuses) {
  World world;
  EXPECT_EQ(world.refusal_of("'validations':[{'expression':'object.data.a == \\'1\\''}]"), "");
  EXPECT_EQ(world.refusal_of("'validations':[{'expression':' size(object.data) > 1 '}]"),
            no("failed expression: size(object.data) > 1"));
  EXPECT_EQ(world.refusal_of("'validations':[{'expression':'true'},{'expression':'false','message':' too bad '}]"),
            no("too bad"));
}

TEST(AdmissionPolicies, MessagesAreComposed) {
  World world;
  const auto said = [&](std::string_view expression) {
    return world.refusal_of(
        fmt::format("'validations':[{{'expression':'false','message':'plain','messageExpression':'{}'}}]", expression));
  };
  EXPECT_EQ(said("\\'a is \\' + object.data.a"), no("a is 1"));
  EXPECT_EQ(said("object.data.b + \\'\\'"), no("plain"));  // without a value
  EXPECT_EQ(said("\\'  \\'"), no("plain"));
  EXPECT_EQ(said("\\'one\\\\ntwo\\'"), no("plain"));
  EXPECT_EQ(world.refusal_of("'validations':[{'expression':'false','messageExpression':'object.data.b + \\'\\''}]"),
            no("failed expression: false"));
}

TEST(AdmissionPolicies, ReasonsBecomeCodes) {
  for (const auto& [reason, code] : std::vector<std::pair<std::string, int>>{
           {"Invalid", 422}, {"Forbidden", 403}, {"Unauthorized", 401}, {"RequestEntityTooLarge", 413}}) {
    World world;
    world.add("p", fmt::format("'validations':[{{'expression':'false','reason':'{}'}}]", reason));
    EXPECT_EQ(world.evaluated().refusal->reason, reason);
    EXPECT_EQ(http_code(reason), code);
  }
  World world;
  world.add("p", "'validations':[{'expression':'false'}]");
  EXPECT_EQ(world.evaluated().refusal->reason, "Invalid");
}

TEST(AdmissionPolicies, WhatHasNoValueFailsByThePolicy) {
  World world;
  const std::string broken = "'validations':[{'expression':'object.data.b == \\'1\\''}]";
  EXPECT_EQ(world.refusal_of(broken), no("expression 'object.data.b == \"1\"' resulted in error: no such key: b"));
  EXPECT_EQ(world.refusal_of(broken + ",'failurePolicy':'Fail'"), world.refusal());
  EXPECT_EQ(world.refusal_of(broken + ",'failurePolicy':'Ignore'"), "");
  EXPECT_EQ(world.evaluated().checks, (std::vector<Check>{{"p", "b0", Outcome::kAllow, Fault::kOther}}));
  // failurePolicy Ignore ignores errors, not the value false.
  EXPECT_EQ(world.refusal_of("'failurePolicy':'Ignore','validations':[{'expression':'false'}]"),
            no("failed expression: false"));
}

TEST(AdmissionPolicies, ActionsSayWhatFollows) {
  World world;
  world.add("p", "'validations':[{'expression':'true'},{'expression':'false','message':'m'}]",
            {"'validationActions':['Warn','Audit']", "'validationActions':['Audit','Deny']"});
  const PolicyResult made = world.evaluated();
  EXPECT_EQ(made.warnings, Texts{"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b0': m"});
  EXPECT_EQ(made.refusal->message, "ValidatingAdmissionPolicy 'p' with binding 'b1' denied request: m");
  ASSERT_EQ(made.audited.size(), 2U);
  EXPECT_EQ(api::to_text(made.audited[0]),
            R"({"binding":"b0","expressionIndex":1,"message":"m","policy":"p","validationActions":["Warn","Audit"]})");
  EXPECT_EQ(made.checks, (std::vector<Check>{{"p", "b0", Outcome::kWarn, Fault::kNone},
                                             {"p", "b0", Outcome::kAudit, Fault::kNone},
                                             {"p", "b1", Outcome::kAudit, Fault::kNone},
                                             {"p", "b1", Outcome::kDeny, Fault::kNone}}));
}

TEST(AdmissionPolicies, TheFirstRefusalIsReportedAllAreEvaluated) {
  World world;
  world.add("a", "'validations':[{'expression':'false','message':'first'}]");
  world.add("b", "'validations':[{'expression':'false','message':'second'}]");
  world.add("c", "'validations':[{'expression':'false','message':'third'}]", {"'validationActions':['Warn']"});
  EXPECT_EQ(world.refusal(), "ValidatingAdmissionPolicy 'a' with binding 'b0' denied request: first");
  EXPECT_EQ(world.evaluated().checks.size(), 3U);
  EXPECT_EQ(world.evaluated().warnings.size(), 1U);
}

TEST(AdmissionPolicies, RulesSayWhatTheyAreAbout) {
  World world;
  const auto about = [&](std::string_view match, std::vector<std::string> bindings = {"'validationActions':['Deny']"}) {
    world.policies.clear();
    world.add("p", "'validations':[{'expression':'false'}]", std::move(bindings), match);
    return !world.refusal().empty();
  };
  const std::string maps = "{'operations':['CREATE'],'apiGroups':[''],'apiVersions':['v1'],'resources':['configmaps']";
  EXPECT_TRUE(about("'resourceRules':[" + maps + "}]"));
  EXPECT_TRUE(about("'resourceRules':[" + maps + ",'resourceNames':['m']}]"));
  EXPECT_FALSE(about("'resourceRules':[" + maps + ",'resourceNames':['n']}]"));
  EXPECT_FALSE(about("'resourceRules':[" + maps + "}],'excludeResourceRules':[" + maps + "}]"));
  EXPECT_TRUE(about("'resourceRules':[" + maps + "}],'excludeResourceRules':[" + maps + ",'resourceNames':['n']}]"));
  EXPECT_TRUE(about("'resourceRules':[" + maps + "}],'objectSelector':{'matchLabels':{'app':'x'}}"));
  EXPECT_FALSE(about("'resourceRules':[" + maps + "}],'objectSelector':{'matchLabels':{'app':'y'}}"));
  EXPECT_TRUE(about("'resourceRules':[" + maps + "}],'namespaceSelector':{'matchLabels':{'tier':'gold'}}"));
  EXPECT_FALSE(about("'resourceRules':[" + maps + "}],'namespaceSelector':{'matchLabels':{'tier':'tin'}}"));
  EXPECT_FALSE(about("'resourceRules':[]"));

  const std::string all = "'resourceRules':[" + maps + "}]";
  const auto bound = [&](std::string_view match) {
    return about(all, {fmt::format("'validationActions':['Deny'],'matchResources':{{{}}}", match)});
  };
  EXPECT_TRUE(bound(""));
  EXPECT_TRUE(bound("'namespaceSelector':{'matchLabels':{'tier':'gold'}}"));
  EXPECT_FALSE(bound("'namespaceSelector':{'matchLabels':{'tier':'tin'}}"));
  EXPECT_FALSE(bound("'objectSelector':{'matchLabels':{'app':'y'}}"));
  EXPECT_FALSE(bound("'resourceRules':[" + maps + ",'resourceNames':['n']}]"));
  EXPECT_FALSE(bound("'excludeResourceRules':[" + maps + "}]"));
  world.operation = webhooks::Operation::kDelete;
  EXPECT_FALSE(about(all));
}

TEST(AdmissionPolicies, EquivalentNamesCountUnlessExact) {
  World world;
  world.names = {{"apps", "v2", "things"}, {"apps", "v1", "things"}};
  const std::string match =
      "'resourceRules':[{'operations':['*'],'apiGroups':['apps'],'apiVersions':['v1'],'resources':['things']}]";
  world.add("p", "'validations':[{'expression':'false'}]", {"'validationActions':['Deny']"}, match);
  EXPECT_NE(world.refusal(), "");
  EXPECT_EQ(world.asked.back(), world.names[1]);  // shown under the rule's name
  world.policies.clear();
  world.add("p", "'validations':[{'expression':'false'}]", {"'validationActions':['Deny']"},
            match + ",'matchPolicy':'Exact'");
  EXPECT_EQ(world.refusal(), "");
}

TEST(AdmissionPolicies, ConditionsAreEvaluatedFirst) {
  World world;
  const auto spec = [](std::string_view condition) {
    return fmt::format("'matchConditions':[{{'name':'c','expression':'{}'}}],'validations':[{{'expression':'false'}}]",
                       condition);
  };
  EXPECT_NE(world.refusal_of(spec("request.userInfo.username == \\'jane\\'")), "");
  EXPECT_EQ(world.refusal_of(spec("request.userInfo.username == \\'john\\'")), "");
  EXPECT_TRUE(world.evaluated().conditions.at(0).excluded);
  EXPECT_EQ(world.refusal_of(spec("1 / 0 == 1")), no("expression '1 / 0 == 1' resulted in error: division by zero"));
  EXPECT_EQ(world.refusal_of(spec("1 / 0 == 1") + ",'failurePolicy':'Ignore'"), "");
}

TEST(AdmissionPolicies, VariablesAreEvaluatedOnce) {
  World world;
  int checks = 0;
  world.check = [&](const cel::AccessRequest&) {
    ++checks;
    return cel::AccessDecision{.allowed = true, .reason = ""};
  };
  world.add("p",
            "'variables':[{'name':'may','expression':'authorizer.path(\\'/a\\').check(\\'get\\').allowed()'},"
            "{'name':'never','expression':'authorizer.path(\\'/b\\').check(\\'get\\').allowed()'}],"
            "'validations':[{'expression':'variables.may'},{'expression':'variables.may && variables.may'}]");
  EXPECT_EQ(world.refusal(), "");
  EXPECT_EQ(checks, 1);  // and a variable that is not used is not evaluated
  EXPECT_EQ(
      world.refusal_of("'variables':[{'name':'v','expression':'object.data.b'}],"
                       "'validations':[{'expression':'variables.v == \\'1\\''}]"),
      no("expression 'variables.v == \"1\"' resulted in error: composited variable \"v\" fails to evaluate: no such "
         "key: b"));
}

TEST(AdmissionPolicies, NamespacesAreSeen) {
  World world;
  EXPECT_EQ(world.refusal_of("'validations':[{'expression':'namespaceObject.metadata.labels.tier == \\'gold\\''}]"),
            "");
}

TEST(AdmissionPolicies, AuditAnnotationsAreJoined) {
  World world;
  world.add("p",
            "'auditAnnotations':[{'key':'k','valueExpression':'\\'a=\\' + object.data.a'},"
            "{'key':'none','valueExpression':'null'},{'key':'empty','valueExpression':'\\' \\''}]",
            {"'validationActions':['Deny']", "'validationActions':['Audit']"});
  const PolicyResult made = world.evaluated();
  EXPECT_FALSE(made.refusal);
  EXPECT_EQ(made.annotations, (std::vector<std::pair<std::string, std::string>>{{"p/k", "a=1"}}));
  EXPECT_EQ(world.refusal_of("'auditAnnotations':[{'key':'k','valueExpression':'object.data.b + \\'\\''}]"),
            no("expression 'object.data.b + \"\"' resulted in error: no such key: b"));
  EXPECT_EQ(world.refusal_of(
                "'failurePolicy':'Ignore','auditAnnotations':[{'key':'k','valueExpression':'object.data.b + \\'\\''}]"),
            "");
}

/// Costs more than an expression may.
std::string dear(std::size_t size, int depth) {
  std::string list = "[0";
  for (std::size_t i = 1; i < size; ++i) list += fmt::format(",{}", i);
  list += "]";
  std::string text = "true";
  for (int i = 0; i < depth; ++i) text = fmt::format("{}.all(x{}, {})", list, i, text);
  return text;
}

TEST(AdmissionPolicies, EvaluationsAreBounded) {
  World world;
  const std::string one = fmt::format("{{'expression':'{}'}}", dear(60, 4));
  const std::string many = one + "," + one + "," + one + "," + one + "," + one + "," + one;
  EXPECT_TRUE(
      world.refusal_of("'validations':[" + one + "]").ends_with("operation cancelled: actual cost limit exceeded"));
  EXPECT_EQ(world.refusal_of("'failurePolicy':'Ignore','validations':[" + one + "]"), "");
  EXPECT_EQ(world.refusal_of("'validations':[" + many + "," + many + "]"),
            no("validation failed due to running out of cost budget, no further validation rules will be run"));
  EXPECT_EQ(world.evaluated().checks, (std::vector<Check>{{"p", "b0", Outcome::kDeny, Fault::kBudget}}));
  // Messages are evaluated after all validations, from the budget that is left.
  const std::string dear_message =
      fmt::format("{{'expression':'false','message':'m','messageExpression':'string({})'}}", dear(60, 4));
  std::string false_ones;
  for (int i = 0; i < 12; ++i) false_ones += dear_message + ",";
  EXPECT_EQ(world.refusal_of("'failurePolicy':'Ignore','validations':[" + false_ones + "{'expression':'true'}]"),
            no("m"));
  // All policies of a request together.
  world.policies.clear();
  for (const std::string_view name : {"a", "b", "c"}) {
    world.add(name, "'failurePolicy':'Ignore','validations':[" + many + "," + many + "]");
  }
  world.add("d", "'validations':[{'expression':'true'}]");
  EXPECT_EQ(
      world.refusal(),
      "ValidatingAdmissionPolicy 'd' with binding 'b0' denied request: validation failed due to running out of cost "
      "budget, no further validation rules will be run");
}

}  // namespace

}  // namespace spillway::admission_policies
