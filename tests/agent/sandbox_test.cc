// Goal: a pod that lost its sandbox gets another one, and its containers run again in it, in their order, once each; a
// pod that must not run again ends; the sandbox is requested with the handler of its RuntimeClass. The machine is
// scripted.
#include "agent/cri/runtime_status.h"
#include "agent/scripted_cluster.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace spillway::agent {
namespace {

using api::Json;

class Sandboxes : public ::testing::Test {
 protected:
  Sandboxes() {
    cluster_.machine.runs_images = true;
    cluster_.machine.shared_namespaces = {.ipc = false, .net = false};
  }

  void begin(Json pod) {
    cluster_.put(std::move(pod));
    cluster_.start();
    cluster_.run(seconds(5));
  }

  void lose() { cluster_.send(SandboxLost{"uid-web"}); }

  /// Loses the sandbox with a container that ends with it: the loss is reported first.
  void lose_with(const std::string& container) {
    const HostEvent end = cluster_.host.exit("uid-web", container, 137, cluster_.now());
    lose();
    cluster_.send(end);
  }

  Json status(std::string_view list = "containerStatuses") const {
    const Json pod = cluster_.pod("web");
    const Json* found = pod.at({"status", list});
    return found == nullptr ? Json() : found->if_array()->front();
  }

  std::vector<std::string> started() const {
    std::vector<std::string> names;
    for (const HostCommand& each : cluster_.host.commands()) {
      if (const auto* start = std::get_if<StartContainer>(&each)) names.push_back(start->name);
    }
    return names;
  }

  ScriptedCluster cluster_;
};

Json with_init(Json pod) {
  pod["spec"]["initContainers"] = api::parse_json(R"([{"name":"i","image":"none","command":["x"]}])").value();
  return pod;
}

Json sealed_class() {
  return api::parse_json(R"({"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"sealed"},
                             "handler":"kata"})")
      .value();
}

TEST_F(Sandboxes, ALostOneIsReplacedAndItsContainersRunAgain) {
  begin(pod_document({.name = "web"}));
  ASSERT_EQ(cluster_.phase("web"), "Running");
  cluster_.run(seconds(60));
  cluster_.host.take_commands();
  lose();
  cluster_.run(seconds(2));
  EXPECT_EQ(cluster_.host.count<StopContainer>(), 1u) << "what still runs in it ends";
  EXPECT_EQ(cluster_.host.count<RunSandbox>(), 1u);
  EXPECT_EQ(started(), std::vector<std::string>{"c"});
  EXPECT_EQ(status().find("restartCount")->if_int64(), 1);
  EXPECT_EQ(cluster_.phase("web"), "Running");
  EXPECT_EQ(cluster_.pod("web").string_at({"status", "podIP"}), "10.0.0.2") << "it has another address";
  bool taken_out = false;  // the list was removed: such lists are merged
  for (const api::Request& each : cluster_.api.requests())
    taken_out = taken_out || each.body.contains(R"("podIPs":[{"ip":"10.0.0.2"},{"$patch":"delete","ip":"10.0.0.1"}])");
  EXPECT_TRUE(taken_out);
  ASSERT_EQ(cluster_.events("SandboxChanged").size(), 1u);
  EXPECT_EQ(cluster_.host.count<StopPod>(), 0u);
}

/// A pod whose sandbox cannot be made is not ready to start containers, whatever else it has.
TEST_F(Sandboxes, WithoutOneThePodIsNotReadyToStartContainers) {
  const auto ready = [this] {
    const Json pod = cluster_.pod("web");
    for (const Json& each : *pod.at({"status", "conditions"})->if_array()) {
      if (each.string_at({"type"}) == "PodReadyToStartContainers") return std::string(each.string_at({"status"}));
    }
    return std::string();
  };
  cluster_.host.set_sandbox_problem("plugin type=\"bridge\" failed");
  begin(pod_document({.name = "web"}));
  EXPECT_EQ(ready(), "False");
  cluster_.host.set_sandbox_problem("");
  cluster_.run(minutes(1));
  EXPECT_EQ(ready(), "True");
  EXPECT_EQ(cluster_.phase("web"), "Running");
}

