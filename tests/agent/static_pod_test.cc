// Goal: pods of files run and end with their files whatever the API server says, and it is shown what runs.
#include "agent/static_pods/static_pod.h"

#include "agent/scripted_cluster.h"
#include "api/codec/codec.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;

const std::string kFile = "/etc/pods/proxy.yaml";
const std::string kMirror = "/api/v1/namespaces/shop/pods/proxy-n1";

AgentOptions options_with_path() {
  AgentOptions options = node_options();
  options.static_pod_path = "/etc/pods";
  return options;
}

Json manifest(const std::string& name, const std::string& memory = "64Mi") {
  Json pod = pod_document({.name = name, .memory_request = memory});
  pod["metadata"].if_object()->erase("uid");
  for (const char* key : {"nodeName", "priority"}) pod["spec"].if_object()->erase(key);
  pod.if_object()->erase("status");
  return pod;
}

struct Cluster : ScriptedCluster {
  Cluster() : ScriptedCluster(options_with_path()) {}

  void read(std::vector<StaticManifest> files) {
    send(StaticManifests{std::move(files), {}});
    run(seconds(1));
  }

  std::string uid() const {
    for (const api::Pod& pod : const_cast<Cluster*>(this)->agent().pods()) {
      if (pod.metadata.name == "proxy-n1") return pod.metadata.uid;
    }
    return {};
  }

  std::string_view mirrored() const {
    const Json* mirror = api.find(kMirror);
    return mirror == nullptr ? "" : mirror->string_at({"metadata", "annotations", "kubernetes.io/config.mirror"});
  }

  std::string_view mirror_uid() const { return api.find(kMirror)->string_at({"metadata", "uid"}); }
};

/// A node with static pods from files and from a URL.
struct TwoSources : ScriptedCluster {
  TwoSources() : ScriptedCluster(two_sources()) {
    start();
    run(seconds(1));
  }

  static AgentOptions two_sources() {
    AgentOptions options = options_with_path();
    options.static_pod_url = "http://h/pods";
    return options;
  }

  void give(ManifestSource source, std::vector<StaticManifest> files, std::string problem = {}) {
    send(StaticManifests{std::move(files), std::move(problem), source});
    run(seconds(5));
  }
};

struct Started : Cluster {
  Started() {
    start();
    run(seconds(1));
    read({{kFile, manifest("proxy")}});
  }
};

