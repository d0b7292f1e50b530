// Behaviour that `--compat v1.7` restores, with the real API server.
#include "controllers/controller_set.h"
#include "controllers/test_cluster.h"
#include "policy/lifecycle/lines/kubernetes_line.h"
#include "telemetry/log_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
using lifecycle::EvictionMode;
using lifecycle::Line;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;

const std::string kPods = "/api/v1/namespaces/default/pods";

class OldLines : public ::testing::Test {
 protected:
  void start(EvictionMode mode, int nodes) {
    const lifecycle::Profile profile = lifecycle::upstream_profile(Line::kV1_7, mode);
    options.node_lifecycle.profile = profile;
    options.node_lifecycle.monitor.health.node_monitor_grace_period =
        lifecycle::defaults_of(Line::kV1_7).node_monitor_grace_period;
    options.taint_eviction.profile = profile;
    options.taint_eviction.start_hold = Duration::zero();
    for (int i = 0; i < nodes; ++i) {
      cluster.add_node(fmt::format("n{}", i));
      set_kubelet_version(fmt::format("n{}", i), "v1.7.9");  // pods of unknown kubelets are deleted by force
    }
    set = std::make_unique<ControllerSet>(options, Rng(7), log, metrics);
    cluster.run(*set);
    cluster.advance(seconds(12));
  }

  ~OldLines() override {
    if (set) cluster.stop(*set);
  }

  bool is_terminating(const std::string& pod) {
    return !cluster.get(kPods + "/" + pod).string_at({"metadata", "deletionTimestamp"}).empty();
  }

  void set_kubelet_version(const std::string& node, std::string_view version) {
    cluster.merge(
        "/api/v1/nodes/" + node + "/status",
        Json::object({{"status", Json::object({{"nodeInfo", Json::object({{"kubeletVersion", version}})}})}}));
  }

  double counter(const std::string& series) {
    const std::string text = "\n" + metrics.text();
    const std::size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? -1.0 : std::stod(text.substr(at + series.size() + 2));
  }

  std::vector<std::string> logged(std::string_view text) const {
    std::vector<std::string> found;
    for (const std::string& line : lines) {
      if (line.contains(text)) found.push_back(line);
    }
    return found;
  }

  ControllerSet::Options options;
  std::vector<std::string> lines;
  const telemetry::Log log{
      [this](telemetry::Level level, std::string_view event, std::span<const telemetry::Field> fields) {
        lines.push_back(telemetry::render_logfmt(level, event, fields));
      }};
  telemetry::Registry metrics;
  TestCluster cluster;
  std::unique_ptr<ControllerSet> set;
};

TEST_F(OldLines, PodsTolerateTaintsByTheirNewNames) {
  start(EvictionMode::kTaint, 3);
  cluster.create(kPods, pod_json("web", "64Mi", "n1"));
  cluster.create("/apis/apps/v1/namespaces/default/daemonsets", workload_json("DaemonSet", "agent"));
  cluster.advance(seconds(3));
  cluster.set_up("n1", false);
  cluster.advance(seconds(60));
  EXPECT_THAT(cluster.taints("n1"), Contains("node.alpha.kubernetes.io/unreachable:NoExecute"));
  EXPECT_FALSE(is_terminating("web"));
  cluster.advance(seconds(300));
  EXPECT_TRUE(is_terminating("web"));
  const auto daemons = cluster.list(kPods + "?labelSelector=app%3Dagent");
  ASSERT_EQ(daemons.size(), 3U);
  for (const Json& pod : daemons) EXPECT_EQ(pod.string_at({"metadata", "deletionTimestamp"}), "");
}