TEST_F(Sandboxes, ContainersThatEndedWithItStartAgainAtOnce) {
  begin(pod_document({.name = "web"}));
  cluster_.run(seconds(60));
  cluster_.host.take_commands();
  lose_with("c");
  cluster_.run(seconds(2));
  EXPECT_EQ(cluster_.host.count<RunSandbox>(), 1u);
  EXPECT_EQ(started(), std::vector<std::string>{"c"});
  EXPECT_EQ(cluster_.phase("web"), "Running");
  EXPECT_TRUE(cluster_.events("BackOff").empty());
}

TEST_F(Sandboxes, InitContainersRunAgain) {
  begin(with_init(pod_document({.name = "web"})));
  cluster_.send(cluster_.host.exit("uid-web", "i", 0, cluster_.now()));
  cluster_.run(seconds(60));
  ASSERT_EQ(started(), (std::vector<std::string>{"i", "c"}));
  cluster_.host.take_commands();
  lose();
  cluster_.run(seconds(2));
  EXPECT_EQ(started(), std::vector<std::string>{"i"});
  EXPECT_EQ(status("initContainerStatuses").find("restartCount")->if_int64(), 1);
  cluster_.send(cluster_.host.exit("uid-web", "i", 0, cluster_.now()));
  cluster_.run(seconds(2));
  EXPECT_EQ(started(), (std::vector<std::string>{"i", "c"}));
  EXPECT_EQ(cluster_.host.count<RunSandbox>(), 1u);
  EXPECT_EQ(status().find("restartCount")->if_int64(), 1);
}

TEST_F(Sandboxes, APodThatNeverRestartsEndsWithIt) {
  begin(pod_document({.name = "web", .restart_policy = "Never"}));
  cluster_.host.take_commands();
  lose();
  cluster_.run(seconds(5));
  EXPECT_EQ(cluster_.host.count<StopPod>(), 1u);
  EXPECT_EQ(cluster_.host.count<RunSandbox>(), 0u);
  EXPECT_EQ(cluster_.phase("web"), "Failed");
  EXPECT_TRUE(cluster_.events("SandboxChanged").empty());
}

TEST_F(Sandboxes, WhoLosesItAgainAndAgainWaits) {
  begin(pod_document({.name = "web"}));
  cluster_.host.take_commands();
  for (int i = 0; i < 30; ++i) {
    lose_with("c");
    cluster_.run(seconds(2));
  }
  EXPECT_LE(cluster_.host.count<RunSandbox>(), 5u) << "in a minute: at once, after 10, 20, 40 seconds";
  EXPECT_GE(cluster_.host.count<RunSandbox>(), 3u);
}

TEST_F(Sandboxes, InitContainersDoNotShortenTheWait) {
  begin(with_init(pod_document({.name = "web"})));
  cluster_.host.take_commands();
  for (int i = 0; i < 60; ++i) {
    lose_with("i");
    cluster_.run(seconds(1));
  }
  EXPECT_LE(cluster_.host.count<RunSandbox>(), 5u);
  EXPECT_GE(cluster_.host.count<RunSandbox>(), 3u);
}