TEST(StaticPod, GetsUpstreamsMarks) {
  const auto made = make_static_pod(manifest("proxy"), {kFile}, "N1", WallTime());
  ASSERT_TRUE(made) << made.error().text();
  const api::Pod& pod = made->pod;
  EXPECT_EQ(pod.key(), (api::PodKey{"shop", "proxy-n1"}));
  EXPECT_EQ(pod.metadata.uid.size(), 32u);
  EXPECT_EQ(pod.metadata.annotations.at("kubernetes.io/config.source"), "file");
  EXPECT_EQ(pod.metadata.annotations.at("kubernetes.io/config.hash"), pod.metadata.uid);
  EXPECT_EQ(pod.metadata.annotations.at("kubernetes.io/config.seen"), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(pod.spec.node_name, "N1");
  EXPECT_EQ(pod.status.phase, "Pending");
  ASSERT_EQ(pod.spec.tolerations.size(), 1u);
  EXPECT_EQ(pod.spec.tolerations[0].effect, "NoExecute");
  EXPECT_EQ(pod.spec.tolerations[0].op, "Exists");
  EXPECT_TRUE(api::is_static(pod));
  EXPECT_TRUE(api::is_critical(pod));
}

TEST(StaticPod, UidFollowsContentNodeAndFileAlone) {
  const auto uid = [](const Json& document, const std::string& file, const std::string& node, int seen) {
    return make_static_pod(document, {file}, node, WallTime(seconds(seen))).value().pod.metadata.uid;
  };
  const std::string first = uid(manifest("proxy"), kFile, "n1", 0);
  EXPECT_EQ(uid(manifest("proxy"), kFile, "n1", 9), first);
  EXPECT_NE(uid(manifest("proxy", "65Mi"), kFile, "n1", 0), first);
  EXPECT_NE(uid(manifest("proxy"), "/etc/pods/other.yaml", "n1", 0), first);
  EXPECT_NE(uid(manifest("proxy"), kFile, "n2", 0), first);
  Json named = manifest("proxy");
  named["metadata"]["uid"] = "mine";
  EXPECT_EQ(uid(named, kFile, "n1", 0), first);
}

TEST(StaticPod, OfAnAddressHasOneUidOnEveryNode) {
  const auto made = [](const std::string& name, const std::string& url, const std::string& node) {
    return make_static_pod(manifest("proxy"), {name, ManifestSource::kUrl, url}, node, WallTime()).value();
  };
  const StaticPod first = made("http://h/pods#0", "http://h/pods", "n1");
  EXPECT_EQ(first.pod.metadata.annotations.at("kubernetes.io/config.source"), "http");
  EXPECT_TRUE(api::is_static(first.pod));
  EXPECT_EQ(made("http://h/pods#1", "http://h/pods", "n2").pod.metadata.uid, first.pod.metadata.uid);
  EXPECT_NE(made("http://h/pods#0", "http://h/other", "n1").pod.metadata.uid, first.pod.metadata.uid);
}

TEST(StaticPod, SaysWhatIsExpected) {
  const auto problem = [](const Json& document) {
    const auto made = make_static_pod(document, {kFile}, "n1", WallTime());
    return made ? std::string() : made.error().text();
  };
  EXPECT_EQ(problem(Json("text")), kFile + ": expected a Pod (apiVersion: v1, kind: Pod)");
  Json service = manifest("proxy");
  service["kind"] = "Service";
  EXPECT_EQ(problem(service), kFile + ": expected apiVersion v1 and kind Pod, got \"v1\" and \"Service\"");
  Json nameless = manifest("proxy");
  nameless["metadata"].if_object()->erase("name");
  EXPECT_EQ(problem(nameless), kFile + ": metadata.name: expected a name");
  Json empty = manifest("proxy");
  empty["spec"]["containers"] = Json::array();
  EXPECT_EQ(problem(empty), kFile + ": spec.containers: expected at least one container");
  Json twice = manifest("proxy");
  twice["spec"]["containers"] = Json::array(
      {*twice.at({"spec", "containers"})->if_array()->begin(), *twice.at({"spec", "containers"})->if_array()->begin()});
  EXPECT_EQ(problem(twice), kFile + ": spec.containers[1].name: is there twice: c");
  Json wrong = manifest("proxy");
  wrong["spec"]["terminationGracePeriodSeconds"] = "soon";
  EXPECT_NE(problem(wrong).find(kFile + ": "), std::string::npos);
  EXPECT_NE(problem(wrong).find("terminationGracePeriodSeconds"), std::string::npos) << problem(wrong);
}

TEST(StaticPod, RunsAndIsMirrored) {
  Started cluster;
  EXPECT_TRUE(cluster.host.is_running(cluster.uid(), "c"));
  EXPECT_EQ(cluster.mirrored(), cluster.uid());
  EXPECT_NE(cluster.mirror_uid(), cluster.uid());
  EXPECT_EQ(cluster.phase("proxy-n1"), "Running");
  const Json& owner = cluster.api.find(kMirror)->at({"metadata", "ownerReferences"})->if_array()->front();
  EXPECT_EQ(owner.string_at({"kind"}), "Node");
  EXPECT_EQ(owner.string_at({"uid"}), cluster.api.find("/api/v1/nodes/n1")->string_at({"metadata", "uid"}));
  EXPECT_EQ(cluster.host.count<CreatePod>(), 1u) << "the mirror is no pod of its own";
}

TEST(StaticPod, RunsWithoutAnApiServer) {
  Cluster cluster;
  bool away = true;
  cluster.api.set_fault([&](const api::Request&) -> std::optional<Result<api::Response>> {
    if (!away) return std::nullopt;
    return Result<api::Response>(make_error(ErrorCode::kServiceUnavailable, "away"));
  });
  cluster.start();
  cluster.read({{kFile, manifest("proxy")}});
  EXPECT_TRUE(cluster.host.is_running(cluster.uid(), "c"));
  away = false;
  cluster.run(minutes(2));
  EXPECT_EQ(cluster.mirrored(), cluster.uid());
  EXPECT_EQ(cluster.phase("proxy-n1"), "Running");
}

TEST(StaticPod, IsNotStartedWithoutTheUsersItAsksFor) {
  Cluster cluster;
  cluster.start();
  cluster.run(seconds(1));
  Json pod = manifest("proxy");
  pod["spec"]["hostUsers"] = false;
  cluster.read({{kFile, pod}});
  cluster.run(minutes(1));
  EXPECT_EQ(cluster.host.last<StartContainer>(), nullptr);
  EXPECT_EQ(cluster.phase("proxy-n1"), "Pending");
  ASSERT_EQ(cluster.events("Failed").size(), 1U);
  EXPECT_EQ(cluster.events("Failed").front().string_at({"message"}),
            "Error: hostUsers: false: this node gives pods no user namespace (--process-isolation=none)");
}

TEST(StaticPod, OutlivesItsMirror) {
  Started cluster;
  const std::string uid = cluster.uid();
  const std::string before(cluster.mirror_uid());
  cluster.remove(kMirror);
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.mirrored(), uid);
  EXPECT_NE(cluster.mirror_uid(), before);
  cluster.delete_pod("proxy-n1", 30);
  cluster.run(seconds(1));
  EXPECT_EQ(cluster.mirrored(), uid);
  EXPECT_EQ(cluster.phase("proxy-n1"), "Running");
  EXPECT_TRUE(cluster.host.is_running(uid, "c"));
  EXPECT_EQ(cluster.host.count<StopPod>(), 0u);
}

