// Goal: pods start and end as their specs require, and their statuses reach the API server.
#include "agent/pod_state/pod_status.h"
#include "agent/scripted_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;
using Pods = std::vector<PodSpecText>;

struct Running : ScriptedCluster {
  explicit Running(const Pods& pods, AgentOptions options = node_options()) : ScriptedCluster(std::move(options)) {
    for (const PodSpecText& pod : pods) put(pod_document(pod));
    start();
    run(seconds(1));
  }
};

std::string_view condition(const Json& pod, std::string_view type) {
  const Json* conditions = pod.at({"status", "conditions"});
  if (conditions == nullptr) return {};
  for (const Json& each : *conditions->if_array()) {
    if (each.string_at({"type"}) == type) return each.string_at({"status"});
  }
  return {};
}

const Json& container(const Json& pod) {
  return pod.at({"status", "containerStatuses"})->if_array()->front();
}

std::int64_t restarts_of(const Json& pod) {
  return container(pod).find("restartCount")->if_int64().value();
}

TEST(Pod, RunsAndIsReported) {
  Running cluster(Pods{{.name = "web", .memory_request = "64Mi"}});
  const Json pod = cluster.pod("web");
  EXPECT_EQ(cluster.phase("web"), "Running");
  EXPECT_EQ(condition(pod, "Ready"), "True");
  EXPECT_EQ(condition(pod, "Initialized"), "True");
  EXPECT_EQ(pod.string_at({"status", "hostIP"}), "10.0.0.7");
  EXPECT_EQ(pod.string_at({"status", "podIP"}), "10.0.0.7");
  EXPECT_EQ(container(pod).string_at({"containerID"}), "process://uid-web/c/0");
  EXPECT_TRUE(cluster.host.is_running("uid-web", "c"));
  EXPECT_EQ(cluster.events("Started").size(), 1u);
}

TEST(Pod, GetsItsCommandEnvironmentAndLimits) {
  Json document = pod_document({.name = "web", .memory_request = "64Mi", .memory_limit = "128Mi"});
  Json& spec = document.at({"spec", "containers"})->if_array()->front();
  spec["command"] = Json::array({"serve", "--name=$(POD)", "$$(POD)", "$(MISSING)"});
  spec["env"] = Json::array(
      {Json::object({{"name", "POD"},
                     {"valueFrom", Json::object({{"fieldRef", Json::object({{"fieldPath", "metadata.name"}})}})}}),
       Json::object({{"name", "GREETING"}, {"value", "hello $(POD)"}})});
  ScriptedCluster cluster;
  cluster.put(std::move(document));
  cluster.start();
  cluster.run(seconds(1));
  const StartContainer* start = cluster.host.last<StartContainer>();
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->argv, (std::vector<std::string>{"serve", "--name=web", "$(POD)", "$(MISSING)"}));
  EXPECT_EQ(std::ranges::count(start->env, std::pair<std::string, std::string>("GREETING", "hello web")), 1);
  EXPECT_EQ(start->memory_limit, mebibytes(128));
  EXPECT_EQ(cluster.host.last<CreatePod>()->memory_limit, mebibytes(128));
}

TEST(Pod, HasAsManyProcessesAsTheNodeAllows) {
  AgentOptions options = node_options();
  options.pod_pids_max = 40;
  ScriptedCluster cluster(options);
  cluster.put(pod_document({.name = "web"}));
  cluster.start();
  cluster.run(seconds(1));
  ASSERT_NE(cluster.host.last<CreatePod>(), nullptr);
  EXPECT_EQ(cluster.host.last<CreatePod>()->pids_max, 40);
}

TEST(Pod, WithoutCommandWaitsAndSaysWhy) {
  Json document = pod_document({.name = "web"});
  document.at({"spec", "containers"})->if_array()->front().erase({"command"});
  ScriptedCluster cluster;
  cluster.put(std::move(document));
  cluster.start();
  cluster.run(minutes(1));
  EXPECT_EQ(cluster.phase("web"), "Pending");
  EXPECT_EQ(cluster.container_waiting_reason(cluster.pod("web")), "CreateContainerError");
  EXPECT_EQ(cluster.host.count<StartContainer>(), 0u);
}

