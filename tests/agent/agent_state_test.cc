// Goal: /debug/spillway shows the state of every part of an agent, the same twice, at any time.
#include "agent/scripted_cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace spillway::agent {
namespace {

using api::Json;

/// Paths of all members. Elements of a list share one.
void collect(const Json& value, const std::string& at, std::set<std::string>& paths) {
  if (const Json::Object* members = value.if_object()) {
    for (const auto& [name, member] : *members) {
      const std::string path = at.empty() ? std::string(name) : fmt::format("{}.{}", at, name);
      paths.insert(path);
      collect(member, path, paths);
    }
  } else if (const Json::Array* elements = value.if_array()) {
    for (const Json& each : *elements) collect(each, at + "[]", paths);
  } else if (const auto number = value.if_double()) {
    EXPECT_TRUE(std::isfinite(*number)) << at;
  }
}

std::set<std::string> paths_of(const Json& state) {
  std::set<std::string> paths;
  collect(state, "", paths);
  return paths;
}

std::set<std::string> parts_of(const Json& state) {
  std::set<std::string> parts;
  for (const auto& [name, part] : *state.if_object()) parts.emplace(name);
  return parts;
}

AgentOptions busy_options() {
  AgentOptions options = node_options();
  options.static_pod_path = "/etc/pods";
  options.shutdown = {.grace_seconds = 30, .critical_grace_seconds = 10, .by_priority = {}};
  return options;
}

Json gpu_pod() {
  Json document = pod_document({.name = "gpu"});
  Json& container = document.at({"spec", "containers"})->if_array()->front();
  container.make({"resources", "limits"})["example.com/gpu"] = "1";
  container.make({"resources", "requests"})["example.com/gpu"] = "1";
  return document;
}

const std::set<std::string> kParts{"admission",  "allocatable", "api",        "caches",   "containerGarbage",
                                   "events",     "eviction",    "heartbeats", "lease",    "managers",
                                   "node",       "pods",        "resizes",    "shutdown", "staticPods",
                                   "statistics", "statuses",    "volumes"};

TEST(AgentState, NamesEveryPartBeforeAnythingHasHappened) {
  ScriptedCluster cluster;
  cluster.start();
  EXPECT_EQ(parts_of(cluster.agent().state(cluster.now())), kParts);
}

TEST(AgentState, ShowsWhatEveryPartIsDoing) {
  ScriptedCluster cluster(busy_options());
  cluster.start();
  cluster.run(seconds(1));
  cluster.send(PluginRegistered{1, "example.com/gpu", {}});
  cluster.send(PluginListed{1, {{"gpu0", true, {}}, {"gpu1", false, {}}}});
  cluster.put(gpu_pod());
  cluster.put(pod_document({.name = "web", .memory_request = "16Mi"}));
  Json manifest = pod_document({.name = "proxy"});
  manifest["metadata"].if_object()->erase("uid");
  cluster.send(StaticManifests{{{"/etc/pods/proxy.yaml", std::move(manifest)}}, {}});
  cluster.run(seconds(15));
  cluster.host.set_available(mebibytes(50));
  cluster.host.set_immortal("uid-web");
  cluster.host.set_working_set("uid-gpu", mebibytes(1));  // a pod without figures would go first
  cluster.host.set_working_set("uid-web", mebibytes(500));
  cluster.run(seconds(3));

  const Json state = cluster.agent().state(cluster.now());
  EXPECT_EQ(parts_of(state), kParts);
  const std::set<std::string> paths = paths_of(state);
  for (const char* path :
       {"allocatable.pods.enforced", "caches.pods.objects", "containerGarbage.running", "eviction.victims[].pod",
        "eviction.observationAgeSeconds", "lease.renewalAgeSeconds",
        "managers.devices.held.uid-gpu.c.example.com/gpu.devices", "managers.devices.resources.example.com/gpu.healthy",
        "node.reportAgeSeconds", "pods[].containers.c.restarts", "shutdown.groups[].graceSeconds",
        "staticPods.pods.shop/proxy-n1.mirrored", "statistics.ageSeconds.node", "statuses.inFlight"}) {
    EXPECT_TRUE(paths.contains(path)) << path;
  }
  EXPECT_EQ(state.string_at({"node", "status"}), "idle");
  EXPECT_EQ(state.at({"eviction", "victims"})->if_array()->front().string_at({"pod"}), "shop/web");
  EXPECT_EQ(api::to_text(state), api::to_text(cluster.agent().state(cluster.now())));
}

TEST(AgentState, ShowsWhoWaitsForAdmission) {
  ScriptedCluster cluster;
  cluster.start();
  cluster.run(seconds(1));
  cluster.put(pod_document({.name = "small", .memory_request = "700Mi"}));
  cluster.run(seconds(1));
  cluster.host.set_stubborn(true);
  cluster.put(pod_document({.name = "critical", .memory_request = "700Mi", .priority = 2'000'001'000}));
  cluster.run(seconds(1));
  cluster.put(pod_document({.name = "behind", .memory_request = "1Mi"}));
  cluster.run(seconds(1));
  const Json state = cluster.agent().state(cluster.now());
  EXPECT_EQ(state.string_at({"admission", "preemption", "newcomer"}), "uid-critical");
  EXPECT_EQ(api::to_text(*state.at({"admission", "preemption", "victims"})), R"(["uid-small"])");
  EXPECT_EQ(api::to_text(*state.at({"admission", "waiting"})), R"(["uid-behind"])");
}

}  // namespace
}  // namespace spillway::agent