TEST(StaticPod, EndsBeforeItsSuccessorStarts) {
  Started cluster;
  const std::string before = cluster.uid();
  cluster.host.set_stubborn(true);
  cluster.read({{kFile, manifest("proxy", "65Mi")}});
  cluster.run(seconds(10));
  EXPECT_EQ(cluster.uid(), before);
  EXPECT_EQ(cluster.mirrored(), before);
  EXPECT_EQ(cluster.host.count<CreatePod>(), 1u);
  cluster.run(seconds(25));
  const std::string after = cluster.uid();
  EXPECT_NE(after, before);
  EXPECT_EQ(cluster.mirrored(), after);
  EXPECT_FALSE(cluster.host.is_running(before, "c"));
  EXPECT_TRUE(cluster.host.is_running(after, "c"));
  EXPECT_EQ(cluster.phase("proxy-n1"), "Running");
}

TEST(StaticPod, EndsWithItsFile) {
  Started cluster;
  const std::string uid = cluster.uid();
  cluster.read({});
  EXPECT_FALSE(cluster.host.is_running(uid, "c"));
  EXPECT_EQ(cluster.api.find(kMirror), nullptr);
  EXPECT_TRUE(cluster.agent().pods().empty());
  EXPECT_EQ(cluster.host.last<RemovePod>()->uid, uid);
  cluster.read({{kFile, manifest("proxy")}});
  EXPECT_TRUE(cluster.host.is_running(uid, "c")) << "the same file makes the same pod again";
}

TEST(StaticPod, ABadFileKeepsItsPodAndDisturbsNoOther) {
  Started cluster;
  const std::string uid = cluster.uid();
  cluster.read({{"/etc/pods/other.yaml", manifest("other")},
                {kFile, Result<Json>(invalid(kFile + ":3", "expected a mapping"))},
                {"/etc/pods/second.yaml", manifest("other")}});
  EXPECT_EQ(cluster.uid(), uid);
  EXPECT_TRUE(cluster.host.is_running(uid, "c"));
  EXPECT_EQ(cluster.phase("other-n1"), "Running");
  EXPECT_EQ(cluster.host.count<StopPod>(), 0u);
  EXPECT_EQ(cluster.agent().pods().size(), 2u) << "the second file of the same pod does not count";
}

