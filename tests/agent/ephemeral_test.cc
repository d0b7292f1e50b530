// Goal: a container for debugging is added to a running pod, starts once, is reported and ended with its pod, and gets
// no more rights than any other. Method: an agent between a scripted API server and a scripted machine.
#include "agent/containers/container_hash.h"
#include "agent/scripted_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;

Json debug_container(std::string_view more = "{}") {
  Json made =
      api::parse_json(R"({"name":"debug","image":"busybox","command":["sh"],"targetContainerName":"c"})").value();
  const Json parsed = api::parse_json(more).value();
  for (const auto& [key, value] : *parsed.if_object()) made[key] = value;
  return made;
}

class Ephemeral : public ::testing::Test {
 protected:
  void begin(const PodSpecText& text = {.name = "web"}) {
    cluster_.put(pod_document(text));
    cluster_.start();
    cluster_.run(seconds(15));
  }

  void add(Json container) {
    Json pod = cluster_.pod("web");
    Json& list = pod["spec"]["ephemeralContainers"];
    if (!list.is_array()) list = Json::array();
    list.if_array()->push_back(std::move(container));
    cluster_.put(std::move(pod));
    cluster_.run(seconds(2));
  }

  void end(std::int32_t code) {
    cluster_.send(cluster_.host.exit("uid-web", "debug", code, cluster_.now()));
    cluster_.run(seconds(2));
  }

  std::vector<StartContainer> starts(std::string_view name) const {
    std::vector<StartContainer> found;
    for (const HostCommand& each : cluster_.host.commands()) {
      const auto* start = std::get_if<StartContainer>(&each);
      if (start != nullptr && start->name == name) found.push_back(*start);
    }
    return found;
  }

  Json status() const {
    const Json pod = cluster_.pod("web");
    const Json* list = pod.at({"status", "ephemeralContainerStatuses"});
    return list == nullptr || list->if_array()->empty() ? Json() : list->if_array()->front();
  }

  ScriptedCluster cluster_;
};

TEST_F(Ephemeral, StartsOnceInAPodThatRuns) {
  begin();
  add(debug_container());
  ASSERT_EQ(starts("debug").size(), 1U);
  EXPECT_EQ(starts("debug").front().target, "c");
  EXPECT_EQ(starts("c").size(), 1U) << "the others are left alone";
  EXPECT_EQ(starts("c").front().target, "");
  ASSERT_NE(status().at({"state", "running"}), nullptr) << api::to_text(cluster_.pod("web"));
  EXPECT_EQ(status().find("started"), nullptr);
  EXPECT_EQ(status().string_at({"image"}), "busybox");
  const auto started = cluster_.events("Started");
  EXPECT_TRUE(std::ranges::any_of(started, [](const Json& event) {
    return event.string_at({"involvedObject", "fieldPath"}) == "spec.ephemeralContainers{debug}";
  }));
  end(1);
  cluster_.run(minutes(10));
  EXPECT_EQ(starts("debug").size(), 1U) << "never again, whatever the pod's policy";
  EXPECT_EQ(status().at({"state", "terminated", "exitCode"})->if_int64(), 1);
  EXPECT_EQ(cluster_.phase("web"), "Running");
}

TEST_F(Ephemeral, CanBeThereBeforeThePodStarts) {
  Json pod = pod_document({.name = "web"});
  pod["spec"]["ephemeralContainers"] = Json::array({debug_container()});
  cluster_.put(std::move(pod));
  cluster_.start();
  cluster_.run(seconds(15));
  EXPECT_EQ(starts("debug").size(), 1U);
  EXPECT_EQ(starts("c").size(), 1U);
}

TEST_F(Ephemeral, KeepsNoPodAlive) {
  begin({.name = "web", .restart_policy = "Never"});
  add(debug_container());
  cluster_.exit("web", 0);
  cluster_.run(seconds(60));
  EXPECT_EQ(cluster_.phase("web"), "Succeeded");
  EXPECT_NE(status().at({"state", "terminated"}), nullptr);
}

TEST_F(Ephemeral, ThatCouldNotBeStartedIsNotTriedForever) {
  begin();
  cluster_.host.set_start_failure("RunContainerError");
  add(debug_container());
  EXPECT_EQ(status().string_at({"state", "terminated", "reason"}), "StartError");
  cluster_.run(minutes(20));
  EXPECT_EQ(starts("debug").size(), 1U);
}

TEST_F(Ephemeral, WaitsForAVolumeThatIsNotMountedYet) {
  cluster_.machine.confines_pods = true;
  Json pod = pod_document({.name = "web"});
  pod["spec"]["volumes"] = api::parse_json(R"([{"name":"v","emptyDir":{}}])").value();
  cluster_.put(std::move(pod));
  cluster_.start();
  cluster_.run(seconds(15));
  EXPECT_EQ(cluster_.host.count<SetUpVolumes>(), 0U);
  add(debug_container(R"({"volumeMounts":[{"name":"v","mountPath":"/v"}]})"));
  EXPECT_EQ(cluster_.host.count<SetUpVolumes>(), 1U);
  ASSERT_EQ(starts("debug").size(), 1U);
  ASSERT_EQ(starts("debug").front().volumes.size(), 1U);
  EXPECT_EQ(starts("debug").front().volumes.front().volume, "v");
}

TEST_F(Ephemeral, IsRefusedAProfileThatCannotBeEnforced) {
  begin();
  add(debug_container(R"({"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}})"));
  EXPECT_TRUE(starts("debug").empty());
  EXPECT_EQ(status().string_at({"state", "waiting", "reason"}), "CreateContainerConfigError");
  EXPECT_EQ(status().string_at({"state", "waiting", "message"}),
            "Cannot enforce AppArmor: AppArmor is not enabled on the host");
}

TEST_F(Ephemeral, IsHeldToTheSecurityOfConfinedPods) {
  cluster_.machine.confines_pods = true;
  begin();
  add(debug_container(R"({"securityContext":{"privileged":true}})"));
  EXPECT_TRUE(starts("debug").empty());
  EXPECT_FALSE(status().string_at({"state", "waiting", "message"}).empty());
}

TEST_F(Ephemeral, StaysAsItWasWhenTheAgentBeginsAnew) {
  cluster_.machine.keeps_pods = true;
  cluster_.put(pod_document({.name = "web"}));
  cluster_.start();
  cluster_.send(PodsFound{});
  cluster_.run(seconds(15));
  add(debug_container());
  const auto found = [&](std::string name, std::string image) {
    FoundContainer made;
    made.name = std::move(name);
    made.container_id = "process://uid-web/" + made.name + "/0";
    made.image = std::move(image);
    made.hash = container_hash(made.name, made.image);
    made.started_at = cluster_.now().wall;
    return made;
  };
  FoundPod left{
      .uid = "uid-web", .has_sandbox = true, .ips = {}, .containers = {found("c", "none"), found("debug", "busybox")}};
  cluster_.restart();
  cluster_.host.take_commands();
  cluster_.send(PodsFound{{left}});
  cluster_.run(seconds(30));
  EXPECT_TRUE(starts("debug").empty());
  EXPECT_TRUE(starts("c").empty());
  EXPECT_NE(status().at({"state", "running"}), nullptr);
  // The next agent does not start an ended ephemeral container again.
  end(0);
  left.containers.pop_back();
  cluster_.restart();
  cluster_.host.take_commands();
  cluster_.send(PodsFound{{left}});
  cluster_.run(seconds(30));
  EXPECT_TRUE(starts("debug").empty());
  EXPECT_NE(status().at({"state", "terminated"}), nullptr);
}

}  // namespace
}  // namespace spillway::agent
