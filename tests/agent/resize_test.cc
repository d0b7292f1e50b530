// Goal: a pod that runs gets other resources without a restart, the node never promises more than it has, and nothing
// of a resize is lost with the agent.
#include "agent/resizes/resource_book.h"
#include "agent/scripted_cluster.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;
using containers::ResizedResource;

Json cpu_and_memory(std::string_view cpu, std::string_view memory, std::string_view memory_limit = {}) {
  Json resources = Json::object({{"requests", Json::object({{"cpu", cpu}, {"memory", memory}})}});
  if (!memory_limit.empty()) resources.make({"limits", "memory"}) = memory_limit;
  return resources;
}

Json document_of(const std::string& name, Json resources) {
  Json pod = pod_document({.name = name});
  pod.make({"metadata", "generation"}) = 1;
  pod.at({"spec", "containers"})->if_array()->front()["resources"] = std::move(resources);
  return pod;
}

struct Resizes : ScriptedCluster {
  explicit Resizes(std::vector<Json> pods, AgentOptions options = node_options())
      : ScriptedCluster(std::move(options)) {
    for (Json& each : pods) put(std::move(each));
    start();
    run(seconds(1));
  }

  void resize(const std::string& name, Json resources) {
    Json changed = pod(name);
    changed.at({"spec", "containers"})->if_array()->front()["resources"] = std::move(resources);
    changed.make({"metadata", "generation"}) = changed.at({"metadata", "generation"})->if_int64().value() + 1;
    put(std::move(changed));
    run(seconds(1));
  }

  /// Status of the pod's condition; "" if the pod has no such condition.
  std::string condition(const std::string& name, std::string_view type, std::string_view member = "status") const {
    const Json object = pod(name);
    const Json* list = object.at({"status", "conditions"});
    if (list == nullptr) return {};
    for (const Json& each : *list->if_array()) {
      if (each.string_at({"type"}) == type) return std::string(each.string_at({member}));
    }
    return {};
  }

  Json container(const std::string& name) const {
    return pod(name).at({"status", "containerStatuses"})->if_array()->front();
  }

  std::string in_force(const std::string& name, std::string_view part, std::string_view resource) const {
    return std::string(container(name).string_at({"resources", part, resource}));
  }
};

TEST(Resize, AContainerThatRunsReportsWhatIsAllocatedAndInForce) {
  Resizes cluster({document_of("web", cpu_and_memory("500m", "64Mi", "128Mi")), pod_document({.name = "plain"})});
  const Json web = cluster.container("web");
  EXPECT_EQ(web.string_at({"allocatedResources", "cpu"}), "500m");
  EXPECT_EQ(web.string_at({"resources", "requests", "memory"}), "64Mi");
  EXPECT_EQ(web.string_at({"resources", "limits", "memory"}), "128Mi");
  const Json plain = cluster.container("plain");
  ASSERT_NE(plain.find("resources"), nullptr) << "the API server takes it for a node that can resize";
  EXPECT_EQ(plain.find("allocatedResources"), nullptr);
}

TEST(Resize, APodGrowsAndShrinksWithoutARestart) {
  Resizes cluster({document_of("web", cpu_and_memory("500m", "64Mi", "128Mi"))});
  cluster.resize("web", cpu_and_memory("1", "64Mi", "256Mi"));
  const ResizePod* command = cluster.host.last<ResizePod>();
  ASSERT_NE(command, nullptr);
  std::vector<containers::ResizeStep> steps = containers::resize_steps(command->pod, command->containers);
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0].container, "") << "the pod grows first";
  EXPECT_EQ(steps[1].container, "c");
  EXPECT_EQ(steps[1].amounts.memory_limit, mebibytes(256));
  EXPECT_EQ(steps[2].resource, ResizedResource::kCpu);
  EXPECT_EQ(steps[3].amounts.cpu_request_milli, 1000);
  EXPECT_EQ(cluster.in_force("web", "limits", "memory"), "256Mi");
  EXPECT_EQ(cluster.in_force("web", "requests", "cpu"), "1");
  EXPECT_EQ(cluster.pod("web").at({"status", "observedGeneration"})->if_int64(), 2);
  EXPECT_EQ(cluster.condition("web", "PodResizeInProgress"), "");
  EXPECT_EQ(cluster.condition("web", "PodResizePending"), "");
  EXPECT_EQ(cluster.events("ResizeStarted").size(), 1u);
  ASSERT_EQ(cluster.events("ResizeCompleted").size(), 1u);
  EXPECT_EQ(cluster.events("ResizeCompleted").front().string_at({"message"}),
            R"(Pod resize completed: {"containers":[{"name":"c","resources":{"limits":{"memory":"256Mi"},)"
            R"("requests":{"cpu":"1","memory":"64Mi"}}}],"generation":2})");
  cluster.resize("web", cpu_and_memory("250m", "32Mi", "64Mi"));
  command = cluster.host.last<ResizePod>();
  steps = containers::resize_steps(command->pod, command->containers);
  EXPECT_EQ(steps.front().container, "c") << "the pod shrinks last";
  EXPECT_TRUE(steps.front().lowers_memory);
  EXPECT_EQ(cluster.in_force("web", "limits", "memory"), "64Mi");
  EXPECT_EQ(cluster.host.count<StartContainer>(), 1u);
  EXPECT_EQ(cluster.container("web").find("restartCount")->if_int64(), 0);
}

