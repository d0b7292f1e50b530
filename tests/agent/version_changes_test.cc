// Goal: between two versions, every change that concerns a kubelet's configuration is one finding, and others are none.
#include "agent/config/version_changes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace spillway::agent {
namespace {

using api::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

ConfigDocument kubelet_config(std::string_view members) {
  Json value = api::parse_json(members).value();
  value["apiVersion"] = "kubelet.config.k8s.io/v1beta1";
  value["kind"] = "KubeletConfiguration";
  return {.file = "k.yaml", .value = std::move(value), .origins = {}};
}

std::vector<std::string> texts_of(const std::vector<ChangeFinding>& findings) {
  std::vector<std::string> texts;
  for (const ChangeFinding& each : findings)
    texts.push_back(fmt::format("{} {} {}", each.severity == LintSeverity::kInvalid ? "refused" : "changed", each.path,
                                each.since));
  return texts;
}

std::vector<std::string> changes(std::string_view members, MinorRange range = {.from = 32, .to = 36}) {
  return texts_of(changes_of_config(kubelet_config(members), range));
}

/// Only those that another file does not have: of what the file names.
std::vector<std::string> own_changes(std::string_view members, MinorRange range = {.from = 32, .to = 36}) {
  std::vector<std::string> found = changes(members, range);
  const std::vector<std::string> others = changes("{}", range);
  std::erase_if(found, [&](const std::string& each) { return std::ranges::find(others, each) != others.end(); });
  return found;
}

TEST(VersionChanges, EachRowIsListedOnce) {
  std::set<std::tuple<ChangeSubject, std::string_view, int, ChangeConcerns>> seen;
  for (const ConfigChange& row : config_changes()) {
    EXPECT_TRUE(seen.emplace(row.subject, row.name, row.since, row.concerns).second) << row.name;
    EXPECT_GE(row.since, 33) << row.name;
    EXPECT_LE(row.since, row.until) << row.name;
    EXPECT_LE(row.until, 36) << row.name;
    for (const std::string_view text : {row.name, row.what, row.remedy, row.source})
      EXPECT_FALSE(text.empty()) << row.name;
  }
}

TEST(VersionChanges, OfAnEmptyFileAreTheDefaults) {
  const std::vector<std::string> found = changes("{}");
  EXPECT_THAT(found, Contains("changed failCgroupV1 1.35"));
  EXPECT_THAT(found, Contains("changed imagePullCredentialsVerificationPolicy 1.35"));
  EXPECT_THAT(found, Contains("changed featureGates[KubeletPSI] 1.34"));
  EXPECT_TRUE(std::ranges::all_of(found, [](const std::string& each) { return each.starts_with("changed"); }));
}

TEST(VersionChanges, ADefaultThatIsWrittenStays) {
  EXPECT_THAT(changes(R"({"failCgroupV1": false})"), Not(Contains("changed failCgroupV1 1.35")));
  EXPECT_THAT(changes(R"({"failCgroupV1": true})"), Not(Contains("changed failCgroupV1 1.35")));
  EXPECT_THAT(changes(R"({"failCgroupV1": null})"), Contains("changed failCgroupV1 1.35")) << "null names nothing";
  EXPECT_THAT(changes(R"({"featureGates": {"ImageVolume": false}})"),
              Not(Contains("changed featureGates[ImageVolume] 1.35")));
}

TEST(VersionChanges, TheAnswerOfAKubeletNamesDefaultsToo) {
  const Json answer = api::parse_json(R"({"kubeletconfig": {"failCgroupV1": false}})").value();
  EXPECT_THAT(texts_of(changes_of_config({.file = "-", .value = answer, .origins = {}}, {})),
              Contains("changed failCgroupV1 1.35"));
  const Json chosen = api::parse_json(R"({"kubeletconfig": {"failCgroupV1": true}})").value();
  EXPECT_THAT(texts_of(changes_of_config({.file = "-", .value = chosen, .origins = {}}, {})),
              Not(Contains("changed failCgroupV1 1.35")));
}

TEST(VersionChanges, CountFromTheVersionAfterTheOlderToTheNewer) {
  const char* const psi = R"({"featureGates": {"KubeletPSI": false}})";
  EXPECT_THAT(own_changes(psi, {.from = 32, .to = 35}), IsEmpty());
  EXPECT_THAT(own_changes(psi, {.from = 35, .to = 36}), ElementsAre("refused featureGates[KubeletPSI] 1.36"));
  const char* const idle = R"({"streamingConnectionIdleTimeout": "4h"})";
  EXPECT_THAT(own_changes(idle, {.from = 32, .to = 33}), IsEmpty());
  EXPECT_THAT(own_changes(idle, {.from = 33, .to = 34}), ElementsAre("changed streamingConnectionIdleTimeout 1.34"));
  EXPECT_THAT(own_changes(idle, {.from = 34, .to = 36}), IsEmpty());
}

TEST(VersionChanges, AGateThatIsGoneIsRefused) {
  EXPECT_THAT(
      own_changes(R"({"featureGates": {"AppArmor": true, "MemoryManager": false, "Unheard": true}})"),
      ElementsAre("refused featureGates[AppArmor] 1.33 to 1.36", "refused featureGates[MemoryManager] 1.33 to 1.36"));
  EXPECT_THAT(own_changes(R"({"featureGates": {"AppArmor": true}})", {.from = 34, .to = 35}),
              ElementsAre("refused featureGates[AppArmor] 1.33 to 1.36"))
      << "it may be gone with either of them";
}

TEST(VersionChanges, ALockedGateIsRefusedOnlyIfItIsTurned) {
  EXPECT_THAT(own_changes(R"({"featureGates": {"NodeSwap": false}})"),
              ElementsAre("refused featureGates[NodeSwap] 1.34"));
  EXPECT_THAT(own_changes(R"({"featureGates": {"NodeSwap": true}})"), IsEmpty());
  const char* const name = "AllowOverwriteTerminationGracePeriodSeconds";
  EXPECT_THAT(own_changes(fmt::format(R"({{"featureGates": {{"{}": true}}}})", name)),
              ElementsAre(fmt::format("refused featureGates[{}] 1.35", name)));
  EXPECT_THAT(own_changes(fmt::format(R"({{"featureGates": {{"{}": false}}}})", name)), IsEmpty());
}

TEST(VersionChanges, AGateThatAnotherNeedsIsRefused) {
  EXPECT_THAT(own_changes(R"({"featureGates": {"PodLevelResources": false}})"),
              ElementsAre("refused featureGates[PodLevelResources] 1.36"));
  EXPECT_THAT(own_changes(R"({"featureGates": {"PodLevelResources": false}})", {.from = 32, .to = 35}), IsEmpty());
  EXPECT_THAT(own_changes(R"({"featureGates": {"PodLevelResources": false,
                              "InPlacePodLevelResourcesVerticalScaling": false}})"),
              IsEmpty());
}