TEST(Pod, RestartsAtOnceThenWithGrowingBackOff) {
  Running cluster(Pods{{.name = "web"}});
  cluster.exit("web", 1);
  cluster.run(seconds(1));
  EXPECT_EQ(restarts_of(cluster.pod("web")), 1) << "the first restart is immediate";
  for (const int wait : {10, 20, 40, 80, 160, 300, 300}) {
    cluster.exit("web", 1);
    cluster.run(milliseconds(100));
    EXPECT_EQ(cluster.container_waiting_reason(cluster.pod("web")), "CrashLoopBackOff");
    EXPECT_EQ(cluster.phase("web"), "Running");
    cluster.run(seconds(wait) - milliseconds(200));
    EXPECT_FALSE(cluster.host.is_running("uid-web", "c")) << wait;
    cluster.run(milliseconds(300));
    EXPECT_TRUE(cluster.host.is_running("uid-web", "c")) << wait;
  }
  cluster.run(minutes(11));
  cluster.exit("web", 1);
  cluster.run(milliseconds(100));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "c")) << "after ten good minutes it starts over";
}

TEST(Pod, KeepsOnlyTheLastDeadContainer) {
  Running cluster(Pods{{.name = "web"}});
  for (int restarts = 0; restarts < 4; ++restarts) {
    cluster.exit("web", 1);
    cluster.run(minutes(2));
  }
  EXPECT_EQ(restarts_of(cluster.pod("web")), 4);
  EXPECT_EQ(cluster.host.count<RemoveContainer>(), 3);
  const auto* last = cluster.host.last<RemoveContainer>();
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->attempt, 2) << "3 is what `logs --previous` shows, 4 runs";
}

TEST(Pod, FollowsItsRestartPolicy) {
  struct Row {
    std::string policy;
    std::int32_t code;
    std::string phase;
    bool running;
  };

  for (const Row& row :
       {Row{"Always", 0, "Running", true}, Row{"OnFailure", 0, "Succeeded", false},
        Row{"OnFailure", 3, "Running", true}, Row{"Never", 0, "Succeeded", false}, Row{"Never", 3, "Failed", false}}) {
    SCOPED_TRACE(row.policy + " " + std::to_string(row.code));
    Running cluster(Pods{{.name = "job", .restart_policy = row.policy}});
    cluster.exit("job", row.code);
    cluster.run(seconds(1));
    EXPECT_EQ(cluster.phase("job"), row.phase);
    EXPECT_EQ(cluster.host.is_running("uid-job", "c"), row.running);
    if (!row.running) {
      EXPECT_EQ(condition(cluster.pod("job"), "Ready"), "False");
    }
  }
}

TEST(Pod, IsDeletedOnlyAfterItsTerminalPhaseIsWritten) {
  Running cluster(Pods{{.name = "web"}});
  cluster.host.set_stubborn(true);
  cluster.delete_pod("web", 5);
  cluster.run(seconds(4));
  EXPECT_EQ(cluster.phase("web"), "Running") << "a terminal phase waits for the last process";
  cluster.run(seconds(2));
  EXPECT_TRUE(cluster.pod("web").is_null());
  const auto& log = cluster.api.log();
  const auto patch = std::ranges::find(log.rbegin(), log.rend(), "PATCH /api/v1/namespaces/shop/pods/web/status");
  const auto deleted = std::ranges::find(log.rbegin(), log.rend(), "DELETE /api/v1/namespaces/shop/pods/web");
  ASSERT_NE(deleted, log.rend());
  EXPECT_LT(deleted - log.rbegin(), patch - log.rbegin());
  EXPECT_NE(cluster.host.last<RemovePod>(), nullptr);
  EXPECT_EQ(cluster.host.last<StopPod>()->grace, seconds(5));
}