TEST(Resize, WaitsForRoomAndGetsItWhenAPodHasEnded) {
  Resizes cluster(
      {document_of("small", cpu_and_memory("1", "64Mi")), document_of("large", cpu_and_memory("2", "64Mi"))});
  cluster.resize("small", cpu_and_memory("3", "64Mi"));
  EXPECT_EQ(cluster.host.count<ResizePod>(), 0u);
  EXPECT_EQ(cluster.condition("small", "PodResizePending", "reason"), "Deferred");
  EXPECT_EQ(cluster.condition("small", "PodResizePending", "message"),
            "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000");
  EXPECT_EQ(cluster.events("ResizeDeferred").size(), 1u);
  EXPECT_EQ(cluster.in_force("small", "requests", "cpu"), "1");
  cluster.run(minutes(10));
  EXPECT_EQ(cluster.events("ResizeDeferred").size(), 1u) << "a repeated try is no news";
  cluster.delete_pod("large", 1);
  cluster.run(seconds(5));
  EXPECT_EQ(cluster.condition("small", "PodResizePending"), "");
  EXPECT_EQ(cluster.in_force("small", "requests", "cpu"), "3");
}

TEST(Resize, RoomGoesToTheMoreImportantPod) {
  Json other = document_of("other", cpu_and_memory("500m", "64Mi"));
  other.make({"spec", "priority"}) = 100;
  Resizes cluster({document_of("early", cpu_and_memory("500m", "64Mi")), std::move(other),
                   document_of("large", cpu_and_memory("2500m", "64Mi"))});
  cluster.resize("early", cpu_and_memory("2", "64Mi"));
  cluster.resize("other", cpu_and_memory("2", "64Mi"));
  EXPECT_EQ(cluster.condition("early", "PodResizePending", "reason"), "Deferred");
  EXPECT_EQ(cluster.condition("other", "PodResizePending", "reason"), "Deferred");
  cluster.resize("large", cpu_and_memory("1500m", "64Mi"));
  cluster.run(seconds(5));
  EXPECT_EQ(cluster.in_force("large", "requests", "cpu"), "1500m") << "a shrink needs no room";
  EXPECT_EQ(cluster.in_force("other", "requests", "cpu"), "2");
  EXPECT_EQ(cluster.condition("early", "PodResizePending", "reason"), "Deferred");
}

TEST(Resize, APendingOneThatIsTakenBackIsForgotten) {
  Resizes cluster({document_of("web", cpu_and_memory("1", "64Mi"))});
  cluster.resize("web", cpu_and_memory("8", "64Mi"));
  EXPECT_EQ(cluster.condition("web", "PodResizePending", "reason"), "Deferred");
  cluster.resize("web", cpu_and_memory("1", "64Mi"));
  EXPECT_EQ(cluster.condition("web", "PodResizePending"), "");
  EXPECT_EQ(cluster.events("ResizeStarted").size(), 0u);
  EXPECT_EQ(cluster.host.count<ResizePod>(), 0u);
}

