// Goal: the policies of a KubeletConfiguration decide which CPUs and NUMA nodes a container gets, a restart keeps them,
// and a refusal says what was weighed.
#include "agent/config/kubelet_config.h"
#include "agent/devices/pinning_checkpoint.h"
#include "agent/scripted_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace spillway::agent {
namespace {

using api::Json;

Result<AgentOptions> configured(std::string_view members) {
  Json value = api::parse_json(members).value();
  value["apiVersion"] = "kubelet.config.k8s.io/v1beta1";
  value["kind"] = "KubeletConfiguration";
  const CheckedConfig checked = check_config({.file = "k.yaml", .value = std::move(value), .origins = {}});
  EXPECT_TRUE(checked.findings.empty());
  return options_of(effective_config(checked.value, std::nullopt));
}

std::string error_of(std::string_view members) {
  const auto options = configured(members);
  return options ? "none" : options.error().text();
}

TEST(ManagerConfig, NamesTheNearestPolicyAndOption) {
  EXPECT_EQ(error_of(R"({"topologyManagerPolicy": "single-numa-nodes"})"),
            "topologyManagerPolicy: unknown: \"single-numa-nodes\"; did you mean single-numa-node?");
  EXPECT_EQ(error_of(R"({"topologyManagerScope": "everything"})"),
            "topologyManagerScope: unknown: \"everything\"; expected one of container, pod");
  EXPECT_EQ(error_of(R"({"cpuManagerPolicy": "Static"})"),
            "cpuManagerPolicy: unknown: \"Static\"; did you mean static?");
  EXPECT_EQ(error_of(R"({"cpuManagerPolicyOptions": {"full-cpus-only": "true"}})"),
            "cpuManagerPolicyOptions: unknown: \"full-cpus-only\"; did you mean full-pcpus-only?");
  EXPECT_EQ(error_of(R"({"topologyManagerPolicyOptions": {"prefer-closest-numa": "true"}})"),
            "topologyManagerPolicyOptions: unknown: \"prefer-closest-numa\"; did you mean prefer-closest-numa-nodes?");
  EXPECT_EQ(error_of(R"({"memoryManagerPolicy": "static"})"),
            "memoryManagerPolicy: unknown: \"static\"; did you mean Static?");
  EXPECT_EQ(error_of(R"({"reservedSystemCPUs": "0-"})"),
            "reservedSystemCPUs: expected a list of CPUs such as 0-3,8, got \"0-\"");
}

TEST(ManagerConfig, ReservedCpusAndMemoryAreRead) {
  const auto options = configured(R"({"reservedSystemCPUs": "0,2", "kubeReserved": {"cpu": "5"},
      "reservedMemory": [{"numaNode": 1, "limits": {"memory": "1Gi"}}]})");
  ASSERT_TRUE(options) << options.error().text();
  EXPECT_EQ(options->managers.cpus.reserved, (admission::CpuSet{0, 2}));
  EXPECT_EQ(options->system_reserved.at("cpu").to_string(), "2");
  EXPECT_FALSE(options->kube_reserved.contains("cpu"));
  EXPECT_EQ(options->managers.memory.reserved.at(1).at("memory"), std::int64_t{1} << 30);
  EXPECT_NE(error_of(R"({"reservedMemory": [{"limits": {}}]})"), "none");
}

TEST(ManagerConfig, ShutdownPeriodsMustAgree) {
  const auto options = configured(R"({"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"})");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->shutdown.grace_seconds, 30);
  EXPECT_EQ(options->shutdown.critical_grace_seconds, 10);
  EXPECT_EQ(error_of(R"({"shutdownGracePeriod": "5s", "shutdownGracePeriodCriticalPods": "10s"})"),
            "shutdownGracePeriodCriticalPods: 10s must be <= shutdownGracePeriod 5s");
  EXPECT_NE(error_of(R"({"shutdownGracePeriod": "500ms"})"), "none");
  EXPECT_EQ(configured(R"({"shutdownGracePeriodByPodPriority": [{"priority": 5, "shutdownGracePeriodSeconds": 7}]})")
                ->shutdown.by_priority,
            (std::vector<PriorityGrace>{{5, 7}}));
  EXPECT_NE(error_of(R"({"shutdownGracePeriod": "5s",
                "shutdownGracePeriodByPodPriority": [{"priority": 5, "shutdownGracePeriodSeconds": 7}]})"),
            "none");
}

