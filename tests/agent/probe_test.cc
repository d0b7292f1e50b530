// Goal: probes and hooks decide a container's status in the API server and when it is started, stopped and ready.
#include "agent/scripted_cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace spillway::agent {
namespace {

using api::Json;

Json parsed(std::string_view text) {
  return api::parse_json(text).value();
}

std::string_view condition(const Json& pod, std::string_view type, std::string_view member = "status") {
  const Json* conditions = pod.at({"status", "conditions"});
  if (conditions == nullptr) return {};
  for (const Json& each : *conditions->if_array()) {
    if (each.string_at({"type"}) == type) return each.string_at({member});
  }
  return {};
}

const Json& status_of(const Json& pod, std::string_view name) {
  static const Json kNone;
  for (const std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
    const Json* statuses = pod.at({"status", list});
    if (statuses == nullptr) continue;
    for (const Json& each : *statuses->if_array()) {
      if (each.string_at({"name"}) == name) return each;
    }
  }
  return kNone;
}

std::int64_t restarts_in(const Json& pod, std::string_view name = "c") {
  return status_of(pod, name).find("restartCount")->if_int64().value();
}

bool flag(const Json& status, std::string_view member) {
  const Json* found = status.find(member);
  return found != nullptr && found->if_bool().value_or(false);
}

/// A pod whose only container also has these members.
Json pod_with(std::string_view container, PodSpecText text = {.name = "web"}) {
  Json document = pod_document(text);
  Json& made = document.at({"spec", "containers"})->if_array()->front();
  const Json more = parsed(container);
  for (const auto& [key, value] : *more.if_object()) made[key] = value;
  return document;
}

struct Running : ScriptedCluster {
  explicit Running(Json pod, Duration first = seconds(12)) {
    put(std::move(pod));
    start();
    run(first);
  }
};

/// Position of the first command of this kind; the number of commands, if there is none.
template <typename Command>
std::size_t position(const ScriptedCluster& cluster, std::function<bool(const Command&)> which) {
  const auto& all = cluster.host.commands();
  return static_cast<std::size_t>(std::ranges::find_if(all,
                                                       [&](const HostCommand& each) {
                                                         const auto* found = std::get_if<Command>(&each);
                                                         return found != nullptr && which(*found);
                                                       }) -
                                  all.begin());
}

constexpr std::string_view kReadiness =
    R"({"readinessProbe":{"httpGet":{"port":81,"path":"/ready"},"periodSeconds":2,"failureThreshold":2}})";

TEST(Readiness, FollowsItsProbe) {
  Running cluster(pod_with(kReadiness));
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "True");
  ASSERT_NE(cluster.host.last<AskHttp>(), nullptr);
  EXPECT_EQ(cluster.host.last<AskHttp>()->ask.url(), "http://" + cluster.machine.internal_ip + ":81/ready");
  EXPECT_EQ(cluster.host.last<AskHttp>()->timeout, seconds(1));
  cluster.host.set_http(81, 503);
  cluster.run(seconds(2));
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "True") << "one failure is not enough";
  cluster.run(seconds(3));
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "False");
  EXPECT_EQ(condition(cluster.pod("web"), "ContainersReady", "message"), "containers with unready status: [c]");
  EXPECT_TRUE(flag(status_of(cluster.pod("web"), "c"), "started"));
  ASSERT_FALSE(cluster.events("Unhealthy").empty());
  EXPECT_EQ(cluster.events("Unhealthy").front().string_at({"message"}),
            "Readiness probe failed: HTTP probe failed with statuscode: 503");
  EXPECT_EQ(restarts_in(cluster.pod("web")), 0);
  cluster.host.set_http(81, 200);
  cluster.run(seconds(3));
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "True");
}