TEST(Resize, MemoryInUseIsAnErrorUntilItIsFree) {
  Resizes cluster({document_of("web", cpu_and_memory("1", "64Mi", "128Mi"))});
  cluster.host.set_resize_problem("cannot decrease memory limits: it is used");
  cluster.resize("web", cpu_and_memory("1", "64Mi", "100Mi"));
  EXPECT_EQ(cluster.condition("web", "PodResizeInProgress", "reason"), "Error");
  EXPECT_EQ(cluster.condition("web", "PodResizeInProgress", "message"), "cannot decrease memory limits: it is used");
  EXPECT_EQ(cluster.container("web").string_at({"allocatedResources", "memory"}), "64Mi");
  EXPECT_EQ(cluster.in_force("web", "limits", "memory"), "128Mi") << "not what is allocated";
  cluster.run(minutes(2));
  EXPECT_GE(cluster.host.count<ResizePod>(), 5u) << "it is tried again";
  EXPECT_EQ(cluster.events("ResizeError").size(), 1u);
  cluster.host.set_resize_problem("");
  cluster.run(minutes(1));
  EXPECT_EQ(cluster.condition("web", "PodResizeInProgress"), "");
  EXPECT_EQ(cluster.in_force("web", "limits", "memory"), "100Mi");
  EXPECT_EQ(cluster.events("ResizeCompleted").size(), 1u);
}

TEST(Resize, AnAgentThatIsKilledInTheMiddleFinishesIt) {
  ScriptedCluster cluster;
  cluster.machine.keeps_pods = true;
  cluster.put(document_of("web", cpu_and_memory("1", "64Mi", "128Mi")));
  cluster.start();
  cluster.send(PodsFound{});
  cluster.run(seconds(2));
  Json changed = cluster.pod("web");
  changed.at({"spec", "containers"})->if_array()->front()["resources"] = cpu_and_memory("1", "64Mi", "256Mi");
  changed.make({"metadata", "generation"}) = 2;
  cluster.host.set_silent_resize(true);
  cluster.put(std::move(changed));
  cluster.run(seconds(1));
  ASSERT_EQ(cluster.host.count<ResizePod>(), 1u);
  EXPECT_EQ(cluster.host.saved(kActuatedPodsFile)->find("uid-web"), std::string::npos) << "nothing is certain";
  EXPECT_NE(cluster.host.saved(kAllocatedPodsFile)->find("256Mi"), std::string::npos) << "saved before the command";
  cluster.restart();
  cluster.host.set_silent_resize(false);
  FoundContainer container;
  container.name = "c";
  container.container_id = "process://uid-web/c/0";
  container.image = "none";
  container.started_at = cluster.now().wall - seconds(1);
  cluster.send(PodsFound{{{.uid = "uid-web", .has_sandbox = true, .ips = {}, .containers = {container}}}});
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.host.count<ResizePod>(), 2u);
  EXPECT_EQ(cluster.host.count<StartContainer>(), 1u);
  const Json pod = cluster.pod("web");
  EXPECT_EQ(pod.at({"status", "containerStatuses"})->if_array()->front().string_at({"resources", "limits", "memory"}),
            "256Mi");
  EXPECT_NE(cluster.host.saved(kActuatedPodsFile)->find("256Mi"), std::string::npos);
}

// Goal: books that agree after a kill do not hide limits that an unanswered resize has written.
TEST(Resize, AnAgentThatIsKilledInTheMiddleOfAResizeThatIsTakenBackRepeatsTheLimits) {
  ScriptedCluster cluster;
  cluster.machine.keeps_pods = true;
  cluster.put(document_of("web", cpu_and_memory("1", "64Mi", "128Mi")));
  cluster.start();
  cluster.send(PodsFound{});
  cluster.run(seconds(2));
  cluster.host.set_silent_resize(true);
  for (const std::string_view limit : {"256Mi", "128Mi"}) {
    Json changed = cluster.pod("web");
    changed.at({"spec", "containers"})->if_array()->front()["resources"] = cpu_and_memory("1", "64Mi", limit);
    changed.make({"metadata", "generation"}) = changed.at({"metadata", "generation"})->if_int64().value() + 1;
    cluster.put(std::move(changed));
    cluster.run(seconds(1));
  }
  ASSERT_EQ(cluster.host.count<ResizePod>(), 1u);
  cluster.restart();
  Json unreported = cluster.pod("web");
  unreported.at({"status"})->erase({"conditions"});
  cluster.put(std::move(unreported));
  cluster.host.set_silent_resize(false);
  FoundContainer container;
  container.name = "c";
  container.container_id = "process://uid-web/c/0";
  container.image = "none";
  container.started_at = cluster.now().wall - seconds(1);
  cluster.send(PodsFound{{{.uid = "uid-web", .has_sandbox = true, .ips = {}, .containers = {container}}}});
  cluster.run(seconds(2));
  ASSERT_EQ(cluster.host.count<ResizePod>(), 2u);
  const ResizePod* command = cluster.host.last<ResizePod>();
  ASSERT_EQ(command->containers.size(), 1u);
  EXPECT_EQ(command->containers.front().after.memory_limit, mebibytes(128));
  EXPECT_EQ(command->pod.after.memory_limit, mebibytes(128));
  EXPECT_NE(cluster.host.saved(kActuatedPodsFile)->find("128Mi"), std::string::npos);
}

