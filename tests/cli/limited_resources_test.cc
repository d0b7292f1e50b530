// The configuration of the plug-in ResourceQuota in an AdmissionConfiguration file.
#include "cli/config/admission_config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cli {
namespace {

constexpr std::string_view kQuotaFile =
    "apiVersion: apiserver.config.k8s.io/v1\n"
    "kind: AdmissionConfiguration\n"
    "plugins:\n"
    "- name: ResourceQuota\n"
    "  path: quota.yaml\n";
constexpr std::string_view kQuotaHead = "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\n";

/// The file names another, with this text.
Result<AdmissionFile> read_quota(std::string_view text) {
  return read_admission_file("/etc/a.yaml", [text](const std::string& file) {
    return yaml::parse(file, std::string(file == "/etc/quota.yaml" ? text : kQuotaFile));
  });
}

std::string quota_error(std::string_view lines) {
  const auto found = read_quota(fmt::format("{}{}", kQuotaHead, lines));
  return found ? "" : found.error().text();
}

TEST(LimitedResources, AreRead) {
  const auto found = read_quota(fmt::format("{}{}", kQuotaHead,
                                            "limitedResources:\n"
                                            "- resource: persistentvolumeclaims\n"
                                            "  matchContains: [.storageclass.storage.k8s.io/requests.storage]\n"
                                            "- apiGroup: batch\n"
                                            "  resource: jobs\n"
                                            "  matchContains: [count/]\n"
                                            "- resource: pods\n"
                                            "  matchScopes:\n"
                                            "  - {scopeName: PriorityClass, operator: In, values: [high, higher]}\n"
                                            "  - {scopeName: CrossNamespacePodAffinity, operator: Exists}\n"));
  ASSERT_TRUE(found) << found.error().text();
  const std::vector<quota::LimitedResource> wanted{
      {.group = "",
       .plural = "persistentvolumeclaims",
       .contains = {".storageclass.storage.k8s.io/requests.storage"},
       .scopes = {}},
      {.group = "batch", .plural = "jobs", .contains = {"count/"}, .scopes = {}},
      {.group = "",
       .plural = "pods",
       .contains = {},
       .scopes = {{.scope = "PriorityClass", .op = "In", .values = {"high", "higher"}},
                  {.scope = "CrossNamespacePodAffinity", .op = "Exists", .values = {}}}}};
  EXPECT_EQ(found->limited_resources, wanted);
  EXPECT_TRUE(found->warnings.empty());
}

TEST(LimitedResources, MayBeNone) {
  for (const std::string_view lines : {"", "limitedResources:\n", "limitedResources: []\n"}) {
    const auto found = read_quota(fmt::format("{}{}", kQuotaHead, lines));
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_TRUE(found->limited_resources.empty());
  }
}

TEST(LimitedResources, AreOfAKindAndVersion) {
  for (const std::string_view version : {"v1beta1", "v1alpha1"}) {
    EXPECT_TRUE(
        read_quota(fmt::format("apiVersion: resourcequota.admission.k8s.io/{}\nkind: Configuration\n", version)));
  }
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"apiVersion: apiserver.config.k8s.io/v1\nkind: Configuration\n",
       "/etc/quota.yaml:2: kind: expected ResourceQuotaConfiguration"},
      {"apiVersion: resourcequota.admission.k8s.io/v1beta1\nkind: ResourceQuotaConfiguration\n",
       "/etc/quota.yaml:2: kind: expected Configuration"},
      {"apiVersion: resourcequota.admission.k8s.io/v1\nkind: ResourceQuotaConfiguration\n",
       "/etc/quota.yaml:1: apiVersion: expected apiserver.config.k8s.io/v1"},
      {"[]", "/etc/quota.yaml: expected a mapping"}};
  for (const auto& [text, wanted] : rows) {
    const auto found = read_quota(text);
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.error().text(), wanted);
  }
}

TEST(LimitedResources, NameWhatIsWrong) {
  const std::string first = "/etc/quota.yaml:4: limitedResources[0]";
  const std::string head = "limitedResources:\n- resource: pods\n";
  const std::string in_scope = "/etc/quota.yaml:6: limitedResources[0].matchScopes[0]";
  const auto scope = [&](std::string_view members) {
    return fmt::format("{}  matchScopes:\n  - {{{}}}\n", head, members);
  };
  const std::pair<std::string, std::string> rows[] = {
      {"limitedResource: []\n", "/etc/quota.yaml:3: limitedResource: unknown (did you mean limitedResources?)"},
      {"limitedResources: pods\n", "/etc/quota.yaml:3: limitedResources: expected a list"},
      {"limitedResources: [pods]\n", "/etc/quota.yaml:3: limitedResources[0]: expected a mapping"},
      {"limitedResources:\n- matchContain: [cpu]\n  resource: pods\n",
       first + ".matchContain: unknown (did you mean matchContains?)"},
      {"limitedResources:\n- apiGroup: [batch]\n  resource: jobs\n", first + ".apiGroup: expected a string"},
      {head + "  matchContains: cpu\n", "/etc/quota.yaml:5: limitedResources[0].matchContains: expected a list"},
      {head + "  matchContains: [1]\n", "/etc/quota.yaml:5: limitedResources[0].matchContains[0]: expected a string"},
      {scope("scopeName: Priority, operator: Exists"),
       in_scope + ".scopeName: expected one of Terminating, NotTerminating, BestEffort, NotBestEffort, PriorityClass, "
                  "CrossNamespacePodAffinity"},
      {scope("scopeName: PriorityClass, operator: Is"),
       in_scope + ".operator: expected one of In, NotIn, Exists, DoesNotExist"},
      {scope("scopeName: BestEffort, operator: In, values: [a]"),
       in_scope + ".operator: must be Exists with scope BestEffort"},
      {scope("scopeName: PriorityClass, operator: In, values: []"), in_scope + ".values: must not be empty"},
      {scope("scopeName: PriorityClass, operator: Exists, values: [a]"), in_scope + ".values: must be empty"},
      {scope("scopeName: PriorityClass, operator: Exists, value: []"),
       in_scope + ".value: unknown (did you mean values?)"}};
  for (const auto& [lines, wanted] : rows) EXPECT_EQ(quota_error(lines), wanted) << lines;
  EXPECT_NE(
      quota_error("limitedResources:\n- matchContains: [cpu]\n").find("limitedResources[0].resource: Required value"),
      std::string::npos);
}

}  // namespace
}  // namespace spillway::cli
