// Goal: an agent that is started anew on a machine that keeps pods disturbs none: running containers continue, ended
// ones are counted once, remains without a pod are removed, and no command is given before the machine's pods are
// known.
#include "agent/containers/container_hash.h"
#include "agent/scripted_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;

constexpr std::string_view kReadiness = R"({"httpGet":{"port":8080},"periodSeconds":10})";

Json web(std::string_view policy = "Always") {
  Json pod = pod_document({.name = "web", .restart_policy = std::string(policy)});
  pod.at({"spec", "containers"})->if_array()->front()["readinessProbe"] = api::parse_json(kReadiness).value();
  return pod;
}

class WarmRestart : public ::testing::Test {
 protected:
  WarmRestart() {
    cluster_.machine.keeps_pods = true;
    cluster_.machine.container_runtime_version = "process://0.1.0";
  }

  void begin(Json pod) {
    cluster_.put(std::move(pod));
    cluster_.start();
    cluster_.send(PodsFound{});
    cluster_.run(seconds(15));
  }

  /// A pod with one container "c", as the machine reports it after a restart.
  FoundPod left_of(const std::string& name, std::int32_t attempt = 0) const {
    FoundContainer container;
    container.name = "c";
    container.attempt = attempt;
    container.container_id = "process://uid-" + name + "/c/" + std::to_string(attempt);
    container.image = "none";
    container.hash = container_hash("c", "none");
    container.started_at = cluster_.now().wall - milliseconds(14'500);  // within the same second
    return {.uid = "uid-" + name, .has_sandbox = true, .ips = {}, .containers = {container}};
  }

  FoundPod ended(FoundPod pod, std::int32_t code) const {
    api::ContainerState::Terminated& end = pod.containers.front().ended.emplace();
    end.exit_code = code;
    end.reason = code == 0 ? "Completed" : "Error";
    end.container_id = pod.containers.front().container_id;
    end.started_at = pod.containers.front().started_at;
    end.finished_at = cluster_.now().wall;
    return pod;
  }

  /// Another process of the node begins; requests to the API server count from here.
  void restart(std::vector<FoundPod> found) {
    cluster_.restart();
    cluster_.host.take_commands();
    writes_before_ = writes();
    cluster_.send(PodsFound{std::move(found)});
  }

  std::size_t writes() const {
    return static_cast<std::size_t>(
        std::ranges::count(cluster_.api.log(), std::string("PATCH /api/v1/namespaces/shop/pods/web/status")));
  }

  std::string last_write() const {
    std::string body;
    for (std::size_t i = 0; i < cluster_.api.log().size(); ++i) {
      if (cluster_.api.log()[i].ends_with("/pods/web/status")) body = cluster_.api.requests()[i].body;
    }
    return body;
  }

  Json status() const {
    const Json pod = cluster_.pod("web");
    const Json* list = pod.at({"status", "containerStatuses"});
    return list == nullptr ? Json() : list->if_array()->front();
  }

  ScriptedCluster cluster_;
  std::size_t writes_before_ = 0;
};

TEST_F(WarmRestart, WhatRunsContinuesAndNothingIsReported) {
  begin(web());
  ASSERT_TRUE(status().find("ready")->if_bool().value());
  restart({left_of("web")});
  cluster_.host.set_http(8080, 0);  // the first failure alone changes nothing
  cluster_.run(seconds(9));
  EXPECT_EQ(cluster_.host.count<StartContainer>(), 0u);
  EXPECT_EQ(cluster_.host.count<StopContainer>(), 0u);
  EXPECT_EQ(cluster_.host.count<CreatePod>(), 1u) << "the machine is told what it is";
  EXPECT_EQ(writes(), writes_before_) << last_write();
  EXPECT_TRUE(status().find("ready")->if_bool().value());
  cluster_.run(seconds(40));
  EXPECT_FALSE(status().find("ready")->if_bool().value()) << "probes run on";
}

TEST_F(WarmRestart, NothingBeginsBeforeItIsKnownWhatIsThere) {
  begin(web());
  cluster_.restart();
  cluster_.host.take_commands();
  cluster_.put(pod_document({.name = "new"}));
  cluster_.run(seconds(30));
  EXPECT_EQ(cluster_.host.count<CreatePod>(), 0u);
  cluster_.send(PodsFound{{left_of("web")}});
  cluster_.run(seconds(2));
  EXPECT_EQ(cluster_.host.count<CreatePod>(), 2u);
  EXPECT_EQ(cluster_.host.count<StartContainer>(), 1u);
  EXPECT_EQ(cluster_.phase("new"), "Running");
}

TEST_F(WarmRestart, WhatEndedMeanwhileIsCountedOnce) {
  begin(web());
  cluster_.host.exit("uid-web", "c", 3, cluster_.now());
  restart({ended(left_of("web"), 3)});
  cluster_.run(seconds(3));
  ASSERT_EQ(cluster_.host.count<StartContainer>(), 1u);
  EXPECT_EQ(cluster_.host.last<StartContainer>()->attempt, 1);
  EXPECT_EQ(status().find("restartCount")->if_int64(), 1);
  EXPECT_EQ(status().at({"lastState", "terminated", "exitCode"})->if_int64(), 3);
}

TEST_F(WarmRestart, AMachineOfProcessesNamesNoContainer) {
  begin(web());
  ASSERT_TRUE(status().find("ready")->if_bool().value());
  FoundPod found = left_of("web");
  found.containers.front().container_id.clear();
  found.containers.front().hash.clear();
  restart({found});
  cluster_.host.set_http(8080, 0);
  cluster_.run(seconds(9));
  EXPECT_EQ(cluster_.host.count<StartContainer>(), 0u);
  EXPECT_EQ(cluster_.host.count<StopContainer>(), 0u);
  EXPECT_EQ(writes(), writes_before_) << last_write();
}

TEST_F(WarmRestart, ARunOfWhichNothingIsLeftIsNotTheOneBefore) {
  begin(web());
  cluster_.send(cluster_.host.exit("uid-web", "c", 3, cluster_.now()));
  cluster_.run(seconds(15));
  ASSERT_EQ(status().find("restartCount")->if_int64(), 1);
  FoundPod found = ended(left_of("web"), 3);
  found.has_sandbox = false;
  restart({found});
  cluster_.run(seconds(3));
  ASSERT_EQ(cluster_.host.count<StartContainer>(), 1u);
  EXPECT_EQ(cluster_.host.last<StartContainer>()->attempt, 2);
  EXPECT_EQ(status().find("restartCount")->if_int64(), 2);
  EXPECT_EQ(status().at({"lastState", "terminated", "exitCode"})->if_int64(), 137);
}

TEST_F(WarmRestart, NorTheContainerOfAnotherImage) {
  begin(web());
  FoundPod found = left_of("web");
  found.containers.front().container_id.clear();
  found.containers.front().hash.clear();
  found.containers.front().image = "older";
  restart({found});
  cluster_.run(seconds(3));
  EXPECT_EQ(cluster_.host.count<StopContainer>(), 1u);
  EXPECT_EQ(status().find("restartCount")->if_int64(), 1);
}

TEST_F(WarmRestart, AnEndSeenBeforeTheObjectIsNotLost) {
  begin(web("Never"));
  cluster_.delay_answers([](const api::Request&) { return seconds(2); });
  restart({left_of("web")});
  cluster_.send(cluster_.host.exit("uid-web", "c", 5, cluster_.now()));
  cluster_.run(seconds(20));
  EXPECT_EQ(cluster_.phase("web"), "Failed");
  EXPECT_EQ(status().at({"state", "terminated", "exitCode"})->if_int64(), 5);
}

TEST_F(WarmRestart, AContainerOfAnotherDefinitionIsReplaced) {
  begin(web());
  FoundPod found = left_of("web");
  found.containers.front().hash = container_hash("c", "older");
  restart({found});
  cluster_.run(seconds(3));
  EXPECT_EQ(cluster_.host.count<StopContainer>(), 1u);
  EXPECT_EQ(status().find("restartCount")->if_int64(), 1);
}

TEST_F(WarmRestart, EarlierInstancesAreTheLastState) {
  begin(web());
  FoundPod found = left_of("web", 2);
  found.containers.push_back(ended(left_of("web", 1), 9).containers.front());
  restart({found});
  cluster_.run(seconds(3));
  EXPECT_EQ(cluster_.host.count<StartContainer>(), 0u);
  EXPECT_EQ(status().find("restartCount")->if_int64(), 2);
  EXPECT_EQ(status().at({"lastState", "terminated", "exitCode"})->if_int64(), 9);
}

/// The runtime has forgotten the containers: only their logs show the number of attempts.
TEST_F(WarmRestart, WhatTheRuntimeHasForgottenIsCountedByItsLogs) {
  begin(web());
  FoundPod found = left_of("web");
  found.has_sandbox = false;
  found.containers.clear();
  found.after_logs = {{"c", 5}, {"another", 9}};
  restart({found});
  cluster_.run(seconds(3));
  ASSERT_EQ(cluster_.host.count<StartContainer>(), 1u);
  EXPECT_EQ(cluster_.host.last<StartContainer>()->attempt, 5);
  EXPECT_EQ(status().find("restartCount")->if_int64(), 5);
}

TEST_F(WarmRestart, NoCountGoesBackForLogsThatAreGone) {
  begin(web());
  FoundPod found = left_of("web", 3);
  found.after_logs = {{"c", 1}};
  restart({found});
  cluster_.run(seconds(3));
  EXPECT_EQ(cluster_.host.count<StartContainer>(), 0u);
  EXPECT_EQ(status().find("restartCount")->if_int64(), 3);
}

TEST_F(WarmRestart, PodsOfNoSourceAreEnded) {
  begin(web());
  cluster_.delay_answers([](const api::Request&) { return seconds(2); });
  restart({left_of("web"), left_of("stranger")});
  cluster_.run(seconds(1));
  EXPECT_EQ(cluster_.host.count<StopPod>(), 0u) << "the pods are not known yet";
  cluster_.run(seconds(10));
  ASSERT_EQ(cluster_.host.count<StopPod>(), 1u);
  EXPECT_EQ(cluster_.host.last<StopPod>()->uid, "uid-stranger");
  ASSERT_EQ(cluster_.host.count<RemovePod>(), 1u);
  EXPECT_EQ(cluster_.host.last<RemovePod>()->uid, "uid-stranger");
}

TEST_F(WarmRestart, ADeletionGoesOn) {
  begin(web());
  cluster_.restart();
  cluster_.delete_pod("web", 5);
  cluster_.send(PodsFound{{left_of("web")}});
  cluster_.run(seconds(3));
  EXPECT_EQ(cluster_.host.count<StopPod>(), 1u);
  EXPECT_TRUE(cluster_.pod("web").is_null());
}

TEST_F(WarmRestart, AFinishedPodThatRunsIsEnded) {
  begin(web());
  Json pod = cluster_.pod("web");
  pod["status"]["phase"] = "Failed";
  cluster_.restart();
  cluster_.put(std::move(pod));
  cluster_.send(PodsFound{{left_of("web")}});
  cluster_.run(seconds(3));
  EXPECT_EQ(cluster_.host.count<StopPod>(), 1u);
  EXPECT_EQ(cluster_.phase("web"), "Failed");
}

TEST_F(WarmRestart, PressureRejectsNoRunningPod) {
  begin(web());
  cluster_.host.set_available(mebibytes(90));  // a condition, and no eviction for it on record
  cluster_.delay_answers([](const api::Request&) { return seconds(2); });
  restart({left_of("web")});
  cluster_.run(seconds(1));
  ASSERT_FALSE(cluster_.agent().conditions().empty());
  cluster_.host.set_available(mebibytes(900));
  cluster_.run(seconds(5));
  EXPECT_TRUE(cluster_.events("Evicted").empty());
  EXPECT_NE(cluster_.phase("web"), "Failed");
}

TEST_F(WarmRestart, NorWhoHasBegunToStart) {
  begin(web());
  cluster_.host.exit("uid-web", "c", 0, cluster_.now());
  cluster_.host.set_available(mebibytes(90));
  cluster_.delay_answers([](const api::Request&) { return seconds(2); });
  restart({{.uid = "uid-web", .has_sandbox = true, .ips = {}, .containers = {}}});
  cluster_.run(seconds(1));
  ASSERT_FALSE(cluster_.agent().conditions().empty());
  cluster_.host.set_available(mebibytes(900));
  cluster_.run(seconds(5));
  EXPECT_TRUE(cluster_.events("Evicted").empty());
  EXPECT_EQ(cluster_.phase("web"), "Running");
}

TEST_F(WarmRestart, AnEvictionUnderWayIsFinishedBeforeTheNext) {
  cluster_.put(pod_document({.name = "web"}));
  cluster_.put(pod_document({.name = "other"}));
  cluster_.start();
  cluster_.send(PodsFound{});
  cluster_.run(seconds(15));
  cluster_.host.set_working_set("uid-web", mebibytes(500));
  cluster_.host.set_working_set("uid-other", mebibytes(10));
  cluster_.host.set_immortal("uid-web");
  cluster_.host.set_available(mebibytes(90));
  cluster_.run(milliseconds(500));
  ASSERT_EQ(cluster_.journal.entries.size(), 1u);
  restart({left_of("web"), left_of("other")});
  cluster_.run(seconds(2));
  ASSERT_GE(cluster_.host.count<StopPod>(), 1u);
  EXPECT_EQ(cluster_.host.last<StopPod>()->uid, "uid-web");
  EXPECT_EQ(cluster_.journal.entries.size(), 1u) << "one victim";
  EXPECT_EQ(cluster_.phase("other"), "Running");
  cluster_.send(PodStopped{"uid-web"});
  cluster_.run(milliseconds(20));
  EXPECT_EQ(cluster_.pod("web").string_at({"status", "reason"}), "Evicted");
}

}  // namespace
}  // namespace spillway::agent
