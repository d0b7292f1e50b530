// Hollow nodes on virtual time, against the simulated cluster's API server, controllers and scheduler.
#include "api/text/identities.h"
#include "sim/cluster.h"
#include "sim/hollow/hollow_fleet.h"
#include "sim/scenario/parser.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const api::UserInfo kMaster{"tester", "", {std::string(api::kMastersGroup), std::string(api::kAuthenticatedGroup)}};

ClusterOptions without_nodes() {
  ClusterOptions options;
  options.nodes = 0;
  return options;
}

class Hollow : public testing::Test {
 protected:
  Hollow() : cluster_(without_nodes()) {}

  HollowOptions options(std::size_t nodes, Bytes memory = gibibytes(1)) {
    HollowOptions options;
    for (std::size_t i = 0; i < nodes; ++i) {
      options.machines.push_back({.name = fmt::format("hollow-{:05}", i),
                                  .labels = {{"topology.kubernetes.io/zone", fmt::format("zone-{}", i % 2)}},
                                  .memory = memory});
    }
    options.connect = [this](const std::string& node) {
      return cluster_.network().connect(node.empty() ? "fleet" : node, kMaster);
    };
    options.log = telemetry::Log(
        [this](telemetry::Level level, std::string_view event, std::span<const telemetry::Field> fields) {
          if (level < telemetry::Level::kWarning) return;
          std::string line(event);
          for (const telemetry::Field& field : fields) line += fmt::format(" {}={}", field.key, field.value);
          warnings_.push_back(std::move(line));
        });
    return options;
  }

  HollowFleet& begin(HollowOptions options) {
    fleet_ = std::make_unique<HollowFleet>(cluster_.time(), std::move(options));
    fleet_->start([this] { all_registered_ = true; });
    return *fleet_;
  }

  std::string ready(const std::string& node) const {
    const auto found = cluster_.world().nodes().find(node);
    if (found == cluster_.world().nodes().end()) return "absent";
    const api::NodeCondition* const ready = api::find_condition(found->second.status.conditions, "Ready");
    return ready == nullptr ? "none" : ready->status;
  }

  void create_pod(const std::string& name, const std::string& annotations, const std::string& spec = {}) {
    const auto pod = api::parse_json(fmt::format(
        R"({{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "{}", "annotations": {{{}}}}},
             "spec": {{"containers": [{{"name": "main", "image": "nginx"}}]{}}}}})",
        name, annotations, spec));
    ASSERT_TRUE(pod) << pod.error().text();
    cluster_.create("/api/v1/namespaces/default/pods", *pod);
  }

  void annotate(const std::string& path, const std::string& name, const api::Json& value) {
    api::Json changes = api::Json::object();
    changes.make({"metadata", "annotations", name}) = value;
    cluster_.patch(path, changes);
  }

  const api::Pod& pod(const std::string& name) const { return cluster_.world().pods().at({"default", name}); }

  Cluster cluster_;
  std::vector<std::string> warnings_;
  bool all_registered_ = false;
  std::unique_ptr<HollowFleet> fleet_;
};

TEST_F(Hollow, NodesRegisterAtTheGivenRate) {
  HollowOptions wanted = options(20);
  wanted.nodes_per_second = 2;
  begin(std::move(wanted));
  cluster_.run_for(seconds(5));
  EXPECT_EQ(fleet_->counts().started, 10U);
  EXPECT_FALSE(all_registered_);
  cluster_.run_for(seconds(20));
  EXPECT_TRUE(all_registered_);
  EXPECT_EQ(cluster_.world().nodes().size(), 20U);
  EXPECT_EQ(fleet_->counts().ready, 20U);
  EXPECT_EQ(cluster_.world().nodes().at("hollow-00003").metadata.labels.at("spillway.io/hollow"), "true");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(Hollow, NodesStayReadyByTheirLeases) {
  begin(options(3));
  cluster_.run_for(minutes(10));
  for (const char* node : {"hollow-00000", "hollow-00001", "hollow-00002"}) EXPECT_EQ(ready(node), "True");
}

TEST_F(Hollow, ImagesRunWithoutACommandAndPodsHaveAddressesOfTheirOwn) {
  begin(options(2));
  cluster_.run_for(seconds(20));
  for (int i = 0; i < 6; ++i) create_pod(fmt::format("web-{}", i), "");
  cluster_.run_for(seconds(30));
  std::set<std::string> addresses;
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(pod(fmt::format("web-{}", i)).status.phase, "Running");
    addresses.insert(pod(fmt::format("web-{}", i)).status.pod_ip);
  }
  EXPECT_EQ(addresses.size(), 6U);
  for (const std::string& each : addresses) EXPECT_THAT(each, testing::StartsWith("100.64."));
  EXPECT_EQ(fleet_->counts().pods_running, 6U);
}