TEST(Pod, GoneFromTheServerIsStoppedAndForgotten) {
  Running cluster(Pods{{.name = "web"}});
  cluster.remove("/api/v1/namespaces/shop/pods/web");
  cluster.run(seconds(1));
  EXPECT_FALSE(cluster.host.is_running("uid-web", "c"));
  EXPECT_NE(cluster.host.last<RemovePod>(), nullptr);
  EXPECT_TRUE(cluster.agent().pods().empty());
}

TEST(Pod, OfTheSameNameIsAnotherPod) {
  Running cluster(Pods{{.name = "web"}});
  cluster.remove("/api/v1/namespaces/shop/pods/web");
  Json next = pod_document({.name = "web"});
  next.make({"metadata", "uid"}) = "uid-second";
  cluster.put(std::move(next));
  cluster.run(seconds(1));
  EXPECT_FALSE(cluster.host.is_running("uid-web", "c"));
  EXPECT_TRUE(cluster.host.is_running("uid-second", "c"));
  EXPECT_EQ(cluster.phase("web"), "Running");
}

TEST(Pod, ThatDoesNotFitIsRejected) {
  Running cluster(Pods{{.name = "big", .memory_request = "2Gi"}});
  const Json pod = cluster.pod("big");
  EXPECT_EQ(cluster.phase("big"), "Failed");
  EXPECT_EQ(pod.string_at({"status", "reason"}), "OutOfmemory");
  EXPECT_EQ(pod.string_at({"status", "message"}),
            "Pod was rejected: Node didn't have enough resource: memory, requested: 2147483648, used: 0, capacity: "
            "968884224");
  EXPECT_EQ(cluster.host.count<CreatePod>(), 0u);
  EXPECT_EQ(cluster.events("OutOfmemory").size(), 1u);
}

/// A node of 968884224 bytes for pods.
TEST(Pod, OfACriticalPriorityMakesRoomForItself) {
  Running cluster(Pods{{.name = "big", .memory_request = "600Mi", .memory_limit = "600Mi"},
                       {.name = "small", .memory_request = "128Mi"},
                       {.name = "none"}});
  cluster.put(pod_document({.name = "critical", .memory_request = "400Mi", .priority = 2000000000}));
  cluster.run(milliseconds(500));
  const Json victim = cluster.pod("big");
  EXPECT_EQ(victim.string_at({"status", "phase"}), "Failed");
  EXPECT_EQ(victim.string_at({"status", "reason"}), "Preempting");
  EXPECT_EQ(victim.string_at({"status", "message"}), "Preempted in order to admit critical pod");
  EXPECT_EQ(condition(victim, "DisruptionTarget"), "True");
  EXPECT_EQ(cluster.phase("critical"), "Running");
  EXPECT_EQ(cluster.phase("small"), "Running");
  EXPECT_EQ(cluster.phase("none"), "Running");
  EXPECT_EQ(cluster.events("Preempting").size(), 1U);
  ASSERT_EQ(cluster.journal.entries.size(), 2U);
  const policy::Decision& why = cluster.journal.entries.back().decision;
  EXPECT_EQ(why.area, policy::Area::kPreemption);
  EXPECT_EQ(why.subject.name, "big");
  EXPECT_EQ(why.candidates_total, 2);
  const std::string reason = policy::render(why.reasons.front());
  EXPECT_TRUE(reason.starts_with("preempted qos=Burstable priority=0 needed_memory=213909504 frees_memory=629145600"))
      << reason;
}

TEST(Pod, PreemptionIsLoggedAndCounted) {
  telemetry::Registry metrics;
  ScriptedCluster cluster;
  cluster.metrics = &metrics;
  cluster.put(pod_document({.name = "big", .memory_request = "800Mi"}));
  cluster.start();
  cluster.run(seconds(1));
  cluster.put(pod_document({.name = "critical", .memory_request = "400Mi", .priority = 2000000000}));
  cluster.run(seconds(1));
  const std::vector<std::string> began = cluster.logged("preempting pod to free up resources");
  ASSERT_EQ(began.size(), 1u);
  EXPECT_TRUE(
      began.front().contains(" pod=shop/big pod_uid=uid-big insufficient_resources=memory for_pod=shop/critical "))
      << began.front();
  const std::vector<std::string> done = cluster.logged("pod evicted successfully");
  ASSERT_EQ(done.size(), 1u);
  EXPECT_TRUE(done.front().ends_with(" pod=shop/big pod_uid=uid-big")) << done.front();
  EXPECT_TRUE(metrics.text().contains("kubelet_preemptions{preemption_signal=\"memory\"} 1\n")) << metrics.text();
}

