// Names of cgroups under both drivers, the configuration that a kubelet reports or refuses to report, and the
// comparisons of a shadow.
#include "agent/companion/kubelet_feed.h"
#include "agent/companion/kubelet_settings.h"
#include "agent/companion/pod_cgroup.h"
#include "agent/companion/shadow_ledger.h"
#include "agent/companion/shadow_report.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::agent {
namespace {

using api::Json;
using api::QosClass;

constexpr std::string_view kUid = "b6d04adc-9f2f-4dd6-8d50-f3c96f1c7429";
constexpr std::string_view kId = "ccffc112407b514369daffd31e94ee8b9633421bf51c6be61db2384c4172ae1d";

TEST(PodCgroup, CgroupfsAsAKubeletAsksItsRuntime) {  // cgroup_parent of recorded RunPodSandbox calls
  EXPECT_EQ(pod_cgroup(CgroupDriver::kCgroupfs, "/", QosClass::kBestEffort, kUid),
            "/kubepods/besteffort/podb6d04adc-9f2f-4dd6-8d50-f3c96f1c7429");
  EXPECT_EQ(pod_cgroup(CgroupDriver::kCgroupfs, "", QosClass::kBurstable, "1e0bd9b6-a9f9-4f5c-899f-e71e3c96148d"),
            "/kubepods/burstable/pod1e0bd9b6-a9f9-4f5c-899f-e71e3c96148d");
  EXPECT_EQ(pod_cgroup(CgroupDriver::kCgroupfs, "/", QosClass::kGuaranteed, "u"), "/kubepods/podu");
  EXPECT_EQ(kubepods_cgroup(CgroupDriver::kCgroupfs, "/edge/n1/"), "/edge/n1/kubepods");
}

TEST(PodCgroup, SystemdNamesEachSliceAfterTheWayToIt) {
  EXPECT_EQ(pod_cgroup(CgroupDriver::kSystemd, "/", QosClass::kBurstable, kUid),
            "/kubepods.slice/kubepods-burstable.slice/"
            "kubepods-burstable-podb6d04adc_9f2f_4dd6_8d50_f3c96f1c7429.slice");
  EXPECT_EQ(pod_cgroup(CgroupDriver::kSystemd, "", QosClass::kGuaranteed, "a-b"),
            "/kubepods.slice/kubepods-poda_b.slice");
  EXPECT_EQ(kubepods_cgroup(CgroupDriver::kSystemd, "/edge-1"), "/edge_1.slice/edge_1-kubepods.slice");
  EXPECT_EQ(kubepods_cgroup(CgroupDriver::kSystemd, "/edge.slice"), "/edge.slice/edge-kubepods.slice");
}

TEST(PodCgroup, ContainersOfEveryRuntime) {
  const ContainerCgroup app{std::string(kId), false};
  for (const std::string& name :
       {std::string(kId), fmt::format("cri-containerd-{}.scope", kId), fmt::format("crio-{}", kId),
        fmt::format("crio-{}.scope", kId), fmt::format("docker-{}.scope", kId)}) {
    EXPECT_EQ(parse_container_cgroup(name), app) << name;
  }
  EXPECT_EQ(parse_container_cgroup(fmt::format("crio-conmon-{}.scope", kId)),
            (ContainerCgroup{std::string(kId), true}));
  for (const char* name : {"", "init.scope", "system.slice", "cri-containerd-.scope", "podabc", "crio-xyz.scope"}) {
    EXPECT_FALSE(parse_container_cgroup(name)) << name;
  }
}

TEST(PodCgroup, AMirrorPodIsFoundUnderItsHash) {
  api::Pod pod;
  pod.metadata.uid = "api-uid";
  EXPECT_EQ(cgroup_uid(pod), "api-uid");
  pod.metadata.annotations["kubernetes.io/config.hash"] = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(cgroup_uid(pod), "api-uid") << "the hash alone makes no mirror";
  pod.metadata.annotations["kubernetes.io/config.mirror"] = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(cgroup_uid(pod), "0123456789abcdef0123456789abcdef");
}

TEST(PodCgroup, ContainersAreNamedByTheStatus) {
  api::Pod pod;
  api::ContainerStatus status;
  status.name = "app";
  pod.status.container_statuses.push_back(status);
  EXPECT_TRUE(named_containers(pod).empty()) << "not started yet";
  pod.status.container_statuses[0].container_id = fmt::format("containerd://{}", kId);
  EXPECT_EQ(named_containers(pod), (std::vector<NamedContainer>{{std::string(kId), "app"}}));
  pod.status.container_statuses[0].container_id = "containerd://";
  EXPECT_TRUE(named_containers(pod).empty());
}

Json configz(Json config) {
  return Json::object({{"kubeletconfig", std::move(config)}});
}

TEST(KubeletSettings, AreWhatConfigzSays) {
  const auto settings = parse_configz(configz(
      Json::object({{"cgroupRoot", "/edge"},
                    {"cgroupDriver", "systemd"},
                    {"evictionHard", Json::object({{"memory.available", "300Mi"}, {"nodefs.available", "10%"}})}})));
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->cgroup_root, "/edge");
  EXPECT_EQ(settings->driver, CgroupDriver::kSystemd);
  EXPECT_EQ(settings->thresholds.hard.at("memory.available"), "300Mi");
  const auto defaults = parse_configz(configz(Json::object()));
  ASSERT_TRUE(defaults);
  EXPECT_EQ(defaults->thresholds.hard.at("memory.available"), "100Mi");
  EXPECT_FALSE(parse_configz(Json::object()));
  EXPECT_FALSE(parse_configz(configz(Json::object({{"cgroupDriver", "other"}}))));
  EXPECT_FALSE(parse_configz(configz(Json::object({{"evictionHard", Json::object({{"memory.available", "x"}})}}))));
}

