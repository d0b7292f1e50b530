// Goal: a pod starts when its volumes exist and not before, shows what is missing, and sees the data of its objects as
// long as it runs. Method: an agent between a scripted API server and a scripted machine.
#include "agent/scripted_cluster.h"
#include "agent/volumes/pod_tokens.h"
#include "api/text/base64.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;

Json config_map(const std::string& name, const std::string& key, const std::string& value) {
  return Json::object({{"apiVersion", "v1"},
                       {"kind", "ConfigMap"},
                       {"metadata", Json::object({{"name", name}, {"namespace", "shop"}})},
                       {"data", Json::object({{key, value}})}});
}

/// A pod whose container mounts one volume "v" at /v.
Json pod_with(const Json& source) {
  Json pod = pod_document({.name = "p"});
  Json volume = source;
  volume["name"] = "v";
  pod["spec"]["volumes"] = Json::array({volume});
  Json& container = pod["spec"]["containers"].if_array()->front();
  container["volumeMounts"] = Json::array({Json::object({{"name", "v"}, {"mountPath", "/v"}})});
  return pod;
}

Json config_volume(const std::string& name, bool optional = false) {
  return Json::object({{"configMap", Json::object({{"name", name}, {"defaultMode", 420}, {"optional", optional}})}});
}

class PodVolumes : public testing::Test {
 protected:
  PodVolumes() { cluster_.machine.confines_pods = true; }

  void start(const Json& pod) {
    cluster_.put(pod);
    cluster_.start();
    cluster_.run(seconds(2));
  }

  template <typename Command>
  std::vector<Command> commands() const {
    std::vector<Command> found;
    for (const HostCommand& each : cluster_.host.commands())
      if (const auto* command = std::get_if<Command>(&each)) found.push_back(*command);
    return found;
  }

  /// The files of the volume in the last request.
  std::map<std::string, VolumeFile> files() const {
    const auto asked = commands<SetUpVolumes>();
    if (asked.empty() || asked.back().volumes.size() != 1) return {};
    const auto* payload = std::get_if<VolumeFiles>(&asked.back().volumes.front().content);
    return payload == nullptr ? std::map<std::string, VolumeFile>() : payload->files;
  }

  bool is_started() const { return !commands<StartContainer>().empty(); }

  std::string last_failure() const {
    const auto events = cluster_.events("FailedMount");
    return events.empty() ? std::string() : std::string(events.back().string_at({"message"}));
  }

  ScriptedCluster cluster_;
};

TEST_F(PodVolumes, AreMadeBeforeTheFirstContainerStarts) {
  start(pod_with(Json::object({{"emptyDir", Json::object()}})));
  const auto& all = cluster_.host.commands();
  const auto position = [&](auto is) { return std::ranges::find_if(all, is) - all.begin(); };
  const auto created = position([](const auto& each) { return std::holds_alternative<CreatePod>(each); });
  const auto made = position([](const auto& each) { return std::holds_alternative<SetUpVolumes>(each); });
  const auto started = position([](const auto& each) { return std::holds_alternative<StartContainer>(each); });
  EXPECT_LT(created, made);
  EXPECT_LT(made, started);
  ASSERT_TRUE(is_started());
  const StartContainer container = commands<StartContainer>().front();
  ASSERT_EQ(container.volumes.size(), 1U);
  EXPECT_EQ(container.volumes.front(), (VolumeBinding{.volume = "v", .sub_path = "", .container_path = "/v"}));
  ASSERT_EQ(container.files.size(), 1U);
  EXPECT_EQ(container.files.front().container_path, "/etc/hosts");
}

TEST(PodResolver, WithoutTheMachinesFileNoContainerIsMade) {
  AgentOptions options = node_options();
  options.dns.resolv_conf = make_error(ErrorCode::kForbidden, "open /run/secret: permission denied");
  ScriptedCluster cluster(options);
  cluster.machine.confines_pods = true;
  Json pod = pod_document({.name = "web"});
  pod["spec"]["dnsPolicy"] = "None";
  pod["spec"]["dnsConfig"] = Json::object({{"nameservers", Json::array({"192.0.2.1"})}});
  cluster.put(pod);
  cluster.start();
  cluster.run(seconds(5));
  EXPECT_EQ(cluster.host.count<StartContainer>(), 0u);
  EXPECT_EQ(cluster.container_waiting_reason(cluster.pod("web")), "CreateContainerConfigError");
  const auto events = cluster.events("Failed");
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.front().string_at({"message"}), "Error: open /run/secret: permission denied");
}

TEST_F(PodVolumes, OfAMachineThatConfinesNoPodAreLeftOut) {
  cluster_.machine.confines_pods = false;
  start(pod_with(Json::object({{"emptyDir", Json::object()}})));
  EXPECT_TRUE(is_started());
  EXPECT_TRUE(commands<SetUpVolumes>().empty());
}