TEST(Pod, ArrivalIsLogged) {
  Running cluster(Pods{{.name = "web"}});
  cluster.put(pod_document({.name = "late"}));
  cluster.run(seconds(1));
  const std::vector<std::string> lines = cluster.logged("syncloop add");
  ASSERT_EQ(lines.size(), 2u) << "once each, whatever else changes";
  EXPECT_TRUE(lines.back().contains(" source=api pod=shop/late pod_uid=uid-late")) << lines.back();
}

TEST(Pod, OfACriticalPriorityWaitsForItsVictimsAndSoDoOthers) {
  Running cluster(Pods{{.name = "big", .memory_request = "800Mi", .grace_seconds = 20}});
  cluster.host.set_stubborn(true);
  cluster.put(pod_document({.name = "critical", .memory_request = "400Mi", .priority = 2000000000}));
  cluster.put(pod_document({.name = "next", .memory_request = "64Mi"}));
  cluster.run(seconds(19));
  EXPECT_FALSE(cluster.host.is_running("uid-critical", "c"));
  EXPECT_FALSE(cluster.host.is_running("uid-next", "c"));
  cluster.run(seconds(2));
  EXPECT_TRUE(cluster.host.is_running("uid-critical", "c"));
  EXPECT_TRUE(cluster.host.is_running("uid-next", "c"));
  EXPECT_EQ(cluster.pod("big").string_at({"status", "reason"}), "Preempting");
}

TEST(Pod, OfACriticalPriorityDoesNotWaitForever) {
  Running cluster(Pods{{.name = "big", .memory_request = "800Mi", .grace_seconds = 20}});
  cluster.host.set_immortal("uid-big");
  cluster.put(pod_document({.name = "critical", .memory_request = "400Mi", .priority = 2000000000}));
  cluster.run(seconds(29));
  EXPECT_FALSE(cluster.host.is_running("uid-critical", "c"));
  cluster.run(seconds(2));
  EXPECT_TRUE(cluster.host.is_running("uid-critical", "c"));
}

TEST(Pod, WithAForbiddenSysctlIsRejected) {
  Json document = pod_document({.name = "tuned"});
  const Json sysctl = Json::object({{"name", "net.core.somaxconn"}, {"value", "1024"}});
  document.make({"spec", "securityContext", "sysctls"}) = Json::array({sysctl});
  ScriptedCluster cluster;
  cluster.put(std::move(document));
  cluster.start();
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.pod("tuned").string_at({"status", "reason"}), "SysctlForbidden");
  EXPECT_EQ(cluster.pod("tuned").string_at({"status", "message"}),
            "Pod was rejected: forbidden sysctl: \"net.core.somaxconn\" not allowlisted");
}

TEST(Pod, OnATakenHostPortIsRejected) {
  Json first = pod_document({.name = "first"});
  Json second = pod_document({.name = "second"});
  for (Json* each : {&first, &second}) {
    each->at({"spec", "containers"})->if_array()->front()["ports"] =
        Json::array({Json::object({{"containerPort", 80}, {"hostPort", 8080}})});
  }
  ScriptedCluster cluster;
  cluster.put(std::move(first));
  cluster.put(std::move(second));
  cluster.start();
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.phase("first"), "Running");
  EXPECT_EQ(cluster.pod("second").string_at({"status", "reason"}), "NodePorts");
}

TEST(Pod, BeyondTheLimitOfPodsIsRejected) {
  AgentOptions options = node_options();
  options.pods_max = 2;
  Running cluster(Pods{{.name = "a"}, {.name = "b"}, {.name = "c"}}, options);
  EXPECT_EQ(cluster.phase("b"), "Running");
  EXPECT_EQ(cluster.pod("c").string_at({"status", "reason"}), "OutOfpods");
}