TEST(Readiness, FollowsTheHealthOfAService) {
  Running cluster(pod_with(
      R"({"readinessProbe":{"grpc":{"port":81,"service":"shop"},"periodSeconds":2,"timeoutSeconds":3,"failureThreshold":1}})"));
  const auto said = [&](const std::string& message) {
    return std::ranges::any_of(cluster.events("Unhealthy"),
                               [&](const Json& event) { return event.string_at({"message"}) == message; });
  };
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "True");
  ASSERT_NE(cluster.host.last<AskGrpc>(), nullptr);
  const AskGrpc asked = *cluster.host.last<AskGrpc>();
  EXPECT_EQ(asked.host, cluster.machine.internal_ip);
  EXPECT_EQ(asked.port, 81);
  EXPECT_EQ(asked.service, "shop");
  EXPECT_EQ(asked.timeout, seconds(3));
  cluster.host.set_http(81, 2);
  cluster.run(seconds(3));
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "False");
  EXPECT_TRUE(said("Readiness probe failed: service unhealthy (responded with \"NOT_SERVING\")"));
  cluster.host.set_http(81, 0);
  cluster.run(seconds(3));
  EXPECT_TRUE(said("Readiness probe failed: timeout: failed to connect service \"" + cluster.machine.internal_ip +
                   ":81\" within 3s: context deadline exceeded"));
  cluster.host.set_http(81, 1);
  cluster.run(seconds(3));
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "True");
}

TEST(Readiness, IsAskedForAsSoonAsTheContainerHasStarted) {
  Running cluster(pod_with(R"({"readinessProbe":{"tcpSocket":{"port":81},"periodSeconds":3600}})"), seconds(1));
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "True");
}

TEST(Readiness, EndsWithAGateThatIsShut) {
  Json document = pod_document({.name = "web"});
  document.make({"spec", "readinessGates"}) = parsed(R"([{"conditionType":"example.com/lb"}])");
  Running cluster(document);
  EXPECT_EQ(condition(cluster.pod("web"), "ContainersReady"), "True");
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "False");
  EXPECT_EQ(condition(cluster.pod("web"), "Ready", "message"),
            "corresponding condition of pod readiness gate \"example.com/lb\" does not exist.");
  Json pod = cluster.pod("web");
  pod.at({"status", "conditions"})->if_array()->push_back(parsed(R"({"type":"example.com/lb","status":"True"})"));
  cluster.put(std::move(pod));
  cluster.run(seconds(1));
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "True");
}

TEST(Liveness, FailuresRestartTheContainerWithTheGraceOfTheProbe) {
  Running cluster(
      pod_with(R"({"livenessProbe":{"tcpSocket":{"port":81},"periodSeconds":1,"terminationGracePeriodSeconds":5}})"));
  EXPECT_EQ(restarts_in(cluster.pod("web")), 0);
  cluster.host.set_http(81, 0);
  cluster.run(milliseconds(3500));
  ASSERT_NE(cluster.host.last<StopContainer>(), nullptr);
  EXPECT_EQ(cluster.host.last<StopContainer>()->grace, seconds(5));
  EXPECT_EQ(restarts_in(cluster.pod("web")), 1) << "the first restart is immediate";
  ASSERT_EQ(cluster.events("Killing").size(), 1u);
  EXPECT_EQ(cluster.events("Killing").front().string_at({"message"}),
            "Container c failed liveness probe, will be restarted");
  cluster.host.set_http(81, 200);
  cluster.run(minutes(2));
  EXPECT_EQ(restarts_in(cluster.pod("web")), 1);
}

TEST(Liveness, EndsAPodThatNeverRestarts) {
  Running cluster(pod_with(R"({"livenessProbe":{"tcpSocket":{"port":81},"periodSeconds":1}})",
                           {.name = "web", .restart_policy = "Never"}));
  cluster.host.set_http(81, 0);
  cluster.run(seconds(6));
  EXPECT_EQ(cluster.phase("web"), "Failed");
}