TEST_F(PodVolumes, AMissingConfigMapIsWaitedForAndRecorded) {
  start(pod_with(config_volume("settings")));
  EXPECT_FALSE(is_started());
  EXPECT_EQ(last_failure(), "MountVolume.SetUp failed for volume \"v\" : configmap \"settings\" not found");
  EXPECT_EQ(cluster_.container_waiting_reason(cluster_.pod("p")), "ContainerCreating");
  cluster_.put(config_map("settings", "a", "1"));
  cluster_.run(seconds(10));
  EXPECT_TRUE(is_started());
  EXPECT_EQ(files().at("a").content, "1");
}

TEST_F(PodVolumes, AMissingOptionalOneIsEmpty) {
  start(pod_with(config_volume("settings", true)));
  EXPECT_TRUE(is_started());
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(last_failure(), "");
}

TEST_F(PodVolumes, WhatTheMachineCannotMakeIsTriedAgain) {
  cluster_.host.fail_volumes({{"v", "hostPath type check failed: /x is not a directory"}});
  start(pod_with(Json::object({{"hostPath", Json::object({{"path", "/x"}, {"type", "Directory"}})}})));
  EXPECT_FALSE(is_started());
  EXPECT_EQ(last_failure(),
            "MountVolume.SetUp failed for volume \"v\" : hostPath type check failed: /x is not a directory");
  const auto tries = commands<SetUpVolumes>().size();
  cluster_.run(seconds(60));
  EXPECT_GT(commands<SetUpVolumes>().size(), tries);
  EXPECT_LT(commands<SetUpVolumes>().size(), 12U) << "the wait doubles";
  cluster_.host.fail_volumes({});
  cluster_.run(minutes(2) + seconds(5));
  EXPECT_TRUE(is_started());
}

/// A pod of a claim, the claim, and the volume that both are bound to.
class ClaimedVolumes : public PodVolumes {
 protected:
  ClaimedVolumes() {
    claim_ = Json::object({{"apiVersion", "v1"},
                           {"kind", "PersistentVolumeClaim"},
                           {"metadata", Json::object({{"name", "data"}, {"namespace", "shop"}, {"uid", "claim-1"}})},
                           {"spec", Json::object({{"volumeName", "disk"}})},
                           {"status", Json::object({{"phase", "Bound"}})}});
    volume_ = Json::object(
        {{"apiVersion", "v1"},
         {"kind", "PersistentVolume"},
         {"metadata", Json::object({{"name", "disk"}})},
         {"spec",
          Json::object({{"local", Json::object({{"path", "/mnt/disk"}})},
                        {"claimRef", Json::object({{"namespace", "shop"}, {"name", "data"}, {"uid", "claim-1"}})}})}});
    pod_ = pod_with(Json::object({{"persistentVolumeClaim", Json::object({{"claimName", "data"}})}}));
  }

  void run() {
    cluster_.put(claim_);
    cluster_.put(volume_);
    start(pod_);
  }

  static std::string unresolved(const std::string& why) {
    return "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process "
           "volumes=[v]: error processing PVC shop/data: " +
           why;
  }

  Json claim_, volume_, pod_;
};

TEST_F(ClaimedVolumes, AreMountedAsWhatTheyAre) {
  pod_["spec"]["securityContext"] = Json::object({{"fsGroup", 2000}});
  run();
  EXPECT_TRUE(is_started());
  ASSERT_EQ(commands<SetUpVolumes>().size(), 1U);
  const VolumeSetup setup = commands<SetUpVolumes>().front().volumes.front();
  EXPECT_EQ(
      setup,
      (VolumeSetup{
          .name = "v", .plugin = "local-volume", .content = LocalDirectory{.path = "/mnt/disk"}, .fs_group = 2000}));
  EXPECT_FALSE(commands<StartContainer>().front().volumes.front().read_only);
}

TEST_F(ClaimedVolumes, OfTypeHostPathKeepTheirTypeAndTheirGroup) {
  volume_["spec"].erase({"local"});
  volume_["spec"]["hostPath"] = Json::object({{"path", "/srv"}, {"type", "Directory"}});
  pod_["spec"]["securityContext"] = Json::object({{"fsGroup", 2000}});
  pod_["spec"]["volumes"].if_array()->front()["persistentVolumeClaim"]["readOnly"] = true;
  run();
  ASSERT_TRUE(is_started());
  const VolumeSetup setup = commands<SetUpVolumes>().front().volumes.front();
  EXPECT_EQ(std::get<HostPath>(setup.content), (HostPath{.path = "/srv", .type = "Directory"}));
  EXPECT_FALSE(setup.fs_group);
  EXPECT_TRUE(commands<StartContainer>().front().volumes.front().read_only);
}