TEST_F(Hollow, ASilentNodeIsUnknownUntilTheAnnotationGoes) {
  begin(options(2));
  cluster_.run_for(seconds(20));
  annotate("/api/v1/nodes/hollow-00001", "spillway.io/hollow-state", "silent");
  cluster_.run_for(minutes(2));
  EXPECT_EQ(ready("hollow-00001"), "Unknown");
  EXPECT_EQ(ready("hollow-00000"), "True");
  EXPECT_EQ(fleet_->counts().silent, 1U);
  annotate("/api/v1/nodes/hollow-00001", "spillway.io/hollow-state", nullptr);
  cluster_.run_for(minutes(1));
  EXPECT_EQ(ready("hollow-00001"), "True");
  EXPECT_EQ(fleet_->counts().silent, 0U);
}

TEST_F(Hollow, ACrashedNodeStartsItsPodsAnew) {
  begin(options(1));
  cluster_.run_for(seconds(20));
  create_pod("web", "");
  cluster_.run_for(seconds(20));
  annotate("/api/v1/nodes/hollow-00000", "spillway.io/hollow-state", "crashed");
  cluster_.run_for(seconds(20));
  EXPECT_EQ(fleet_->counts().down, 1U);
  EXPECT_EQ(fleet_->machine(0), nullptr);
  annotate("/api/v1/nodes/hollow-00000", "spillway.io/hollow-state", nullptr);
  cluster_.run_for(seconds(40));
  EXPECT_EQ(ready("hollow-00000"), "True");
  ASSERT_NE(fleet_->machine(0), nullptr);
  EXPECT_EQ(fleet_->machine(0)->running().size(), 1U);
}

TEST_F(Hollow, APodThatGrowsByItsAnnotationsIsEvicted) {
  begin(options(1));
  cluster_.run_for(seconds(20));
  create_pod("small", R"("spillway.io/hollow-memory": "50Mi")");
  create_pod("leak", R"("spillway.io/hollow-memory": "2Gi", "spillway.io/hollow-memory-rate": "5Mi/s")");
  cluster_.run_for(minutes(1));
  EXPECT_EQ(pod("leak").status.phase, "Running");
  EXPECT_EQ(fleet_->machine(0)->usage_of_pod(pod("small").metadata.uid), mebibytes(50));
  cluster_.run_for(minutes(5));
  EXPECT_EQ(pod("leak").status.phase, "Failed");
  EXPECT_EQ(pod("leak").status.reason, "Evicted");
  EXPECT_THAT(pod("leak").status.message, HasSubstr("memory"));
  EXPECT_EQ(pod("small").status.phase, "Running");
}

TEST_F(Hollow, AnAnnotationOfARunningPodChangesItsUse) {
  begin(options(1));
  cluster_.run_for(seconds(20));
  create_pod("web", "");
  cluster_.run_for(seconds(20));
  EXPECT_EQ(fleet_->machine(0)->usage_of_pod(pod("web").metadata.uid), mebibytes(10));
  annotate("/api/v1/namespaces/default/pods/web", "spillway.io/hollow-memory", "300Mi");
  cluster_.run_for(seconds(5));
  EXPECT_EQ(fleet_->machine(0)->usage_of_pod(pod("web").metadata.uid), mebibytes(300));
}

TEST_F(Hollow, APodEndsAfterItsTime) {
  begin(options(1));
  cluster_.run_for(seconds(20));
  create_pod("good", R"("spillway.io/hollow-runs-for": "30s")", R"(, "restartPolicy": "Never")");
  create_pod("bad", R"("spillway.io/hollow-runs-for": "30s", "spillway.io/hollow-exit-code": "3")",
             R"(, "restartPolicy": "Never")");
  cluster_.run_for(seconds(20));
  EXPECT_EQ(pod("good").status.phase, "Running");
  cluster_.run_for(seconds(30));
  EXPECT_EQ(pod("good").status.phase, "Succeeded");
  EXPECT_EQ(pod("bad").status.phase, "Failed");
}

TEST_F(Hollow, AWrongAnnotationIsReportedOnceAndTheOthersHold) {
  begin(options(1));
  cluster_.run_for(seconds(20));
  create_pod("web", R"("spillway.io/hollow-memory": "lots", "spillway.io/hollow-processes": "40")");
  cluster_.run_for(minutes(1));
  EXPECT_THAT(warnings_, ElementsAre("annotation without effect kind=pod name=default/web problem="
                                     "spillway.io/hollow-memory: expected an amount like 200Mi, got \"lots\""));
  EXPECT_EQ(fleet_->machine(0)->processes_of_pod(pod("web").metadata.uid), 40);
}