TEST_F(Sandboxes, AContainerOnItsWayIsWaitedFor) {
  begin(pod_document({.name = "web"}));
  cluster_.run(seconds(60));
  const HostEvent end = cluster_.host.exit("uid-web", "c", 1, cluster_.now());
  cluster_.host.set_silent(true);  // the next start is not answered
  cluster_.send(end);
  cluster_.run(milliseconds(500));
  cluster_.host.set_silent(false);
  cluster_.host.take_commands();
  lose();
  cluster_.run(seconds(2));
  EXPECT_EQ(cluster_.host.count<RunSandbox>(), 0u);
  cluster_.send(ContainerStartFailed{"uid-web", "c", 1, "CreateContainerError", "the pod has no sandbox"});
  cluster_.run(seconds(1));
  EXPECT_EQ(cluster_.host.count<RunSandbox>(), 1u);
  EXPECT_EQ(cluster_.phase("web"), "Running");
  EXPECT_TRUE(cluster_.events("Failed").empty()) << "that it failed follows from the loss";
  EXPECT_TRUE(cluster_.events("BackOff").empty());
}

TEST_F(Sandboxes, ALossBeforeItsPodIsKnownCounts) {
  cluster_.machine.keeps_pods = true;
  cluster_.put(pod_document({.name = "web"}));
  cluster_.delay_answers([](const api::Request&) { return seconds(2); });
  cluster_.start();
  cluster_.send(PodsFound{{{.uid = "uid-web", .has_sandbox = true, .ips = {"10.0.0.1"}, .containers = {}}}});
  lose();
  cluster_.run(seconds(15));
  EXPECT_EQ(cluster_.host.count<RunSandbox>(), 1u);
  EXPECT_EQ(cluster_.phase("web"), "Running");
}

TEST_F(Sandboxes, TheHandlerOfItsRuntimeClassIsAskedFor) {
  cluster_.put(sealed_class());
  Json pod = pod_document({.name = "web"});
  pod["spec"]["runtimeClassName"] = "sealed";
  begin(std::move(pod));
  ASSERT_EQ(cluster_.host.count<RunSandbox>(), 1u);
  EXPECT_EQ(cluster_.host.last<RunSandbox>()->handler, "kata");
  EXPECT_EQ(cluster_.phase("web"), "Running");
}

TEST_F(Sandboxes, AnUnknownRuntimeClassIsReportedAndMayBeCreated) {
  Json pod = pod_document({.name = "web"});
  pod["spec"]["runtimeClassName"] = "sealed";
  begin(std::move(pod));
  EXPECT_EQ(cluster_.host.count<RunSandbox>(), 0u);
  const auto events = cluster_.events("FailedCreatePodSandBox");
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.front().string_at({"message"}),
            "Failed to create pod sandbox: runtimeclass.node.k8s.io \"sealed\" not found");
  cluster_.put(sealed_class());
  cluster_.run(seconds(15));
  EXPECT_EQ(cluster_.phase("web"), "Running");
}

TEST(RuntimeStatusText, NamesTheStateOfTheRuntimeAndFeaturesOfItsHandlers) {
  EXPECT_EQ(runtime_status(Json::object()), RuntimeStatus{});
  const std::string_view answer = R"({"status":{"conditions":[{"type":"RuntimeReady","status":true},
      {"type":"NetworkReady","reason":"NetworkPluginNotReady","message":"cni plugin not initialized"}]},
      "runtime_handlers":[{"features":{"recursive_read_only_mounts":true}},{"name":"kata","features":{"user_namespaces":true}},
      {"name":"old"}],"features":{}})";
  const RuntimeStatus status = runtime_status(api::parse_json(answer).value());
  EXPECT_EQ(status.problem, "");
  EXPECT_EQ(status.network_problem,
            "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin "
            "not initialized");
  const std::vector<RuntimeHandler> handlers = {
      {.name = "", .recursive_read_only_mounts = true}, {.name = "kata", .user_namespaces = true}, {.name = "old"}};
  EXPECT_EQ(status.handlers, handlers);
  EXPECT_EQ(status.supplemental_groups_policy, false) << "it says what it can, and this it cannot";
}

TEST(RuntimeStatusText, HasAsManyHandlersAsANodeCanCarry) {
  Json answer = Json::object({{"runtime_handlers", Json::array()}});
  for (int i = 0; i < 200; ++i)
    answer["runtime_handlers"].if_array()->push_back(Json::object({{"name", std::to_string(i)}}));
  EXPECT_EQ(runtime_status(answer).handlers.size(), kHandlersMax);
}