TEST_F(OldLines, PodsOfAKubeletThatIsTooOldAreNotMarked) {
  start(EvictionMode::kLegacy, 3);
  cluster.create(kPods, pod_json("old", "64Mi", "n1"));
  cluster.create(kPods, pod_json("new", "64Mi", "n2"));
  set_kubelet_version("n1", "v1.1.8");
  set_kubelet_version("n2", "v1.2.0");
  cluster.advance(seconds(3));
  cluster.set_up("n1", false);
  cluster.set_up("n2", false);
  cluster.advance(seconds(60));
  ASSERT_EQ(cluster.ready_status("n1"), "Unknown");
  EXPECT_THAT(api::to_text(cluster.get(kPods + "/old")), Not(HasSubstr(R"("status":"False","type":"Ready")")));
  const auto ready = [this](const std::string& name) {
    const Json pod = cluster.get(kPods + "/" + name);
    for (const Json& condition : *pod.at({"status", "conditions"})->if_array()) {
      if (condition.string_at({"type"}) == "Ready") return std::string(condition.string_at({"status"}));
    }
    return std::string();
  };
  EXPECT_EQ(ready("old"), "True");
  EXPECT_EQ(ready("new"), "False");
}

TEST_F(OldLines, PodsThatAKubeletCannotEndAreDeletedByForce) {
  start(EvictionMode::kLegacy, 3);
  cluster.set_up("n1", false);
  cluster.set_up("n2", false);
  for (const auto& [node, version] : {std::pair("n0", "v1.7.9"), {"n1", "v1.0.6"}, {"n2", "v1.1.0"}}) {
    set_kubelet_version(node, version);
  }
  cluster.create(kPods, pod_json("old", "64Mi", "n1"));
  cluster.create(kPods, pod_json("new", "64Mi", "n2"));
  cluster.advance(seconds(1));
  cluster.remove(kPods + "/old");
  cluster.remove(kPods + "/new");
  cluster.advance(seconds(1));
  EXPECT_THAT(cluster.pod_names(), ElementsAre("new"));
}

TEST_F(OldLines, EvictionsAreCountedBeforeTheyAreTried) {
  start(EvictionMode::kLegacy, 3);
  cluster.create(kPods, pod_json("web", "64Mi", "n1"));
  cluster.advance(seconds(3));
  cluster.fail(api::Method::kDelete, "/pods/web", 500, 1);
  cluster.set_up("n1", false);
  cluster.advance(seconds(330));
  EXPECT_TRUE(is_terminating("web"));
  EXPECT_EQ(counter(R"(node_collector_evictions_total{zone=""})"), 2);  // one attempt failed
}

TEST_F(OldLines, ZonesThatOpenAndPodsThatAreAwaitedAreLogged) {
  start(EvictionMode::kLegacy, 3);
  EXPECT_THAT(logged("initializing eviction metric for zone"),
              ElementsAre("level=info msg=\"initializing eviction metric for zone\" zone=\"\""));
  cluster.add_node("far", {{"failure-domain.beta.kubernetes.io/zone", "b"}});
  cluster.advance(seconds(12));
  EXPECT_THAT(logged("initializing eviction metric for zone"), ElementsAre(HasSubstr("zone=\"\""), HasSubstr("b")));
  cluster.create(kPods, pod_json("web", "64Mi", "n1"));
  cluster.create(kPods, pod_json("cart", "64Mi", "n1"));
  cluster.advance(seconds(3));
  cluster.set_up("n1", false);
  cluster.advance(seconds(330));
  ASSERT_TRUE(is_terminating("web"));
  EXPECT_THAT(logged("pods awaiting deletion"),
              Contains("level=info msg=\"pods awaiting deletion due to node controller eviction\" node=n1 pods=2"));
}

TEST_F(OldLines, NodesRegisterWithTheNodeController) {
  start(EvictionMode::kLegacy, 2);
  bool registered = false;
  for (const Json& event : cluster.list("/api/v1/events")) {
    if (event.string_at({"reason"}) != "RegisteredNode") continue;
    EXPECT_THAT(std::string(event.string_at({"message"})), HasSubstr("in NodeController"));
    EXPECT_EQ(event.string_at({"source", "component"}), "controllermanager");
    registered = true;
  }
  EXPECT_TRUE(registered);
}

}  // namespace
}  // namespace spillway::controllers