TEST_F(ClaimedVolumes, AreWaitedFor) {
  start(pod_);
  EXPECT_FALSE(is_started());
  EXPECT_TRUE(last_failure().starts_with(unresolved("failed to fetch PVC from API server: "))) << last_failure();
  cluster_.put(claim_);
  cluster_.put(volume_);
  cluster_.run(seconds(10));
  EXPECT_TRUE(is_started());
}

TEST_F(ClaimedVolumes, MustNameEachOther) {
  struct Row {
    std::string why;
    std::function<void(Json& claim, Json& volume)> change;
  };

  const Row rows[] = {
      {"PVC is not bound", [](Json& claim, Json&) { claim["status"]["phase"] = "Pending"; }},
      {"PVC is being deleted",
       [](Json& claim, Json&) { claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"; }},
      {"PVC has empty pvc.Spec.VolumeName", [](Json& claim, Json&) { claim["spec"].erase({"volumeName"}); }},
      {"found PV object disk but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim",
       [](Json&, Json& volume) { volume["spec"].erase({"claimRef"}); }},
      {"found PV object disk but its pv.Spec.ClaimRef.UID claim-0 does not point to claim.UID claim-1",
       [](Json&, Json& volume) { volume["spec"]["claimRef"]["uid"] = "claim-0"; }},
      {"found PV object disk but its pv.Spec.ClaimRef.UID claim-1 does not point to claim.UID claim-1",
       [](Json&, Json& volume) { volume["spec"]["claimRef"]["namespace"] = "other"; }},
      {"found PV object disk but its pv.Spec.ClaimRef.UID  does not point to claim.UID claim-1",
       [](Json&, Json& volume) { volume["spec"]["claimRef"].erase({"uid"}); }},
      {"volume v has volumeMode Block, but is specified in volumeMounts",
       [](Json&, Json& volume) { volume["spec"]["volumeMode"] = "Block"; }},
      {"no volume plugin matched",
       [](Json&, Json& volume) {
         volume["spec"].erase({"local"});
         volume["spec"]["nfs"] = Json::object({{"server", "s"}});
       }},
  };
  for (const Row& row : rows) {
    ScriptedCluster cluster;
    cluster.machine.confines_pods = true;
    Json claim = claim_;
    Json volume = volume_;
    row.change(claim, volume);
    cluster.put(claim);
    cluster.put(volume);
    cluster.put(pod_);
    cluster.start();
    cluster.run(seconds(2));
    const auto events = cluster.events("FailedMount");
    ASSERT_FALSE(events.empty()) << row.why;
    EXPECT_EQ(events.back().string_at({"message"}), unresolved(row.why));
    for (const HostCommand& each : cluster.host.commands())
      EXPECT_FALSE(std::holds_alternative<SetUpVolumes>(each)) << row.why;
  }
}

TEST_F(ClaimedVolumes, OfAnotherNodeAreRefused) {
  volume_["spec"]["nodeAffinity"] = api::parse_json(R"({"required":{"nodeSelectorTerms":[{"matchFields":[
      {"key":"metadata.name","operator":"In","values":["elsewhere"]}]}]}})")
                                        .value();
  run();
  EXPECT_FALSE(is_started());
  EXPECT_EQ(last_failure(),
            "MountVolume.NodeAffinity check failed for volume \"disk\" : no matching NodeSelectorTerms");
}

TEST_F(ClaimedVolumes, ThatAreNotThereAreNamedByTheirOwnName) {
  cluster_.host.fail_volumes({{"v", "path \"/mnt/disk\" does not exist"}});
  run();
  EXPECT_FALSE(is_started());
  EXPECT_EQ(last_failure(),
            "MountVolume.NewMounter initialization failed for volume \"disk\" : path \"/mnt/disk\" does not exist");
  cluster_.host.fail_volumes({});
  cluster_.run(seconds(10));
  EXPECT_TRUE(is_started());
}

TEST_F(PodVolumes, OfAKindThatIsNotThereAreRecorded) {
  start(pod_with(Json::object({{"nfs", Json::object({{"server", "s"}, {"path", "/"}})}})));
  EXPECT_FALSE(is_started());
  EXPECT_EQ(last_failure(),
            "MountVolume.SetUp failed for volume \"v\" : the process runtime has no volumes of type nfs");
}

