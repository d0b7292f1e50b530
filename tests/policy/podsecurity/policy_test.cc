#include "policy/podsecurity/policy.h"

#include "policy/podsecurity/pod_change.h"
#include "policy/podsecurity/pods.h"

#include <fmt/format.h>

namespace spillway::podsecurity {
namespace {

TEST(PodSecurityPolicy, ReadsVersions) {
  for (const std::string_view text : {"latest", "v1.0", "v1.9", "v1.10", "v1.32", "v1.99", "v1.2147483647"}) {
    const auto version = parse_version(text);
    ASSERT_TRUE(version) << text;
    EXPECT_EQ(version->text(), text);
  }
  for (const std::string_view text : {"", "v1", "v1.", "v1.00", "v1.01", "1.0", "v2.0", "v1.-1", "v1.+1", "v1.x",
                                      "v1.0.0", " latest", "Latest", "v1.2147483648", "v1.99999999999999999999"}) {
    EXPECT_FALSE(parse_version(text)) << text;
  }
}

TEST(PodSecurityPolicy, ReadsLevels) {
  for (const Level level : {Level::kPrivileged, Level::kBaseline, Level::kRestricted}) {
    EXPECT_EQ(parse_level(to_string(level)), level);
  }
  for (const std::string_view text : {"", "Baseline", "restricted ", "none"}) EXPECT_FALSE(parse_level(text)) << text;
}

/// "LEVEL:VERSION" of enforce, audit and warn under short labels: "enforce", "warn-version".
std::string asked(std::string_view labels, const Policy& defaults = {}) {
  api::Json named = api::Json::object();
  const api::Json given = json(labels);
  for (const auto& [key, value] : *given.if_object()) named["pod-security.kubernetes.io/" + key] = value;
  const NamespacePolicy found = policy_of(named, defaults);
  std::string text =
      fmt::format("{} {} {}", found.policy.enforce.text(), found.policy.audit.text(), found.policy.warn.text());
  for (const api::FieldError& error : found.errors.errors()) text += "; " + error.text();
  return text;
}

TEST(PodSecurityPolicy, IsWhatLabelsAskFor) {
  EXPECT_EQ(asked("{}"), "privileged:latest privileged:latest privileged:latest");
  EXPECT_EQ(asked(R"({"audit":"baseline","audit-version":"v1.20"})"),
            "privileged:latest baseline:v1.20 privileged:latest");
  EXPECT_EQ(asked(R"({"enforce-version":"v1.20"})"), "privileged:v1.20 privileged:latest privileged:latest");
  EXPECT_EQ(asked(R"({"enforce":"baseline","warn":"privileged"})"),
            "baseline:latest privileged:latest privileged:latest");
}

/// A namespace without a level for warnings warns by the enforced one.
TEST(PodSecurityPolicy, WarnsByWhatIsEnforced) {
  EXPECT_EQ(asked(R"({"enforce":"restricted","enforce-version":"v1.25"})"),
            "restricted:v1.25 privileged:latest restricted:v1.25");
  EXPECT_EQ(asked(R"({"enforce":"baseline","enforce-version":"v1.25","warn-version":"v1.30"})"),
            "baseline:v1.25 privileged:latest baseline:v1.30");
  const Policy strict{.enforce = {}, .audit = {}, .warn = restricted("v1.20")};
  EXPECT_EQ(asked(R"({"enforce":"baseline"})", strict), "baseline:latest privileged:latest restricted:v1.20");
  EXPECT_EQ(
      asked(R"({"enforce":"other"})"),
      "restricted:latest privileged:latest privileged:latest; metadata.labels[pod-security.kubernetes.io/enforce]: "
      "Invalid value: \"other\": must be one of privileged, baseline, restricted");
}

TEST(PodSecurityPolicy, IsStrictWhereLabelsAreWrong) {
  EXPECT_EQ(
      asked(R"({"enforce":"baseline","enforce-version":"1.20","audit":"","warn":"x","warn-version":"v1.02"})"),
      "baseline:latest privileged:latest privileged:latest"
      "; metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: \"1.20\": must be \"latest\" or "
      "\"v1.x\"; metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: \"\": must be one of privileged, "
      "baseline, restricted; metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: \"x\": must be one of "
      "privileged, baseline, restricted; metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "
      "\"v1.02\": must be \"latest\" or \"v1.x\"");
}

TEST(PodSecurityPolicy, FallsBackOnDefaults) {
  const Policy defaults{baseline("v1.30"), restricted(), baseline()};
  EXPECT_EQ(asked("{}", defaults), "baseline:v1.30 restricted:latest baseline:latest");
  EXPECT_EQ(asked(R"({"enforce":"privileged"})", defaults), "privileged:v1.30 restricted:latest baseline:latest");
}

TEST(PodSecurityPolicy, IsTheSamePrivilegedInEveryVersion) {
  EXPECT_TRUE(equivalent({standard(Level::kPrivileged, "v1.0"), baseline(), baseline("v1.2")},
                         {standard(Level::kPrivileged, "v1.9"), baseline(), baseline("v1.2")}));
  EXPECT_FALSE(equivalent({{}, baseline("v1.3"), {}}, {{}, baseline(), {}}));
  EXPECT_FALSE(equivalent({baseline(), {}, {}}, {restricted(), {}, {}}));
}

constexpr std::string_view kPod = R"({"metadata":{"annotations":{"a":"b"}},"spec":{
  "initContainers":[{"name":"i","image":"x"}],"containers":[{"name":"c","image":"x"}],
  "ephemeralContainers":[{"name":"e","image":"x"},{"name":"f","image":"x"}]}})";