TEST(VersionChanges, ValuesThatAreRefused) {
  EXPECT_THAT(own_changes(R"({"containerLogMaxFiles": 1})"), ElementsAre("refused containerLogMaxFiles 1.33"));
  EXPECT_THAT(own_changes(R"({"containerLogMaxFiles": 2})"), IsEmpty());
  EXPECT_THAT(own_changes(R"({"imageMinimumGCAge": "-1s"})"), ElementsAre("refused imageMinimumGCAge 1.36"));
  EXPECT_THAT(own_changes(R"({"imageMinimumGCAge": "0s"})"), IsEmpty());
  EXPECT_THAT(own_changes(R"({"memoryReservationPolicy": "TieredReservation"})"),
              ElementsAre("refused memoryReservationPolicy 1.36"));
  EXPECT_THAT(own_changes(R"({"memoryReservationPolicy": "TieredReservation", "featureGates": {"MemoryQoS": true}})"),
              IsEmpty());
  for (const char* const wrong : {"65535", "65537", "4294967296"}) {
    EXPECT_THAT(own_changes(fmt::format(R"({{"userNamespaces": {{"idsPerPod": {}}}}})", wrong)),
                ElementsAre("refused userNamespaces[idsPerPod] 1.33"))
        << wrong;
  }
  EXPECT_THAT(own_changes(R"({"userNamespaces": {"idsPerPod": 131072}})"),
              ElementsAre("changed userNamespaces[idsPerPod] 1.33"));
  const char* const list = R"({"preloadedImagesVerificationAllowlist": ["registry.example/a"],
                               "imagePullCredentialsVerificationPolicy": "NeverVerifyAllowlistedImages"})";
  EXPECT_THAT(own_changes(list), Not(Contains("refused preloadedImagesVerificationAllowlist 1.35")));
  EXPECT_THAT(own_changes(R"({"preloadedImagesVerificationAllowlist": ["registry.example/a"]})"),
              ElementsAre("refused preloadedImagesVerificationAllowlist 1.35"));
}

