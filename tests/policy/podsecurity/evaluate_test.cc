#include "policy/podsecurity/pods.h"

#include <fmt/format.h>

namespace spillway::podsecurity {
namespace {

// A pod that violates every control.
constexpr std::string_view kWorst = R"({
  "hostNetwork":true,
  "securityContext":{"runAsUser":0,"runAsNonRoot":false,"appArmorProfile":{"type":"Unconfined"},"seccompProfile":{"type":"Unconfined"},
    "seLinuxOptions":{"user":"u"},"sysctls":[{"name":"a"}],"windowsOptions":{"hostProcess":true}},
  "volumes":[{"name":"v","hostPath":{"path":"/"}}],
  "containers":[{"name":"a","ports":[{"hostPort":1}],"livenessProbe":{"httpGet":{"host":"h"}},
    "securityContext":{"privileged":true,"procMount":"Unmasked","capabilities":{"add":["SYS_ADMIN"]}}}]})";

constexpr std::string_view kWorstMetadata =
    R"({"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined"}})";

constexpr std::string_view kGood = R"({
  "securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},
  "containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]})";

std::string ids(const LevelVersion& by) {
  std::string text;
  for (const Violation& each : violations_of(by, kWorst, kWorstMetadata)) text += fmt::format("{} ", each.check);
  return text;
}

/// The checks of each version of the standards, in order.
TEST(PodSecurityStandards, GrowWithTheirVersions) {
  const std::string b0 =
      "appArmorProfile capabilities_baseline hostNamespaces hostPathVolumes hostPorts privileged procMount "
      "seLinuxOptions seccompProfile_baseline sysctls windowsHostProcess ";
  const std::string b34 =
      "appArmorProfile capabilities_baseline hostNamespaces hostPathVolumes hostPorts hostProbesAndHostLifecycle "
      "privileged procMount seLinuxOptions seccompProfile_baseline sysctls windowsHostProcess ";
  for (int minor = 0; minor <= kNewestMinor; ++minor)
    EXPECT_EQ(ids(baseline(fmt::format("v1.{}", minor))), minor < 34 ? b0 : b34);
  const std::string v0 =
      "appArmorProfile capabilities_baseline hostNamespaces hostPorts privileged procMount seLinuxOptions "
      "seccompProfile_baseline sysctls windowsHostProcess restrictedVolumes runAsNonRoot ";
  const std::string v8 =
      "appArmorProfile capabilities_baseline hostNamespaces hostPorts privileged procMount seLinuxOptions "
      "seccompProfile_baseline sysctls windowsHostProcess allowPrivilegeEscalation restrictedVolumes runAsNonRoot ";
  const std::string v19 =
      "appArmorProfile capabilities_baseline hostNamespaces hostPorts privileged procMount seLinuxOptions sysctls "
      "windowsHostProcess allowPrivilegeEscalation restrictedVolumes runAsNonRoot seccompProfile_restricted ";
  const std::string v22 =
      "appArmorProfile hostNamespaces hostPorts privileged procMount seLinuxOptions sysctls windowsHostProcess "
      "allowPrivilegeEscalation capabilities_restricted restrictedVolumes runAsNonRoot seccompProfile_restricted ";
  const std::string v23 =
      "appArmorProfile hostNamespaces hostPorts privileged procMount seLinuxOptions sysctls windowsHostProcess "
      "allowPrivilegeEscalation capabilities_restricted restrictedVolumes runAsNonRoot runAsUser "
      "seccompProfile_restricted ";
  const std::string v34 =
      "appArmorProfile hostNamespaces hostPorts hostProbesAndHostLifecycle privileged procMount seLinuxOptions sysctls "
      "windowsHostProcess allowPrivilegeEscalation capabilities_restricted restrictedVolumes runAsNonRoot runAsUser "
      "seccompProfile_restricted ";
  const std::string v35 =
      "appArmorProfile hostNamespaces hostPorts hostProbesAndHostLifecycle privileged seLinuxOptions sysctls "
      "windowsHostProcess allowPrivilegeEscalation capabilities_restricted procMount_restricted restrictedVolumes "
      "runAsNonRoot runAsUser seccompProfile_restricted ";
  for (int minor = 0; minor <= kNewestMinor; ++minor) {
    const std::string& wanted = minor < 8    ? v0
                                : minor < 19 ? v8
                                : minor < 22 ? v19
                                : minor < 23 ? v22
                                : minor < 34 ? v23
                                : minor < 35 ? v34
                                             : v35;
    EXPECT_EQ(ids(restricted(fmt::format("v1.{}", minor))), wanted) << minor;
  }
  for (const std::string_view later : {"v1.37", "v1.40", "v1.2147483647", "latest"}) {
    EXPECT_EQ(ids(restricted(later)), v35);
    EXPECT_EQ(ids(baseline(later)), b34);
  }
}

TEST(PodSecurityStandards, PrivilegedAllowsEverything) {
  for (const std::string_view version : {"v1.0", "v1.32", "latest"}) {
    EXPECT_TRUE(violations_of(standard(Level::kPrivileged, version), kWorst, kWorstMetadata).empty());
  }
}

TEST(PodSecurityStandards, RestrictedAllowsWhatIsGood) {
  for (int minor = 0; minor <= kNewestMinor; ++minor) {
    EXPECT_EQ(details_text(violations_of(restricted(fmt::format("v1.{}", minor)), kGood)), "");
    EXPECT_EQ(details_text(violations_of(baseline(fmt::format("v1.{}", minor)), kGood)), "");
  }
}

TEST(PodSecurityStandards, ReportEverythingAtOnce) {
  const auto violations = violations_of(restricted(), R"({"containers":[{"name":"a"}]})");
  EXPECT_EQ(
      details_text(violations),
      R"(allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false), )"
      R"(unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]), )"
      R"(runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true), )"
      R"(seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"))");
  EXPECT_EQ(reasons_text(violations),
            "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile");
}

/// A malformed document is evaluated as if it were empty.
TEST(PodSecurityStandards, SurviveOddDocuments) {
  for (const std::string_view spec :
       {"null", "[]", "{}", R"({"containers":null,"securityContext":[],"volumes":{}})",
        R"({"containers":[null,1,[],{"securityContext":null,"ports":[null]}],"volumes":[null]})",
        R"({"containers":[{"name":1,"securityContext":{"capabilities":{"add":[1],"drop":1},"privileged":"true"}}]})"}) {
    EXPECT_NO_FATAL_FAILURE(violations_of(baseline("v1.0"), spec, "[]"));
    EXPECT_NO_FATAL_FAILURE(violations_of(restricted(), spec, R"({"annotations":[]})"));
  }
}

TEST(PodSecurityStandards, AreShortAboutManyContainers) {
  std::string spec = R"({"containers":[)";
  for (int i = 0; i < 1'000; ++i) {
    spec +=
        fmt::format(R"({}{{"name":"a-rather-long-name-of-a-container-that-says-little-{}"}})", i == 0 ? "" : ",", i);
  }
  const auto violations = violations_of(restricted(), spec + "]}");
  ASSERT_EQ(violations.size(), 4U);
  for (const Violation& each : violations) {
    EXPECT_LE(each.detail.size(), kDetailBytesMax + 3);
    EXPECT_TRUE(each.detail.ends_with("..."));
  }
  EXPECT_LT(details_text(violations).size(), 10'000U);
}

}  // namespace
}  // namespace spillway::podsecurity