TEST(Pod, AddressesThatGoFromItsStatusGoFromTheListsToo) {
  api::PodStatus reported;
  reported.host_ip = "192.0.2.2";
  reported.pod_ip = "192.0.2.2";
  const api::Json patch = status_patch("u", reported, api::PodStatus{});
  for (const std::string_view field : {"hostIP", "hostIPs", "podIP", "podIPs"}) {
    const api::Json* change = patch.at({"status", field});
    ASSERT_NE(change, nullptr) << field;
    EXPECT_TRUE(change->is_null()) << field;
  }
}

TEST(Pod, EndsWhenItWasActiveForTooLong) {
  Json document = pod_document({.name = "job"});
  document.make({"spec", "activeDeadlineSeconds"}) = 60;
  ScriptedCluster cluster;
  cluster.put(std::move(document));
  cluster.start();
  cluster.run(seconds(59));
  EXPECT_EQ(cluster.phase("job"), "Running");
  cluster.run(seconds(2));
  const Json pod = cluster.pod("job");
  EXPECT_EQ(cluster.phase("job"), "Failed");
  EXPECT_EQ(pod.string_at({"status", "reason"}), "DeadlineExceeded");
  EXPECT_EQ(pod.string_at({"status", "message"}), "Pod was active on the node longer than the specified deadline");
  EXPECT_EQ(condition(pod, "DisruptionTarget"), "");
  ASSERT_NE(cluster.host.last<StopPod>(), nullptr);
  EXPECT_EQ(cluster.host.last<StopPod>()->grace, seconds(30)) << "its own grace";
  const std::vector<Json> events = cluster.events("DeadlineExceeded");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events.front().string_at({"type"}), "Normal");
  EXPECT_EQ(events.front().string_at({"message"}), "Pod was active on the node longer than the specified deadline");
}

TEST(Pod, FollowsANewDeadline) {
  Running cluster(Pods{{.name = "job"}});
  cluster.run(seconds(29));
  Json pod = cluster.pod("job");
  pod.make({"spec", "activeDeadlineSeconds"}) = 100;
  cluster.put(pod);
  cluster.run(seconds(30));
  pod = cluster.pod("job");
  pod.make({"spec", "activeDeadlineSeconds"}) = 90;
  cluster.put(pod);
  cluster.run(seconds(28));
  EXPECT_EQ(cluster.phase("job"), "Running");
  cluster.run(seconds(3));
  EXPECT_EQ(cluster.phase("job"), "Failed") << "90 s after it began";
}

TEST(Pod, OfANewDeadlineThatIsOverEndsAtOnce) {
  Running cluster(Pods{{.name = "job"}});
  cluster.run(seconds(60));
  Json pod = cluster.pod("job");
  pod.make({"spec", "activeDeadlineSeconds"}) = 5;
  cluster.put(pod);
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.pod("job").string_at({"status", "reason"}), "DeadlineExceeded");
}

TEST(Pod, DeadlineCountsWhileItsAgentIsAwayAndNotByAClockThatJumps) {
  Json document = pod_document({.name = "job"});
  document.make({"spec", "activeDeadlineSeconds"}) = 60;
  ScriptedCluster cluster;
  cluster.put(std::move(document));
  cluster.start();
  cluster.run(seconds(30));
  cluster.set_wall_clock_ahead(hours(1));
  cluster.run(seconds(20));
  EXPECT_EQ(cluster.phase("job"), "Running");
  const std::size_t starts = cluster.host.count<StartContainer>();
  cluster.restart();  // an hour has passed by the clock
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.pod("job").string_at({"status", "reason"}), "DeadlineExceeded");
  EXPECT_EQ(cluster.host.count<StartContainer>(), starts) << "nothing is started for a moment";
}

