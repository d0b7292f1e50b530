// The names that expressions of a policy may use, and their types.
#include "policy/admission_policies/policy_compiler.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::admission_policies {

namespace {

std::string why(const Result<cel::Expression>& compiled) {
  return compiled ? std::string() : compiled.error().text();
}

TEST(PolicyCompiler, ParamsAreThereWithAParamKind) {
  EXPECT_EQ(why(PolicyCompiler({.params = true}).validation("params.a == 1")), "");
  EXPECT_TRUE(why(PolicyCompiler({}).validation("params.a == 1")).contains("undeclared reference to 'params'"));
  EXPECT_EQ(why(PolicyCompiler({.params = true}).condition("params != null")), "");
}

TEST(PolicyCompiler, VariablesSeeThoseBefore) {
  PolicyCompiler compiler({.variables = true});
  EXPECT_TRUE(why(compiler.variable("a", "variables.b")).contains("undefined field 'b'"));
  EXPECT_EQ(why(compiler.variable("b", "1 + 1")), "");
  EXPECT_EQ(why(compiler.variable("c", "variables.b > 1")), "");
  EXPECT_EQ(why(compiler.validation("variables.c")), "");
  EXPECT_EQ(why(compiler.validation("variables.b")), "must evaluate to bool but got int");
  EXPECT_TRUE(why(compiler.validation("variables.d")).contains("undefined field 'd'"));
  EXPECT_TRUE(why(compiler.variable("e", "variables.e")).contains("undefined field 'e'"));  // and not itself
  EXPECT_EQ(why(compiler.validation("has(variables.b)")), "");
  EXPECT_TRUE(why(compiler.validation("has(variables.z)")).contains("undefined field 'z'"));
  EXPECT_TRUE(why(compiler.condition("variables.c")).contains("undeclared reference to 'variables'"));
  EXPECT_EQ(why(compiler.validation("[1].all(variables, variables == 1)")), "");  // a variable of its own
}

TEST(PolicyCompiler, VariablesCountAsDeepAsTheyAre) {
  const auto deep = [](std::string_view open, std::string_view inner, std::string_view close, int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += open;
    text += inner;
    for (int i = 0; i < levels; ++i) text += close;
    return text;
  };
  PolicyCompiler lists({.variables = true});
  EXPECT_EQ(why(lists.variable("a", deep("[", "1", "]", 120))), "");
  EXPECT_EQ(why(lists.variable("b", deep("[", "variables.a", "]", 120))), "");
  EXPECT_TRUE(why(lists.variable("c", deep("[", "variables.b", "]", 120))).contains("recursion limit exceeded: 300"));
}

TEST(PolicyCompiler, NamespacesHaveTheirFields) {
  const PolicyCompiler compiler({});
  EXPECT_EQ(why(compiler.validation("namespaceObject.metadata.labels['a'] == 'b'")), "");
  EXPECT_EQ(why(compiler.validation("namespaceObject == null || namespaceObject.metadata.name == 'a'")), "");
  EXPECT_TRUE(why(compiler.validation("namespaceObject.metadata.managedFields == 1")).contains("undefined field"));
  EXPECT_EQ(why(compiler.condition("namespaceObject == null")), "");
  EXPECT_TRUE(why(compiler.validation("variables.a")).contains("undeclared reference to 'variables'"));
}

TEST(PolicyCompiler, TypesAreAskedFor) {
  const PolicyCompiler compiler({});
  EXPECT_EQ(why(compiler.validation("'a'")), "must evaluate to bool but got string");
  EXPECT_EQ(why(compiler.message("1")), "must evaluate to string but got int");
  EXPECT_EQ(why(compiler.annotation("1")), "must evaluate to one of [string null_type] but got int");
  EXPECT_EQ(why(compiler.annotation("null")), "");
  EXPECT_EQ(why(compiler.message("'a' + string(object.spec.b)")), "");
  EXPECT_TRUE(why(compiler.message("authorizer.path('/a').check('get').reason()")).contains("undeclared reference"));
}

TEST(PolicyCompiler, Identifiers) {
  for (const std::string_view good : {"a", "_b", "A9", "camelCase"}) EXPECT_TRUE(is_identifier(good)) << good;
  for (const std::string_view bad : {"", "9a", "a-b", "a.b", "in", "true", "null", "a b"}) {
    EXPECT_FALSE(is_identifier(bad)) << bad;
  }
}

}  // namespace

}  // namespace spillway::admission_policies