Json with_recursive_mount(Json pod, std::string_view mode) {
  pod["spec"]["volumes"] = api::parse_json(R"([{"name":"v","emptyDir":{}}])").value();
  Json& mounts = pod.at({"spec", "containers"})->if_array()->front()["volumeMounts"];
  mounts = api::parse_json(R"([{"name":"v","mountPath":"/v","readOnly":true}])").value();
  mounts.if_array()->front()["recursiveReadOnly"] = mode;
  return pod;
}

constexpr std::string_view kNotRecursive =
    "failed to resolve recursive read-only mode: volume \"v\" requested recursive read-only mode, but it is not "
    "supported by the runtime";

TEST_F(Sandboxes, MountsAreRecursivelyReadOnlyWhereTheHandlerCan) {
  cluster_.put(sealed_class());
  Json pod = with_recursive_mount(pod_document({.name = "web"}), "Enabled");
  pod["spec"]["runtimeClassName"] = "sealed";
  begin(std::move(pod));
  RuntimeReported report;
  report.handlers = {{.name = "", .recursive_read_only_mounts = true}, {.name = "kata"}};
  cluster_.send(report);
  cluster_.run(seconds(30));
  EXPECT_EQ(cluster_.host.count<StartContainer>(), 0u);
  EXPECT_EQ(status().string_at({"state", "waiting", "reason"}), "CreateContainerConfigError");
  EXPECT_EQ(status().string_at({"state", "waiting", "message"}), kNotRecursive);
  report.handlers.back().recursive_read_only_mounts = true;
  cluster_.send(report);
  cluster_.run(seconds(60));
  ASSERT_EQ(cluster_.host.count<StartContainer>(), 1u);
  EXPECT_TRUE(cluster_.host.last<StartContainer>()->volumes.front().recursively);
}

TEST_F(Sandboxes, MountsAreNotRecursiveWhereTheRuntimeDoesNotSupportIt) {
  begin(with_recursive_mount(pod_document({.name = "web"}), "IfPossible"));
  ASSERT_EQ(cluster_.host.count<StartContainer>(), 1u);
  EXPECT_FALSE(cluster_.host.last<StartContainer>()->volumes.front().recursively);
}

TEST_F(Sandboxes, AHandlerIsKnownAfterARestart) {
  cluster_.machine.keeps_pods = true;
  Json pod = with_recursive_mount(pod_document({.name = "web"}), "Enabled");
  pod["spec"]["runtimeClassName"] = "sealed";
  cluster_.put(std::move(pod));
  cluster_.start();
  RuntimeReported report;
  report.handlers = {{.name = "kata", .recursive_read_only_mounts = true}};
  cluster_.send(report);
  FoundPod found{.uid = "uid-web", .has_sandbox = true, .ips = {"10.0.0.1"}, .containers = {}};
  found.handler = "kata";
  cluster_.send(PodsFound{{found}});
  cluster_.run(seconds(15));
  EXPECT_EQ(cluster_.host.count<StartContainer>(), 1u);
}

TEST_F(Sandboxes, ProcessesHaveNoHandlers) {
  cluster_.machine.runs_images = false;
  cluster_.host.set_sandbox_problem("no runtime for \"kata\" is configured: this node runs processes");
  cluster_.put(sealed_class());
  Json pod = pod_document({.name = "web"});
  pod["spec"]["runtimeClassName"] = "sealed";
  begin(std::move(pod));
  EXPECT_EQ(cluster_.host.count<StartContainer>(), 0u);
  EXPECT_EQ(cluster_.events("FailedCreatePodSandBox").size(), 1u);
  EXPECT_EQ(cluster_.phase("web"), "Pending");
}

}  // namespace
}  // namespace spillway::agent