TEST(Pod, ThatEndsAlreadyHasNoDeadlineAnyMore) {
  Json document = pod_document({.name = "job"});
  document.make({"spec", "activeDeadlineSeconds"}) = 60;
  ScriptedCluster cluster;
  cluster.put(std::move(document));
  cluster.start();
  cluster.run(seconds(58));
  cluster.host.set_stubborn(true);
  cluster.delete_pod("job", 20);
  cluster.run(seconds(10));
  EXPECT_TRUE(cluster.events("DeadlineExceeded").empty()) << "it is ending already";
}

/// The container "c" gets another image.
void set_image(ScriptedCluster& cluster, const std::string& name, const std::string& image) {
  Json pod = cluster.pod(name);
  pod.at({"spec", "containers"})->if_array()->front()["image"] = image;
  cluster.put(std::move(pod));
}

TEST(Pod, StartsAContainerAgainWhoseImageChanges) {
  for (const std::string policy : {"Always", "Never"}) {
    SCOPED_TRACE(policy);
    Running cluster(Pods{{.name = "web", .restart_policy = policy, .grace_seconds = 7}});
    set_image(cluster, "web", "other");
    cluster.run(milliseconds(500));
    ASSERT_NE(cluster.host.last<StopContainer>(), nullptr);
    EXPECT_EQ(cluster.host.last<StopContainer>()->grace, seconds(7));
    EXPECT_EQ(cluster.host.count<StopContainer>(), 1u);
    EXPECT_EQ(cluster.host.count<StopPod>(), 0u);
    const Json pod = cluster.pod("web");
    EXPECT_EQ(restarts_of(pod), 1) << "at once, and whatever the policy";
    EXPECT_EQ(container(pod).string_at({"image"}), "other");
    EXPECT_EQ(cluster.phase("web"), "Running");
    const std::vector<Json> events = cluster.events("Killing");
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events.front().string_at({"message"}), "Container c definition changed, will be restarted");
    EXPECT_EQ(events.front().string_at({"involvedObject", "fieldPath"}), "spec.containers{c}");
    cluster.run(minutes(1));
    EXPECT_EQ(cluster.host.count<StartContainer>(), 2u);
  }
}

TEST(Pod, ShowsTheImageThatRunsUntilItHasEnded) {
  Running cluster(Pods{{.name = "web"}});
  cluster.host.set_stubborn(true);
  set_image(cluster, "web", "other");
  cluster.run(seconds(20));
  EXPECT_EQ(container(cluster.pod("web")).string_at({"image"}), "none");
  set_image(cluster, "web", "third");
  cluster.run(seconds(11));
  EXPECT_EQ(container(cluster.pod("web")).string_at({"image"}), "third");
  EXPECT_EQ(cluster.host.count<StopContainer>(), 1u);
  EXPECT_EQ(restarts_of(cluster.pod("web")), 1);
}

TEST(Pod, WhoseImageChangesInItsBackOffStartsWithTheNewOne) {
  Running cluster(Pods{{.name = "web"}});
  cluster.exit("web", 1);
  cluster.run(seconds(1));
  cluster.exit("web", 1);
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.container_waiting_reason(cluster.pod("web")), "CrashLoopBackOff");
  set_image(cluster, "web", "other");
  cluster.run(seconds(10));
  EXPECT_EQ(container(cluster.pod("web")).string_at({"image"}), "other");
  EXPECT_EQ(cluster.host.count<StopContainer>(), 0u);
}

TEST(Pod, StatusThatAnotherClientChangedIsCorrected) {
  Running cluster(Pods{{.name = "web"}});
  Json pod = cluster.pod("web");
  for (Json& each : *pod.at({"status", "conditions"})->if_array()) {
    if (each.string_at({"type"}) == "Ready") each["status"] = "False";
  }
  cluster.put(std::move(pod));
  cluster.run(seconds(1));
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "True");
}

TEST(Pod, StatusReachesTheServerAfterAnOutage) {
  Running cluster(Pods{{.name = "web"}});
  bool broken = true;
  cluster.api.set_fault([&](const api::Request& request) -> std::optional<Result<api::Response>> {
    if (!broken || request.method != api::Method::kPatch) return {};
    return make_error(ErrorCode::kServiceUnavailable, "no answer");
  });
  cluster.exit("web", 1);
  cluster.run(seconds(30));
  broken = false;
  cluster.run(seconds(11));
  EXPECT_EQ(restarts_of(cluster.pod("web")), 1);
}