TEST(Liveness, RunsCommandsInTheContainer) {
  Running cluster(pod_with(R"x({"env":[{"name":"A","value":"x"}],
      "livenessProbe":{"exec":{"command":["check","$(A)","$(B)"]},"periodSeconds":1}})x"));
  ASSERT_NE(cluster.host.last<RunInContainer>(), nullptr);
  EXPECT_EQ(cluster.host.last<RunInContainer>()->argv, (std::vector<std::string>{"check", "x", "$(B)"}));
  EXPECT_EQ(cluster.host.last<RunInContainer>()->timeout, seconds(1));
  cluster.host.set_command_code(3);
  cluster.run(seconds(4));
  ASSERT_FALSE(cluster.events("Unhealthy").empty());
  EXPECT_EQ(cluster.events("Unhealthy").front().string_at({"message"}), "Liveness probe failed: said");
  EXPECT_EQ(restarts_in(cluster.pod("web")), 1);
}

TEST(Liveness, ACommandThatNoProgramTakesIsNotMade) {
  const std::string value(100'000, 'x');
  const std::string long_word = R"x("$(A)$(A)")x";
  std::string words = R"x("$(A)")x";
  for (int i = 0; i < 21; ++i) words += R"x(,"$(A)")x";
  for (const std::string& command : {long_word, words}) {
    Running cluster(pod_with(fmt::format(R"({{"env":[{{"name":"A","value":"{}"}}],
        "livenessProbe":{{"exec":{{"command":["check",{}]}},"periodSeconds":1}}}})",
                                         value, command)));
    cluster.run(seconds(5));
    EXPECT_EQ(cluster.host.last<RunInContainer>(), nullptr);
  }
}

TEST(Startup, HoldsTheOtherProbesBack) {
  ScriptedCluster cluster;
  cluster.host.set_http(81, 0);
  cluster.put(pod_with(R"({"startupProbe":{"tcpSocket":{"port":81},"periodSeconds":1,"failureThreshold":30},)"
                       R"("livenessProbe":{"httpGet":{"port":82},"periodSeconds":1}})"));
  cluster.start();
  cluster.run(seconds(10));
  EXPECT_EQ(cluster.host.count<AskHttp>(), 0u);
  EXPECT_FALSE(flag(status_of(cluster.pod("web"), "c"), "started"));
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "False");
  cluster.host.set_http(81, 200);
  cluster.run(seconds(3));
  EXPECT_GT(cluster.host.count<AskHttp>(), 0u);
  EXPECT_TRUE(flag(status_of(cluster.pod("web"), "c"), "started"));
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "True");
}

TEST(Probes, WithoutAnAnswerAreNotSentAgain) {
  Running cluster(pod_with(kReadiness));
  const std::size_t before = cluster.host.count<AskHttp>();
  cluster.host.set_silent(true);
  cluster.run(seconds(60));
  cluster.host.set_silent(false);
  EXPECT_LE(cluster.host.count<AskHttp>(), before + 1);
}

TEST(Probes, EndWithTheirPod) {
  Running cluster(pod_with(kReadiness));
  cluster.delete_pod("web", 30);
  cluster.run(seconds(2));
  cluster.host.take_commands();
  cluster.run(minutes(1));
  EXPECT_EQ(cluster.host.count<AskHttp>(), 0u);
}

TEST(PostStart, IsOverBeforeTheContainerCountsAsStarted) {
  Json document = pod_with(R"({"lifecycle":{"postStart":{"sleep":{"seconds":5}}}})");
  document.at({"spec", "containers"})->if_array()->push_back(parsed(R"({"name":"second","command":["run"]})"));
  Running cluster(document, seconds(3));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "c"));
  EXPECT_FALSE(cluster.host.is_running("uid-web", "second"));
  EXPECT_EQ(cluster.phase("web"), "Pending");
  cluster.run(seconds(3));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "second"));
  EXPECT_EQ(condition(cluster.pod("web"), "Ready"), "True");
}