TEST(VersionChanges, MeaningsThatOtherMembersUndo) {
  EXPECT_THAT(own_changes(R"({"cpuManagerPolicy": "static"})"), ElementsAre("changed cpuManagerPolicy 1.33"));
  EXPECT_THAT(own_changes(R"({"cpuManagerPolicy": "none"})"), IsEmpty());
  EXPECT_THAT(
      own_changes(R"({"cpuManagerPolicy": "static", "featureGates": {"DisableCPUQuotaWithExclusiveCPUs": false}})"),
      IsEmpty());
  EXPECT_THAT(own_changes(R"({"staticPodPath": "/etc/kubernetes/manifests"})"),
              ElementsAre("changed staticPodPath 1.34"));
  EXPECT_THAT(own_changes(R"({"staticPodPath": ""})"), IsEmpty());
}

TEST(VersionChanges, TheWorstIsFirstWithItsLine) {
  ConfigDocument given = kubelet_config(R"({"crashLoopBackOff": {"maxContainerRestartPeriod": "1m"},
                                            "featureGates": {"NodeSwap": false}})");
  given.origins = [](std::string_view path) -> std::optional<ScalarOrigin> {
    if (path == "featureGates[NodeSwap]") return ScalarOrigin{.line = 9, .text = {}};
    if (path == "crashLoopBackOff[maxContainerRestartPeriod]") return ScalarOrigin{.line = 4, .text = {}};
    return std::nullopt;
  };
  const std::vector<ChangeFinding> found = changes_of_config(given, {});
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().path, "featureGates[NodeSwap]");
  EXPECT_EQ(found.front().line, 9);
  EXPECT_EQ(found.front().file, "k.yaml");
  const auto limit = std::ranges::find(found, "crashLoopBackOff[maxContainerRestartPeriod]", &ChangeFinding::path);
  ASSERT_NE(limit, found.end());
  EXPECT_EQ(limit->line, 4);
}

TEST(VersionChanges, FlagsOfAFile) {
  const KubeletFlags flags = parse_kubelet_flags("kubeadm-flags.env",
                                                 "# --cloud-config is no flag here\n"
                                                 "KUBELET_KUBEADM_ARGS=\"--node-ip=10.0.0.1 \\\n"
                                                 "  --pod-infra-container-image=pause:3.9 --register-schedulable\"\n"
                                                 "OTHER='--feature-gates AppArmor=true,NodeSwap=false'\n");
  std::vector<std::string> names;
  for (const KubeletFlags::Flag& each : flags.flags)
    names.push_back(fmt::format("{} {} {}", each.name, each.value, each.line));
  EXPECT_THAT(names, ElementsAre("--node-ip 10.0.0.1 2", "--pod-infra-container-image pause:3.9 3",
                                 "--register-schedulable  3", "--feature-gates AppArmor=true,NodeSwap=false 4"));
  EXPECT_THAT(texts_of(changes_of_flags(flags, {})),
              ElementsAre("refused --feature-gates AppArmor 1.33 to 1.36", "refused --register-schedulable 1.34",
                          "refused --feature-gates NodeSwap 1.34", "refused --pod-infra-container-image 1.35"));
  EXPECT_THAT(texts_of(changes_of_flags(flags, {.from = 35, .to = 36})),
              ElementsAre("refused --feature-gates AppArmor 1.33 to 1.36"));
}

}  // namespace
}  // namespace spillway::agent