TEST(KubeletSettings, ACompanionEvictsAsItsKubeletUnlessConfiguredOtherwise) {
  const auto kubelet = parse_configz(configz(
      Json::object({{"evictionHard", Json::object({{"memory.available", "300Mi"}, {"nodefs.available", "10%"}})},
                    {"evictionSoft", Json::object({{"memory.available", "500Mi"}})},
                    {"evictionSoftGracePeriod", Json::object({{"memory.available", "1m"}})},
                    {"evictionMaxPodGracePeriod", 20}})));
  ASSERT_TRUE(kubelet);
  const auto as_kubelet = companion_eviction(Json::object(), &*kubelet);
  ASSERT_TRUE(as_kubelet);
  EXPECT_EQ(as_kubelet->thresholds.hard, (eviction::SignalMap{{"memory.available", "300Mi"}})) << "no disks";
  EXPECT_EQ(as_kubelet->thresholds.soft.at("memory.available"), "500Mi");
  EXPECT_EQ(as_kubelet->max_pod_grace_period_seconds, 20);
  EXPECT_EQ(as_kubelet->local_storage_limits, eviction::LocalStorageLimits::kIgnored);
  const Json own = Json::object({{"evictionHard", Json::object({{"memory.available", "600Mi"}})}});
  const auto named = companion_eviction(own, &*kubelet);
  ASSERT_TRUE(named);
  EXPECT_EQ(named->thresholds.hard.at("memory.available"), "600Mi");
  EXPECT_TRUE(named->thresholds.soft.empty()) << "naming one drops all of the kubelet's";
  EXPECT_FALSE(companion_eviction(Json::object({{"maxPods", 7}}), nullptr));
  EXPECT_FALSE(
      companion_eviction(Json::object({{"evictionHard", Json::object({{"nodefs.available", "5%"}})}}), nullptr));
  EXPECT_FALSE(
      companion_eviction(Json::object({{"evictionHard", Json::object({{"memory.available", "-1"}})}}), nullptr));

  const eviction::Capacities capacities{{eviction::Signal::kMemoryAvailable, std::int64_t{8} << 30},
                                        {eviction::Signal::kAllocatableMemoryAvailable, std::int64_t{8} << 30}};
  const Outcome doubled = check_clearance(as_kubelet->thresholds, *kubelet, capacities);
  ASSERT_FALSE(doubled);
  EXPECT_EQ(doubled.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(doubled.error().text().contains("--eviction-hard='memory.available<600Mi'")) << doubled.error().text();
  EXPECT_TRUE(check_clearance(named->thresholds, *kubelet, capacities)) << "twice as much comes first";
}

TEST(KubeletSettings, DisksAreWatchedWhereThereIsARuntimeToAsk) {
  const auto kubelet = parse_configz(configz(
      Json::object({{"evictionHard", Json::object({{"memory.available", "300Mi"}, {"nodefs.available", "10%"}})},
                    {"podLogsDir", "/logs"}})));
  ASSERT_TRUE(kubelet);
  EXPECT_EQ(kubelet->log_directory, "/logs");
  const Json asks = Json::object({{"containerRuntimeEndpoint", "unix:///run/containerd/containerd.sock"}});
  EXPECT_EQ(runtime_socket(asks), "/run/containerd/containerd.sock");
  EXPECT_EQ(disks_of(asks), Disks::kWatched);
  EXPECT_EQ(runtime_socket(Json::object()), "");
  EXPECT_EQ(disks_of(Json::object()), Disks::kLeftToKubelet);
  const auto as_kubelet = companion_eviction(asks, &*kubelet);
  ASSERT_TRUE(as_kubelet);
  EXPECT_EQ(as_kubelet->thresholds.hard.at("nodefs.available"), "10%");
  const Json own = Json::object({{"evictionHard", Json::object({{"imagefs.inodesFree", "8%"}})},
                                 {"containerRuntimeEndpoint", "/run/crio/crio.sock"}});
  const auto named = companion_eviction(own, &*kubelet);
  ASSERT_TRUE(named);
  EXPECT_EQ(named->thresholds.hard, (eviction::SignalMap{{"imagefs.inodesFree", "8%"}}));
  EXPECT_FALSE(companion_eviction(Json::object({{"containerRuntimeEndpoint", "tcp://127.0.0.1:1"}}), nullptr));
  EXPECT_FALSE(companion_eviction(Json::object({{"containerRuntimeEndpoint", "/" + std::string(107, 'x')}}), nullptr));
}

TEST(KubeletFeed, ARefusalSaysWhatWouldHelp) {
  const auto text = [](ErrorCode code, const char* page) {
    return explain_refusal(make_error(code, "the answer"), page);
  };
  EXPECT_EQ(text(ErrorCode::kForbidden, "/pods"),
            "the answer: allow get of nodes/pods, or of nodes/proxy where the kubelet is older than 1.33");
  EXPECT_TRUE(text(ErrorCode::kUnauthorized, "/configz").starts_with("the answer: the kubelet does not know who asks"));
  EXPECT_EQ(text(ErrorCode::kServiceUnavailable, "/configz"), "the answer");
}

class Ledger : public ::testing::Test {
 protected:
  ShadowEviction of(const std::string& uid, int second) const {
    return {uid, {"shop", uid}, "memory.available", {Instant(seconds(second)), WallTime(seconds(second))}};
  }

  static std::string kinds(const std::vector<ShadowOutcome>& outcomes) {
    std::string text;
    for (const ShadowOutcome& outcome : outcomes) text += std::string(to_string(outcome.kind)) + " ";
    return text;
  }

  ShadowLedger ledger_{seconds(60)};
};

TEST_F(Ledger, TheSamePodWithinTheWindowIsAgreement) {
  EXPECT_EQ(kinds(ledger_.predict(of("a", 10))), "");
  EXPECT_TRUE(ledger_.is_open());
  EXPECT_EQ(ledger_.next_due(), Instant(seconds(70)));
  const auto outcomes = ledger_.observe(of("a", 25));
  EXPECT_EQ(kinds(outcomes), "agreed ");
  EXPECT_EQ(outcomes.at(0).kubelet_after(), seconds(15));
  EXPECT_FALSE(ledger_.next_due());
}

TEST_F(Ledger, TheKubeletMayEvictFirst) {
  EXPECT_EQ(kinds(ledger_.observe(of("a", 10))), "");
  const auto outcomes = ledger_.predict(of("a", 12));
  EXPECT_EQ(kinds(outcomes), "agreed ");
  EXPECT_EQ(outcomes.at(0).kubelet_after(), seconds(-2));
}

TEST_F(Ledger, AnotherPodIsADifferentVictim) {
  ledger_.predict(of("a", 10));
  EXPECT_EQ(kinds(ledger_.observe(of("b", 20))), "different-victim ");
  EXPECT_FALSE(ledger_.is_open());
}

TEST_F(Ledger, AnEvictionWithoutItsLikeIsReportedAfterTheWindow) {
  ledger_.predict(of("a", 10));
  EXPECT_EQ(kinds(ledger_.expire(Instant(seconds(69)))), "");
  EXPECT_EQ(kinds(ledger_.expire(Instant(seconds(70)))), "companion-only ");
  ledger_.observe(of("b", 100));
  EXPECT_EQ(kinds(ledger_.expire(Instant(seconds(160)))), "kubelet-only ");
  EXPECT_FALSE(ledger_.next_due());
}

TEST(ShadowReport, CountsOnlyEvictionsForMemoryAndProcesses) {
  api::Pod pod;
  pod.status.phase = "Failed";
  pod.status.reason = "Evicted";
  pod.status.message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. ";
  EXPECT_TRUE(is_eviction_by_kubelet(pod, Disks::kLeftToKubelet));
  pod.status.message = "The node was low on resource: ephemeral-storage. ";
  EXPECT_FALSE(is_eviction_by_kubelet(pod, Disks::kLeftToKubelet));
  EXPECT_TRUE(is_eviction_by_kubelet(pod, Disks::kWatched));
  pod.status.message = "The node had condition: [MemoryPressure]. ";
  EXPECT_FALSE(is_eviction_by_kubelet(pod, Disks::kLeftToKubelet)) << "refused, not evicted";
  pod.status.reason = "OOMKilled";
  EXPECT_FALSE(is_eviction_by_kubelet(pod, Disks::kLeftToKubelet));
}

}  // namespace
}  // namespace spillway::agent