TEST(InitContainers, RunInOrderBeforeTheOthers) {
  Json document = pod_document({.name = "web"});
  document.make({"spec", "initContainers"}) =
      Json::array({Json::object({{"name", "one"}, {"command", Json::array({"prepare"})}}),
                   Json::object({{"name", "two"}, {"command", Json::array({"prepare"})}})});
  ScriptedCluster cluster;
  cluster.put(std::move(document));
  cluster.start();
  cluster.run(seconds(1));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "one"));
  EXPECT_FALSE(cluster.host.is_running("uid-web", "two"));
  EXPECT_EQ(cluster.phase("web"), "Pending");
  cluster.send(cluster.host.exit("uid-web", "one", 0, cluster.now()));
  cluster.run(seconds(1));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "two"));
  EXPECT_FALSE(cluster.host.is_running("uid-web", "c"));
  EXPECT_EQ(condition(cluster.pod("web"), "Initialized"), "False");
  EXPECT_EQ(cluster.container_waiting_reason(cluster.pod("web")), "PodInitializing");
  cluster.send(cluster.host.exit("uid-web", "two", 0, cluster.now()));
  cluster.run(seconds(1));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "c"));
  EXPECT_EQ(cluster.phase("web"), "Running");
  EXPECT_EQ(condition(cluster.pod("web"), "Initialized"), "True");
}

TEST(InitContainers, FailThePodIfItNeverRestarts) {
  Json document = pod_document({.name = "web", .restart_policy = "Never"});
  document.make({"spec", "initContainers"}) =
      Json::array({Json::object({{"name", "one"}, {"command", Json::array({"prepare"})}})});
  ScriptedCluster cluster;
  cluster.put(std::move(document));
  cluster.start();
  cluster.run(seconds(1));
  cluster.send(cluster.host.exit("uid-web", "one", 2, cluster.now()));
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.phase("web"), "Failed");
  EXPECT_FALSE(cluster.host.is_running("uid-web", "c"));
}

TEST(InitContainers, AContainerThatWasNeverReachedIsNotReportedAsEnded) {
  Json document = pod_document({.name = "web", .restart_policy = "Never"});
  const auto init = [](std::string_view name) {
    return Json::object({{"name", name}, {"command", Json::array({"prepare"})}});
  };
  document.make({"spec", "initContainers"}) = Json::array({init("one"), init("two"), init("three")});
  ScriptedCluster cluster;
  cluster.put(std::move(document));
  cluster.start();
  cluster.run(seconds(1));
  cluster.send(cluster.host.exit("uid-web", "one", 0, cluster.now()));
  cluster.run(seconds(1));
  cluster.send(cluster.host.exit("uid-web", "two", 1, cluster.now()));
  cluster.run(seconds(1));
  const Json pod = cluster.pod("web");
  EXPECT_EQ(cluster.phase("web"), "Failed");
  EXPECT_EQ(cluster.container_waiting_reason(pod), "PodInitializing");
  EXPECT_EQ(condition(pod, "Initialized"), "False");
  const Json::Array& statuses = *pod.at({"status", "initContainerStatuses"})->if_array();
  ASSERT_EQ(statuses.size(), 3u);
  EXPECT_EQ(statuses[1].at({"state", "terminated", "exitCode"})->if_int64(), 1);
  EXPECT_EQ(statuses[2].string_at({"state", "waiting", "reason"}), "PodInitializing");
}

TEST(InitContainers, SidecarsKeepRunning) {
  Json document = pod_document({.name = "web"});
  document.make({"spec", "initContainers"}) =
      Json::array({Json::object({{"name", "mesh"}, {"command", Json::array({"proxy"})}, {"restartPolicy", "Always"}})});
  ScriptedCluster cluster;
  cluster.put(std::move(document));
  cluster.start();
  cluster.run(seconds(1));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "mesh"));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "c"));
  cluster.send(cluster.host.exit("uid-web", "mesh", 1, cluster.now()));
  cluster.run(seconds(1));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "mesh"));
  EXPECT_EQ(cluster.phase("web"), "Running");
}