TEST(StaticPod, FilesAndAnAddressDoNotTouchEachOther) {
  TwoSources cluster;
  cluster.give(ManifestSource::kFiles, {{kFile, manifest("proxy")}});
  cluster.give(ManifestSource::kUrl, {{"http://h/pods#0", manifest("far")}, {"http://h/pods#1", manifest("farther")}});
  EXPECT_EQ(cluster.phase("proxy-n1"), "Running");
  EXPECT_EQ(cluster.phase("far-n1"), "Running");
  cluster.give(ManifestSource::kUrl, {}, "http://h/pods: 500");
  EXPECT_EQ(cluster.phase("far-n1"), "Running") << "an address that does not answer keeps its pods";
  Json wrong = manifest("farther");
  wrong["spec"]["containers"] = Json::array();
  cluster.give(ManifestSource::kUrl, {{"http://h/pods#0", manifest("new")}, {"http://h/pods#1", wrong}});
  EXPECT_EQ(cluster.agent().pods().size(), 3u) << "a list with a wrong pod changes nothing";
  cluster.give(ManifestSource::kUrl, {{"http://h/pods#0", manifest("proxy")}});
  cluster.run(minutes(1));
  EXPECT_EQ(cluster.agent().pods().size(), 1u) << "the pod of the file counts";
  cluster.give(ManifestSource::kFiles, {});
  cluster.run(minutes(1));
  EXPECT_EQ(cluster.phase("proxy-n1"), "Running") << "now the address has it";
}

TEST(StaticPod, MirrorsStayUntilEverySourceHasAnswered) {
  TwoSources cluster;
  Json stale = manifest("old-n1");
  stale.make({"metadata", "annotations", "kubernetes.io/config.mirror"}) = "gone";
  stale["spec"]["nodeName"] = "n1";
  cluster.put(stale);
  cluster.give(ManifestSource::kFiles, {{kFile, manifest("proxy")}});
  cluster.give(ManifestSource::kUrl, {}, "http://h/pods: connection refused");
  EXPECT_FALSE(cluster.pod("old-n1").is_null());
  EXPECT_NE(cluster.api.find(kMirror), nullptr) << "a pod that is known is mirrored all the same";
  cluster.give(ManifestSource::kUrl, {});
  EXPECT_TRUE(cluster.pod("old-n1").is_null());
}

TEST(StaticPod, UnreadableDirectoryChangesNothing) {
  Started cluster;
  cluster.send(StaticManifests{{}, "/etc/pods: not allowed"});
  cluster.run(seconds(1));
  EXPECT_TRUE(cluster.host.is_running(cluster.uid(), "c"));
}

TEST(StaticPod, MirrorsOfFormerFilesGoOnceTheFilesAreRead) {
  Cluster cluster;
  Json stale = manifest("old-n1");
  stale.make({"metadata", "annotations", "kubernetes.io/config.mirror"}) = "gone";
  stale["spec"]["nodeName"] = "n1";
  cluster.put(stale);
  cluster.start();
  cluster.run(seconds(30));
  EXPECT_FALSE(cluster.pod("old-n1").is_null());
  EXPECT_EQ(cluster.host.count<CreatePod>(), 0u);
  cluster.read({});
  EXPECT_TRUE(cluster.pod("old-n1").is_null());
}

TEST(StaticPod, IsTakenUpAgainByTheNextAgent) {
  Started cluster;
  const std::string uid = cluster.uid();
  const std::string mirror(cluster.mirror_uid());
  cluster.restart();
  cluster.run(seconds(1));
  cluster.read({{kFile, manifest("proxy")}});
  EXPECT_EQ(cluster.uid(), uid);
  EXPECT_EQ(cluster.mirror_uid(), mirror) << "the same content keeps its mirror";
  EXPECT_EQ(cluster.phase("proxy-n1"), "Running");
}

TEST(StaticPod, MakesRoomForItself) {
  Cluster cluster;
  cluster.put(pod_document({.name = "small", .memory_request = "300Mi"}));
  cluster.put(pod_document({.name = "large", .memory_request = "500Mi"}));
  cluster.start();
  cluster.run(seconds(1));
  ASSERT_EQ(cluster.phase("large"), "Running");
  cluster.read({{kFile, manifest("proxy", "600Mi")}});
  EXPECT_TRUE(cluster.host.is_running(cluster.uid(), "c"));
  EXPECT_EQ(cluster.phase("large"), "Failed");
  EXPECT_EQ(cluster.pod("large").string_at({"status", "reason"}), "Preempting");
  EXPECT_EQ(cluster.phase("small"), "Running");
}

}  // namespace
}  // namespace spillway::agent
