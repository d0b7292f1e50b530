// The kinds that a policy is checked against, and its expressions against their types.
#include "policy/admission_policies/type_check.h"

#include "api/schema/schema.h"
#include "policy/admission_policies/kind_types.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::admission_policies {

namespace {

using api::Json;

webhooks::Rule rule(std::vector<std::string> groups, std::vector<std::string> versions,
                    std::vector<std::string> resources) {
  return {.operations = {"*"},
          .groups = std::move(groups),
          .versions = std::move(versions),
          .resources = std::move(resources)};
}

/// Every resource is served, as the kind of its own name.
std::optional<NamedKind> any_kind(const webhooks::ResourceName& name) {
  if (name.resource.contains('/')) return std::nullopt;
  return NamedKind{std::string(name.group), std::string(name.version), std::string(name.resource)};
}

std::vector<std::string> names(const std::vector<webhooks::Rule>& rules) {
  std::vector<std::string> out;
  for (const NamedKind& kind : kinds_to_check(rules, any_kind)) {
    out.push_back(fmt::format("{}/{}/{}", kind.group, kind.version, kind.kind));
  }
  return out;
}

using Names = std::vector<std::string>;

TEST(KindsToCheck, AreThoseThatRulesNameInTheirOrder) {
  EXPECT_EQ(names({}), Names{});
  EXPECT_EQ(names({rule({"b", "a"}, {"v2", "v1"}, {"y", "x"})}),
            (Names{"a/v1/x", "a/v1/y", "a/v2/x", "a/v2/y", "b/v1/x", "b/v1/y", "b/v2/x", "b/v2/y"}));
  EXPECT_EQ(names({rule({"a"}, {"v1"}, {"x"}), rule({"a"}, {"v1"}, {"x", "w"})}), (Names{"a/v1/w", "a/v1/x"}));
}

TEST(KindsToCheck, WildcardsNameNone) {
  EXPECT_EQ(names({rule({"*"}, {"v1"}, {"x"}), rule({"a"}, {"*"}, {"x"})}), Names{});
  EXPECT_EQ(names({rule({"a"}, {"v1"}, {"*", "x", "*/*", "y/*", "y/status"})}), Names{"a/v1/x"});
}

TEST(KindsToCheck, AreTenAtMost) {
  std::vector<std::string> many;
  for (int i = 0; i < 100; ++i) many.push_back(fmt::format("r{:02}", i));
  const Names found = names({rule({"a"}, {"v1"}, many), rule({"a"}, {"v1"}, {"a"})});
  EXPECT_EQ(found.size(), kCheckedKindsMax);
  EXPECT_EQ(found.back(), "a/v1/r09");
}

Json policy_with(const std::string& expression, const std::string& variables = "[]") {
  return *api::parse_json(
      fmt::format(R"({{"spec":{{"variables":{},"validations":[{{"expression":"{}"}}]}}}})", variables, expression));
}

std::string warning(const std::string& expression, const std::string& variables = "[]") {
  const std::vector<CheckedKind> kinds{
      {{"apps", "v1", "Deployment"}, object_type(*api::find_kind("apps/v1", "Deployment"), "Deployment")}};
  const auto warnings = type_warnings(policy_with(expression, variables), kinds, std::nullopt);
  return warnings.empty() ? std::string() : warnings[0].text;
}

TEST(TypeWarnings, TypesOfAKindAreThoseOfItsSchema) {
  for (const std::string_view fits :
       {"object.metadata.name == 'a'", "object.metadata.creationTimestamp < timestamp('2026-01-01T00:00:00Z')",
        "object.metadata.labels['a'] == 'b'", "object.spec.replicas < 3 && oldObject == null",
        "object.kind == 'Deployment' && object.apiVersion == 'apps/v1'",
        "object.spec.template.spec.containers.all(c, c.ports.all(p, p.containerPort > 1024))",
        "object.spec.strategy.rollingUpdate.maxSurge == '25%' && object.spec.strategy.rollingUpdate.maxSurge != 1",
        "object.spec.template.spec.containers[0].livenessProbe.httpGet.port == 80",
        "authorizer.group('apps').resource('deployments').check('create').allowed()",
        "request.userInfo.username != '' && namespaceObject.metadata.name != ''"}) {
    EXPECT_EQ(warning(std::string(fits)), "") << fits;
  }
  for (const std::string_view wrong :
       {"object.spec.template.spec.containers.all(c, c.ports.all(p, p.containerPort == 'a'))", "object.spec.nope == 1",
        "object.spec.template.spec.containers.all(c, c.resources.requests['cpu'] == '1')", "params == null",
        "object.metadata.labels['a'] == 1", "authorizer.requestResource.check('create').allowed()"}) {
    EXPECT_NE(warning(std::string(wrong)), "") << wrong;
  }
}

TEST(TypeWarnings, VariablesHaveTheTypesOfTheirExpressions) {
  const std::string variables =
      R"([{"name":"n","expression":"object.spec.replicas"},{"name":"bad","expression":"nope"}])";
  EXPECT_EQ(warning("variables.n > 1 && variables.bad == 'anything'", variables), "");
  EXPECT_TRUE(warning("variables.n == 'a'", variables).contains("'(int, string)'"));
}

TEST(TypeWarnings, TheTypeOfAKindThatContainsItselfEnds) {
  const cel::Type type =
      object_type(*api::find_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"), "CustomResourceDefinition");
  EXPECT_NE(cel::find_field(type, "spec"), nullptr);
}

}  // namespace

}  // namespace spillway::admission_policies