TEST(InitContainers, SidecarsAreStartedAgainWhenTheirImageChangesOthersRunOn) {
  Json document = pod_document({.name = "web"});
  document.make({"spec", "initContainers"}) = Json::array(
      {Json::object(
           {{"name", "mesh"}, {"image", "none"}, {"command", Json::array({"proxy"})}, {"restartPolicy", "Always"}}),
       Json::object({{"name", "one"}, {"image", "none"}, {"command", Json::array({"prepare"})}})});
  ScriptedCluster cluster;
  cluster.put(std::move(document));
  cluster.start();
  cluster.run(seconds(1));
  ASSERT_TRUE(cluster.host.is_running("uid-web", "one"));
  Json pod = cluster.pod("web");
  for (Json& each : *pod.at({"spec", "initContainers"})->if_array()) each["image"] = "other";
  cluster.put(std::move(pod));
  cluster.run(seconds(1));
  ASSERT_EQ(cluster.host.count<StopContainer>(), 1u);
  EXPECT_EQ(cluster.host.last<StopContainer>()->name, "mesh");
  EXPECT_TRUE(cluster.host.is_running("uid-web", "mesh"));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "one"));
  ASSERT_EQ(cluster.events("Killing").size(), 1u);
  const Json killing = cluster.events("Killing").front();
  EXPECT_EQ(killing.string_at({"message"}), "Init container mesh definition changed");
  EXPECT_EQ(killing.string_at({"involvedObject", "fieldPath"}), "spec.initContainers{mesh}");
}

TEST(Containers, ThatCannotStartAreTriedAgain) {
  ScriptedCluster cluster;
  cluster.host.set_start_failure("RunContainerError");
  cluster.put(pod_document({.name = "web"}));
  cluster.start();
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.container_waiting_reason(cluster.pod("web")), "RunContainerError");
  cluster.host.set_start_failure("");
  cluster.run(seconds(10));
  EXPECT_EQ(cluster.phase("web"), "Running");
}

TEST(Restart, StartsWhatRanBeforeAgainAndCountsIt) {
  Running cluster(
      {{.name = "web"}, {.name = "done", .restart_policy = "Never"}, {.name = "once", .restart_policy = "Never"}});
  cluster.exit("done", 0);
  cluster.run(seconds(1));
  cluster.host = ScriptedHost();  // nothing survives
  cluster.restart();
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.phase("web"), "Running");
  EXPECT_EQ(restarts_of(cluster.pod("web")), 1);
  EXPECT_EQ(container(cluster.pod("web")).string_at({"lastState", "terminated", "reason"}), "ContainerStatusUnknown");
  EXPECT_EQ(cluster.phase("done"), "Succeeded");
  EXPECT_EQ(cluster.phase("once"), "Failed") << "it ran, nobody saw its end, and it must not run twice";
}

TEST(Restart, FinishesADeletionThatWasUnderWay) {
  Running cluster(Pods{{.name = "web"}});
  cluster.host.set_stubborn(true);
  cluster.delete_pod("web", 30);
  cluster.run(seconds(1));
  cluster.host = ScriptedHost();
  cluster.restart();
  cluster.run(seconds(2));
  EXPECT_TRUE(cluster.pod("web").is_null());
}

TEST(Watch, BrokenAndExpiredMakesNoPodRunTwice) {
  Running cluster(Pods{{.name = "web"}});
  cluster.break_watches(Error{ErrorCode::kExpired, "too old", {}});
  cluster.run(seconds(5));
  cluster.put(pod_document({.name = "late"}));
  cluster.run(seconds(60));
  EXPECT_EQ(cluster.phase("late"), "Running");
  EXPECT_EQ(cluster.host.count<StartContainer>(), 2u);
}

}  // namespace
}  // namespace spillway::agent