TEST_F(Hollow, ASlowDiskDelaysStartsButNoHeartbeat) {
  begin(options(1));
  cluster_.run_for(seconds(20));
  annotate("/api/v1/nodes/hollow-00000", "spillway.io/hollow-disk-delay", "20s");
  cluster_.run_for(seconds(5));
  create_pod("web", "");
  cluster_.run_for(seconds(15));
  EXPECT_EQ(pod("web").status.phase, "Pending");
  cluster_.run_for(minutes(2));
  EXPECT_EQ(pod("web").status.phase, "Running");
  EXPECT_EQ(ready("hollow-00000"), "True");
}

TEST_F(Hollow, TheTimelineOfAScenarioCutsAZoneAndHealsIt) {
  const auto scenario = parse_scenario("cut.yaml", R"(
name: cut
story: a zone goes silent
cluster: {nodes: 4, zones: 2}
timeline:
- {at: 10s, partition: {zone: zone-1}, for: 2m}
- {at: 5s, memory: {pods: default/unknown-*, to: 200Mi}}
- {at: 5s, slowDisk: {zone: zone-0, by: 2s}, for: 1m}
)",
                                       {}, {.inventory = {}, .nodes = {}, .zones = {}, .foreign_pods = true});
  ASSERT_TRUE(scenario) << scenario.error().text();
  const std::vector<MachineSpec> names = machines_of(*scenario);
  begin(options(4));
  cluster_.run_for(seconds(20));
  std::vector<std::string> reported;
  fleet_->run_timeline(scenario->timeline, names, [&reported](const TimelineEvent& event, bool begins) {
    reported.push_back((begins ? "" : "end of ") + event.text);
  });
  cluster_.run_for(seconds(100));
  EXPECT_EQ(ready("hollow-00001"), "Unknown");
  EXPECT_EQ(ready("hollow-00003"), "Unknown");
  EXPECT_EQ(ready("hollow-00000"), "True");
  cluster_.run_for(minutes(2));
  EXPECT_EQ(ready("hollow-00001"), "True");
  EXPECT_THAT(reported, ElementsAre("memory", "slowDisk", "partition", "end of slowDisk", "end of partition"));
}

TEST_F(Hollow, NodesAreDeletedOnRequestOnly) {
  begin(options(3));
  cluster_.run_for(seconds(20));
  std::optional<HollowControl::Deleted> deleted;
  fleet_->delete_nodes([&deleted](const HollowControl::Deleted& all) { deleted = all; });
  cluster_.run_for(seconds(5));
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->nodes, 3U);
  EXPECT_EQ(deleted->failed, 0U);
  EXPECT_THAT(cluster_.world().nodes(), IsEmpty());
  const std::uint64_t sent = fleet_->counts().requests;
  cluster_.run_for(minutes(1));
  EXPECT_EQ(fleet_->counts().requests, sent) << "no agent is left";
}

TEST(HollowAnnotations, NodesAndPodsHaveNamesOfTheirOwn) {
  const auto node = read_node_annotations({{"other.io/x", "y"},
                                           {"spillway.io/hollow-state", "gone"},
                                           {"spillway.io/hollow-images", "40Gi"},
                                           {"spillway.io/hollow-memory", "1Gi"}});
  EXPECT_EQ(node.wishes.images, gibibytes(40));
  EXPECT_EQ(node.wishes.state, HollowState::kUp);
  EXPECT_THAT(node.problems, ElementsAre("spillway.io/hollow-memory: there is no such annotation of this kind",
                                         "spillway.io/hollow-state: expected one of silent, crashed, got \"gone\""));
  const auto pod = read_pod_annotations({{"spillway.io/hollow-memory-rate", "5Mi/s"},
                                         {"spillway.io/hollow-exit-code", "256"},
                                         {"spillway.io/hollow-ending", "never"}});
  EXPECT_EQ(pod.wishes.memory_rate, mebibytes(5));
  EXPECT_EQ(pod.wishes.ending, SimHost::Ending::kNever);
  EXPECT_THAT(pod.problems, ElementsAre("spillway.io/hollow-exit-code: expected a number from 0 to 255, got \"256\""));
}

TEST(HollowActions, ServersAndControllersAreNoMachines) {
  EXPECT_TRUE(MachineActions::can_act(PartitionNodes{}));
  EXPECT_TRUE(MachineActions::can_act(SlowDisks{}));
  EXPECT_FALSE(MachineActions::can_act(StopApiServer{}));
  EXPECT_FALSE(MachineActions::can_act(ScaleWorkload{}));
}

}  // namespace
}  // namespace spillway::sim