TEST(PostStart, ThatFailsEndsTheContainer) {
  ScriptedCluster cluster;
  cluster.host.set_http(81, 0);
  cluster.put(pod_with(R"({"lifecycle":{"postStart":{"httpGet":{"port":81}}}})"));
  cluster.start();
  cluster.run(seconds(1));
  ASSERT_FALSE(cluster.events("FailedPostStartHook").empty());
  EXPECT_EQ(cluster.events("FailedPostStartHook").front().string_at({"message"}), "PostStartHook failed");
  EXPECT_GE(cluster.host.count<StopContainer>(), 1u);
  cluster.host.set_http(81, 500);
  cluster.run(seconds(30));
  EXPECT_EQ(cluster.phase("web"), "Running") << "an answer is enough, whatever it says";
}

TEST(PostStart, ThatRunsACommandSaysWhatFailed) {
  ScriptedCluster cluster;
  cluster.host.set_command_code(2);
  cluster.host.set_stubborn(true);
  cluster.put(pod_with(R"({"lifecycle":{"postStart":{"exec":{"command":["warm","up"]}}}})"));
  cluster.start();
  cluster.run(seconds(1));
  const Json pod = cluster.pod("web");
  EXPECT_EQ(status_of(pod, "c").string_at({"state", "waiting", "reason"}), "PostStartHookError");
  EXPECT_EQ(status_of(pod, "c").string_at({"state", "waiting", "message"}),
            "Exec lifecycle hook ([warm up]) for Container \"c\" in Pod \"web_shop(uid-web)\" failed - error: command "
            "'warm up' exited with 2: said");
}

TEST(PreStop, TakesItsTimeFromTheGrace) {
  Running cluster(pod_with(R"({"lifecycle":{"preStop":{"sleep":{"seconds":4}}}})"));
  cluster.delete_pod("web", 10);
  cluster.run(seconds(3));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "c"));
  EXPECT_EQ(cluster.host.count<StopContainer>(), 0u);
  cluster.run(seconds(2));
  ASSERT_EQ(cluster.host.count<StopContainer>(), 1u);
  EXPECT_EQ(cluster.host.last<StopContainer>()->grace, seconds(6));
  cluster.run(seconds(2));
  EXPECT_TRUE(cluster.pod("web").is_null());
}

TEST(PreStop, ThatIsNotOverInTimeIsNotWaitedFor) {
  Running cluster(pod_with(R"({"lifecycle":{"preStop":{"sleep":{"seconds":60}}}})"));
  cluster.delete_pod("web", 5);
  cluster.run(seconds(6));
  ASSERT_EQ(cluster.host.count<StopContainer>(), 1u);
  EXPECT_EQ(cluster.host.last<StopContainer>()->grace, seconds(2));
}

TEST(PreStop, ThatFailsIsRecorded) {
  Running cluster(pod_with(R"({"lifecycle":{"preStop":{"httpGet":{"port":81}}}})"));
  cluster.host.set_http(81, 0);
  cluster.delete_pod("web", 10);
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.events("FailedPreStopHook").size(), 1u);
  EXPECT_TRUE(cluster.pod("web").is_null());
}

TEST(PreStop, DoesNotHoldUpAnEvictionThatCannotWait) {
  Running cluster(pod_with(R"({"lifecycle":{"preStop":{"sleep":{"seconds":4}}}})"));
  cluster.host.set_working_set("uid-web", mebibytes(800));
  cluster.host.set_available(mebibytes(10));
  cluster.run(seconds(12));
  EXPECT_EQ(cluster.phase("web"), "Failed");
  EXPECT_EQ(cluster.host.count<StopContainer>(), 0u);
  EXPECT_GE(cluster.host.count<StopPod>(), 1u);
}