TEST(Resize, ADeferredOneSurvivesTheAgent) {
  ScriptedCluster cluster;
  cluster.machine.keeps_pods = true;
  cluster.put(document_of("web", cpu_and_memory("1", "64Mi")));
  cluster.start();
  cluster.send(PodsFound{});
  cluster.run(seconds(2));
  Json changed = cluster.pod("web");
  changed.at({"spec", "containers"})->if_array()->front()["resources"] = cpu_and_memory("8", "64Mi");
  changed.make({"metadata", "generation"}) = 2;
  cluster.put(std::move(changed));
  cluster.run(seconds(1));
  cluster.restart();
  FoundContainer container;
  container.name = "c";
  container.container_id = "process://uid-web/c/0";
  container.image = "none";
  container.started_at = cluster.now().wall - seconds(1);
  cluster.send(PodsFound{{{.uid = "uid-web", .has_sandbox = true, .ips = {}, .containers = {container}}}});
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.phase("web"), "Running") << "admitted with what is allocated, not with what it asks for";
  EXPECT_EQ(cluster.host.count<ResizePod>(), 0u);
  EXPECT_EQ(cluster.agent().pods().front().spec.containers.front().resources.requests.at("cpu").value(), 1);
}

TEST(Resize, IsCounted) {
  telemetry::Registry metrics;
  ScriptedCluster cluster;
  cluster.metrics = &metrics;
  cluster.put(document_of("web", cpu_and_memory("1", "64Mi")));
  cluster.start();
  cluster.run(seconds(1));
  Json changed = cluster.pod("web");
  changed.at({"spec", "containers"})->if_array()->front()["resources"] = cpu_and_memory("8", "32Mi");
  cluster.put(std::move(changed));
  cluster.run(seconds(1));
  const std::string text = metrics.text();
  for (const std::string_view line :
       {R"(kubelet_container_requested_resizes_total{operation="increase",requirement="requests",resource="cpu"} 1)",
        R"(kubelet_container_requested_resizes_total{operation="decrease",requirement="requests",resource="memory"} 1)",
        R"(kubelet_pod_pending_resizes{reason="deferred"} 1)", "kubelet_pod_in_progress_resizes 0"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(ResourceBook, SavesWhatItReads) {
  ResourceBook book(kAllocatedPodsFile);
  EXPECT_FALSE(book.take_save());
  containers::PodResources resources;
  resources.containers["c"].requests["cpu"] = api::Quantity::of_milli(100);
  resources.whole.emplace().limits["memory"] = api::Quantity::of_bytes(mebibytes(64));
  book.set("uid-a", resources);
  const auto saved = book.take_save();
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->file, "allocated_pods_state");
  EXPECT_FALSE(book.take_save()) << "nothing new";
  book.set("uid-a", resources);
  EXPECT_FALSE(book.take_save()) << "the same again";
  const auto again = ResourceBook::parse(kAllocatedPodsFile, saved->text);
  ASSERT_TRUE(again) << again.error().text();
  ASSERT_NE(again->find("uid-a"), nullptr);
  EXPECT_EQ(*again->find("uid-a"), resources);
  EXPECT_EQ(again->find("uid-b"), nullptr);
  std::string damaged = saved->text;
  damaged.replace(damaged.find("100m"), 4, "900m");
  EXPECT_FALSE(ResourceBook::parse(kAllocatedPodsFile, damaged));
  EXPECT_FALSE(ResourceBook::parse(kAllocatedPodsFile, "{"));
  EXPECT_TRUE(ResourceBook::parse(kAllocatedPodsFile, std::nullopt));
}

}  // namespace
}  // namespace spillway::agent