TEST_F(PodVolumes, FollowTheirConfigMap) {
  cluster_.put(config_map("settings", "a", "1"));
  start(pod_with(config_volume("settings")));
  ASSERT_TRUE(is_started());
  const auto asked = commands<SetUpVolumes>().size();
  cluster_.run(seconds(95));
  EXPECT_EQ(commands<SetUpVolumes>().size(), asked) << "nothing has changed";
  cluster_.put(config_map("settings", "a", "2"));
  cluster_.run(seconds(95));
  EXPECT_EQ(files().at("a").content, "2");
  cluster_.remove("/api/v1/namespaces/shop/configmaps/settings");
  cluster_.run(seconds(95));
  EXPECT_EQ(files().at("a").content, "2") << "what was there stays";
  EXPECT_EQ(last_failure(), "MountVolume.SetUp failed for volume \"v\" : configmap \"settings\" not found");
}

TEST_F(PodVolumes, AreNotReadWhenThePodEnds) {
  cluster_.put(config_map("settings", "a", "1"));
  start(pod_with(config_volume("settings")));
  cluster_.delete_pod("p", 0);
  cluster_.run(seconds(5));
  const auto reads = std::ranges::count(cluster_.api.log(), "GET /api/v1/namespaces/shop/configmaps/settings");
  cluster_.run(minutes(5));
  EXPECT_EQ(std::ranges::count(cluster_.api.log(), "GET /api/v1/namespaces/shop/configmaps/settings"), reads);
}

class PodToken : public PodVolumes {
 protected:
  PodToken() {
    cluster_.api.set_fault([this](const api::Request& request) -> std::optional<Result<api::Response>> {
      if (!request.target.ends_with("/serviceaccounts/robot/token")) return std::nullopt;
      ++asked_;
      if (broken_) return Result<api::Response>(make_error(ErrorCode::kServiceUnavailable, "no answer"));
      const Json body = Json::object({{"kind", "TokenRequest"},
                                      {"spec", Json::object({{"expirationSeconds", 1000}})},
                                      {"status", Json::object({{"token", fmt::format("token-{}", asked_)}})}});
      return Result<api::Response>(api::Response{.status = 201, .body = api::to_text(body)});
    });
    pod_ = pod_with(Json::object({{"projected", Json::object({{"defaultMode", 420}, {"sources", sources_}})}}));
    pod_["spec"]["serviceAccountName"] = "robot";
  }

  Json sources_ = Json::array(
      {Json::object({{"serviceAccountToken", Json::object({{"path", "token"}, {"expirationSeconds", 1000}})}})});
  Json pod_;
  int asked_ = 0;
  bool broken_ = false;
};

TEST_F(PodToken, IsRenewedAtFourFifthsOfItsLife) {
  start(pod_);
  EXPECT_EQ(files().at("token").content, "token-1");
  cluster_.run(seconds(780));
  EXPECT_EQ(asked_, 1);
  cluster_.run(seconds(25));
  EXPECT_EQ(asked_, 2);
  EXPECT_EQ(files().at("token").content, "token-2");
}

TEST_F(PodToken, StaysWhenItsRenewalFailsAndIsTriedAgain) {
  start(pod_);
  broken_ = true;
  cluster_.run(seconds(850));
  EXPECT_GT(asked_, 1);
  EXPECT_EQ(files().at("token").content, "token-1");
  broken_ = false;
  cluster_.run(seconds(30));
  EXPECT_NE(files().at("token").content, "token-1");
}

TEST_F(PodToken, ThatExpiresBeforeItIsRenewedIsReportedAndStays) {
  start(pod_);
  broken_ = true;
  cluster_.run(seconds(1200));
  EXPECT_EQ(files().at("token").content, "token-1");
  EXPECT_EQ(last_failure(),
            "MountVolume.SetUp failed for volume \"v\" : failed to fetch token: "
            "token of shop/robot expired and refresh failed: no answer");
  broken_ = false;
  cluster_.run(minutes(3));
  EXPECT_NE(files().at("token").content, "token-1");
}

TEST_F(PodToken, ThatCannotBeHadHoldsUpThePod) {
  broken_ = true;
  start(pod_);
  EXPECT_FALSE(is_started());
  EXPECT_TRUE(last_failure().starts_with("MountVolume.SetUp failed for volume \"v\" : failed to fetch token: "))
      << last_failure();
  broken_ = false;
  cluster_.run(minutes(3));
  EXPECT_TRUE(is_started());
}

TEST(TokenRenewal, IsDueAfterADayAtTheLatest) {
  EXPECT_EQ(renewal_after(seconds(1000), 0), seconds(800));
  EXPECT_EQ(renewal_after(seconds(1000), 1), seconds(790));
  EXPECT_EQ(renewal_after(hours(100), 0), hours(24));
  EXPECT_EQ(renewal_after(seconds(1), 1), Duration::zero());
}

}  // namespace
}  // namespace spillway::agent