TEST(PodChange, IsEvaluatedWhereItMatters) {
  struct Row {
    std::string_view what;
    std::string_view now;
    bool significant;
  };

  const Row rows[] = {
      {"nothing", kPod, false},
      {"metadata, tolerations, the order of containers for debugging and one less",
       R"({"metadata":{"labels":{"x":"y"},"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"x"}},"spec":{"tolerations":[{}],"activeDeadlineSeconds":5,
         "initContainers":[{"name":"i","image":"x"}],"containers":[{"name":"c","image":"x"}],"ephemeralContainers":[{"name":"f","image":"x"}]}})",
       false},
      {"an image", R"({"spec":{"initContainers":[{"name":"i","image":"x"}],"containers":[{"name":"c","image":"y"}]}})",
       true},
      {"an image of an init container",
       R"({"spec":{"initContainers":[{"name":"i","image":"y"}],"containers":[{"name":"c","image":"x"}]}})", true},
      {"a container less", R"({"spec":{"initContainers":[],"containers":[{"name":"c","image":"x"}]}})", true},
      {"a container more",
       R"({"spec":{"initContainers":[{"name":"i","image":"x"}],"containers":[{"name":"c","image":"x"},{"name":"d","image":"x"}]}})",
       true},
      {"a container for debugging more",
       R"({"spec":{"initContainers":[{"name":"i","image":"x"}],"containers":[{"name":"c","image":"x"}],
         "ephemeralContainers":[{"name":"e","image":"x"},{"name":"f","image":"x"},{"name":"g","image":"x"}]}})",
       true},
      {"another container for debugging",
       R"({"spec":{"initContainers":[{"name":"i","image":"x"}],"containers":[{"name":"c","image":"x"}],"ephemeralContainers":[{"name":"g","image":"x"}]}})",
       true},
      {"a seccomp annotation of a container",
       R"({"metadata":{"annotations":{"container.seccomp.security.alpha.kubernetes.io/c":"unconfined"}},
         "spec":{"initContainers":[{"name":"i","image":"x"}],"containers":[{"name":"c","image":"x"}]}})",
       true}};
  for (const Row& row : rows) EXPECT_EQ(is_significant_change(json(row.now), json(kPod)), row.significant) << row.what;
}

}  // namespace
}  // namespace spillway::podsecurity