// The checksums of these texts are upstream's.
TEST(PinningCheckpoint, HasUpstreamsChecksum) {
  EXPECT_TRUE(parse_cpu_state(R"({"policyName":"none","defaultCpuSet":"","checksum":1353318690})", "none"));
  EXPECT_TRUE(parse_memory_state(R"({"policyName":"None","machineState":{},"checksum":4236770233})", "None"));
  const auto memory = parse_memory_state(
      R"({"policyName":"static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":{"total":2048,)"
      R"("systemReserved":512,"allocatable":1536,"reserved":512,"free":1024}},"cells":[]}},"entries":{"pod":)"
      R"({"container1":[{"numaAffinity":[0],"type":"memory","size":512}]}},"checksum":4215593881})",
      "static");
  ASSERT_TRUE(memory) << memory.error().text();
  EXPECT_EQ(memory->held.at("pod").at("container1").front().size_bytes, 512);
}

TEST(PinningCheckpoint, ReadsBackAndRefusesDamage) {
  const admission::CpuAssignments cpus{.shared = {0, 1}, .held = {{"u", {{"c", {2, 3}}}}}};
  const std::string text = to_text(cpus);
  EXPECT_EQ(*parse_cpu_state(text, "static"), cpus);
  EXPECT_EQ(parse_cpu_state(text, "none").error().message,
            "configured policy \"none\" differs from state checkpoint policy \"static\"");
  std::string damaged = text;
  damaged.replace(damaged.find("2-3"), 3, "4-5");
  EXPECT_EQ(parse_cpu_state(damaged, "static").error().message, "checkpoint is corrupted");
  EXPECT_EQ(parse_cpu_state("{", "static").error().message, "checkpoint is corrupted");
  admission::MemoryAssignments memory;
  memory.nodes[0] = {.assignments_count = 1, .tables = {{"memory", {100, 10, 90, 40, 50}}}, .cells = {0}};
  memory.held["u"]["c"] = {{{0}, "memory", 40}};
  EXPECT_EQ(*parse_memory_state(to_text(memory), "Static"), memory);
}

/// Two NUMA nodes of two CPUs and half a gibibyte each.
MachineInfo two_nodes() {
  MachineInfo machine = machine_info();
  for (int cpu = 0; cpu < 4; ++cpu) machine.cpus.places[cpu] = {.core = cpu, .socket = cpu / 2, .numa = cpu / 2};
  for (int node = 0; node < 2; ++node) machine.numa.memory[node] = {{"memory", mebibytes(512).count()}};
  return machine;
}

Json pinned(const std::string& name, const std::string& cpu, const std::string& memory = "64Mi") {
  Json document = pod_document({.name = name});
  Json& container = document.at({"spec", "containers"})->if_array()->front();
  for (const char* list : {"requests", "limits"}) {
    container.make({"resources", list, "cpu"}) = cpu;
    container.make({"resources", list, "memory"}) = memory;
  }
  return document;
}

struct Pinned : ScriptedCluster {
  explicit Pinned(std::string_view topology = "none", std::string_view memory_policy = "None")
      : ScriptedCluster(options(topology, memory_policy)) {
    machine = two_nodes();
    start();
    run(seconds(1));
  }

  static AgentOptions options(std::string_view topology, std::string_view memory_policy) {
    AgentOptions options = node_options();
    options.managers.topology.policy = topology;
    options.managers.cpus.policy = "static";
    options.managers.cpus.reserved = {0};
    options.system_reserved["cpu"] = api::Quantity::of_units(1);
    options.managers.memory.policy = memory_policy;
    options.managers.memory.reserved = {{0, {{"memory", mebibytes(100).count()}}}};
    return options;
  }

  void add(Json document) {
    put(std::move(document));
    run(seconds(1));
  }

  const Cpuset& started() const { return host.last<StartContainer>()->cpuset; }

  std::string reason(const std::string& name) const { return std::string(pod(name).string_at({"status", "reason"})); }

  std::string message(const std::string& name) const { return std::string(pod(name).string_at({"status", "message"})); }
};