TEST(PreStop, RunsBeforeALivenessRestart) {
  Running cluster(pod_with(R"({"livenessProbe":{"tcpSocket":{"port":81},"periodSeconds":1,"failureThreshold":1},)"
                           R"("lifecycle":{"preStop":{"sleep":{"seconds":3}}}})"));
  cluster.host.set_http(81, 0);
  cluster.run(milliseconds(2500));
  EXPECT_EQ(cluster.events("Killing").size(), 1u);
  EXPECT_EQ(cluster.host.count<StopContainer>(), 0u);
  cluster.host.set_http(81, 200);
  cluster.run(seconds(4));
  ASSERT_EQ(cluster.host.count<StopContainer>(), 1u);
  EXPECT_EQ(cluster.host.last<StopContainer>()->grace, seconds(27));
  EXPECT_EQ(restarts_in(cluster.pod("web")), 1);
}

constexpr std::string_view kSidecars = R"([
  {"name":"first","command":["proxy"],"restartPolicy":"Always","startupProbe":{"tcpSocket":{"port":81},"periodSeconds":1}},
  {"name":"once","command":["prepare"]},
  {"name":"second","command":["proxy"],"restartPolicy":"Always"}])";

TEST(Sidecars, StartInOrderAndStopInReverse) {
  Json document = pod_document({.name = "web"});
  document.make({"spec", "initContainers"}) = parsed(kSidecars);
  ScriptedCluster cluster;
  cluster.host.set_http(81, 0);
  cluster.put(document);
  cluster.start();
  cluster.run(seconds(2));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "first"));
  EXPECT_FALSE(cluster.host.is_running("uid-web", "once")) << "the startup probe has not succeeded";
  EXPECT_EQ(condition(cluster.pod("web"), "Initialized", "message"),
            "containers with incomplete status: [first once second]");
  cluster.host.set_http(81, 200);
  cluster.run(seconds(2));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "once"));
  EXPECT_FALSE(cluster.host.is_running("uid-web", "second"));
  cluster.send(cluster.host.exit("uid-web", "once", 0, cluster.now()));
  cluster.run(seconds(1));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "second"));
  EXPECT_TRUE(cluster.host.is_running("uid-web", "c"));
  EXPECT_EQ(condition(cluster.pod("web"), "Initialized"), "True");
  cluster.delete_pod("web", 30);
  cluster.run(seconds(2));
  const auto stop_of = [&](std::string name) {
    return position<StopContainer>(cluster, [&](const StopContainer& each) { return each.name == name; });
  };
  EXPECT_LT(stop_of("c"), stop_of("second"));
  EXPECT_LT(stop_of("second"), stop_of("first"));
  EXPECT_LT(stop_of("first"), cluster.host.commands().size());
  EXPECT_TRUE(cluster.pod("web").is_null());
}

TEST(Sidecars, AreStoppedWhenTheGraceOfTheOthersIsOver) {
  Json document = pod_document({.name = "web"});
  document.make({"spec", "initContainers"}) =
      parsed(R"([{"name":"mesh","command":["proxy"],"restartPolicy":"Always"}])");
  Running cluster(document, seconds(2));
  cluster.host.set_stubborn(true);
  cluster.delete_pod("web", 5);
  cluster.run(seconds(4));
  EXPECT_EQ(cluster.host.count<StopContainer>(), 1u);
  cluster.run(seconds(5));
  EXPECT_GE(cluster.host.count<StopContainer>(), 2u);
  cluster.run(seconds(5));
  EXPECT_TRUE(cluster.pod("web").is_null());
}

TEST(Sidecars, DoNotKeepAFinishedPodAlive) {
  Json document = pod_document({.name = "job", .restart_policy = "Never"});
  document.make({"spec", "initContainers"}) =
      parsed(R"([{"name":"mesh","command":["proxy"],"restartPolicy":"Always"}])");
  Running cluster(document, seconds(2));
  cluster.exit("job", 0);
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.phase("job"), "Succeeded");
  EXPECT_FALSE(cluster.host.is_running("uid-job", "mesh"));
}

}  // namespace
}  // namespace spillway::agent