TEST(Managers, AGuaranteedPodHasItsCpusAndTheOthersShareTheRest) {
  Pinned cluster;
  EXPECT_EQ(cluster.host.last<ShareCpus>()->cpus, "0-3");
  cluster.add(pod_document({.name = "plain"}));
  EXPECT_EQ(cluster.started(), (Cpuset{.cpus = "0-3", .memory_nodes = "", .shares = true}));
  cluster.add(pinned("whole", "2"));
  EXPECT_EQ(cluster.started(), (Cpuset{.cpus = "2-3", .memory_nodes = "", .shares = false}));
  EXPECT_EQ(cluster.host.last<ShareCpus>()->cpus, "0-1") << "the plain pod has to move";
  EXPECT_NE(cluster.host.last<SaveCheckpoint>()->text.find(R"("entries":{"uid-whole":{"c":"2-3"}})"),
            std::string::npos);
  cluster.add(pinned("more", "2"));
  EXPECT_EQ(cluster.reason("more"), "UnexpectedAdmissionError");
  EXPECT_EQ(cluster.message("more"),
            "Pod was rejected: Allocate failed due to not enough cpus available to satisfy request: requested=2, "
            "available=1, which is unexpected");
  cluster.delete_pod("whole", 0);
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.host.last<ShareCpus>()->cpus, "0-3");
}

TEST(Managers, ARestartKeepsTheCpus) {
  Pinned cluster;
  cluster.add(pinned("whole", "1"));
  const std::string cpus = cluster.started().cpus;
  cluster.cpu_checkpoint = cluster.host.last<SaveCheckpoint>()->text;
  cluster.host.take_commands();
  cluster.restart();
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.started().cpus, cpus);
}

TEST(Managers, AStateOfAnotherPolicyStopsTheAgent) {
  AgentOptions options = node_options();
  const auto agent = Agent::create(
      options, two_nodes(), Rng(1), {}, {},
      {.devices = {}, .cpus = to_text(admission::CpuAssignments{.shared = {0, 1, 2, 3}, .held = {}}), .memory = {}});
  ASSERT_FALSE(agent);
  EXPECT_EQ(
      agent.error().message,
      "could not restore state from checkpoint: configured policy \"none\" differs from state checkpoint policy "
      "\"static\", please drain this node and delete the CPU manager checkpoint file \"cpu_manager_state\" before "
      "restarting Kubelet");
}

TEST(Managers, ASingleNodeOrNothing) {
  Pinned cluster("single-numa-node");
  cluster.add(pinned("wide", "3"));
  EXPECT_EQ(cluster.reason("wide"), "TopologyAffinityError");
  EXPECT_EQ(cluster.message("wide"), "Pod was rejected: Resources cannot be allocated with Topology locality");
  const std::string decisions = api::to_text(cluster.agent().decisions(cluster.now()));
  EXPECT_NE(decisions.find("not-aligned"), std::string::npos);
  EXPECT_NE(decisions.find("hint-considered"), std::string::npos) << decisions;
  EXPECT_NE(decisions.find(R"("0,1")"), std::string::npos) << decisions;
  cluster.add(pinned("narrow", "2"));
  EXPECT_EQ(cluster.started().cpus, "2-3") << "the only node with two free CPUs";
}

TEST(Managers, MemoryIsOfTheNodesThatWereChosen) {
  Pinned cluster("restricted", "Static");
  cluster.add(pinned("near", "1", "450Mi"));
  EXPECT_EQ(cluster.started().memory_nodes, "1") << "node 0 has 412Mi for pods";
  EXPECT_EQ(cluster.started().cpus, "2") << "of the same node";
}

TEST(Managers, ThePartsOfAContainerAreReportedUntilItsPodEnds) {
  Pinned cluster("restricted", "Static");
  cluster.add(pod_document({.name = "plain"}));
  cluster.add(pinned("near", "1", "450Mi"));
  std::vector<PodParts> pods = cluster.agent().held_parts();
  std::ranges::sort(pods, {}, &PodParts::name);
  ASSERT_EQ(pods.size(), 2U);
  ASSERT_EQ(pods[0].containers.size(), 1U);
  EXPECT_EQ(pods[0].containers[0].held.cpus, std::vector<std::int64_t>{2});
  EXPECT_EQ(pods[0].containers[0].held.memory, (std::vector<HeldMemory>{{"memory", mebibytes(450).count(), {1}}}));
  EXPECT_EQ(pods[1].name, "plain");
  EXPECT_EQ(pods[1].containers[0].held, HeldParts()) << "shared CPUs are no one's";
  const HeldParts all = cluster.agent().allocatable_parts();
  EXPECT_EQ(all.cpus, (std::vector<std::int64_t>{1, 2, 3})) << "without the reserved one";
  EXPECT_EQ(all.memory, (std::vector<HeldMemory>{{"memory", mebibytes(412).count(), {0}},
                                                 {"memory", mebibytes(512).count(), {1}}}));
  cluster.delete_pod("near", 0);
  cluster.run(seconds(2));
  EXPECT_EQ(cluster.agent().held_parts().size(), 1U);
}

}  // namespace
}  // namespace spillway::agent
