// Goal: CPUs and NUMA memory that are handed out belong to one pod, come back when it ends, and survive a restart.
// Method: small machines, all sequences of a few arrivals and departures.
#include "policy/admission/cpu_assignment.h"
#include "policy/admission/static_cpus.h"
#include "policy/admission/static_memory.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

namespace spillway::admission {
namespace {

/// CPUs as the kernel numbers them: first one thread of every core, then the second ones.
CpuTopology machine(int nodes, int cores_per_node, int threads) {
  CpuTopology topology;
  const int cores = nodes * cores_per_node;
  for (int cpu = 0; cpu < cores * threads; ++cpu) {
    const int core = cpu % cores;
    topology.places[cpu] = {.core = core, .socket = core / cores_per_node, .numa = core / cores_per_node};
  }
  return topology;
}

api::Container container(const std::string& name, const std::string& cpu, const std::string& memory = "1Mi") {
  api::Container made;
  made.name = name;
  for (auto* list : {&made.resources.requests, &made.resources.limits}) {
    list->emplace("cpu", *api::parse_quantity(cpu));
    list->emplace("memory", *api::parse_quantity(memory));
  }
  return made;
}

api::Pod pod(const std::string& uid, std::vector<api::Container> containers) {
  api::Pod made;
  made.metadata.uid = uid;
  made.metadata.name = uid;
  made.spec.containers = std::move(containers);
  return made;
}

StaticCpus static_cpus(const CpuTopology& topology, CpuOptions options = {}) {
  options.policy = "static";
  if (options.reserved.empty() && options.reserved_milli == 0) options.reserved = {0};
  auto setup = parse_cpus(options, topology);
  EXPECT_TRUE(setup) << setup.error().text();
  auto cpus = StaticCpus::create(**setup, {});
  EXPECT_TRUE(cpus);
  return *std::move(cpus);
}

std::string taken(const CpuTopology& topology, const CpuSet& free, int count) {
  const auto cpus = take_packed(topology, free, count);
  return cpus ? cpus->text() : cpus.error().message;
}

std::string spread(const CpuTopology& topology, int count, int group = 1) {
  const auto cpus = take_spread(topology, topology.all(), count, group);
  return cpus ? cpus->text() : cpus.error().message;
}

TEST(CpuSet, ReadsBackWhatItWrites) {
  for (const char* text : {"", "0", "0-3", "0-1,4,6-7", "8191"}) {
    const auto set = CpuSet::parse(text);
    ASSERT_TRUE(set) << text;
    EXPECT_EQ(set->text(), text);
  }
  EXPECT_EQ(CpuSet::parse("3,1,2,0")->text(), "0-3");
  for (const char* text : {",", "1,", "a", "3-1", "-1", "8192", "1-", "0 1"}) EXPECT_FALSE(CpuSet::parse(text)) << text;
}

TEST(TakePacked, WholeUnitsFirstThenTheFullestCores) {
  const CpuTopology threaded = machine(1, 4, 2);
  EXPECT_EQ(taken(threaded, threaded.all(), 2), "0,4") << "both threads of one core";
  EXPECT_EQ(taken(threaded, threaded.all() - CpuSet{0}, 1), "4") << "the core that is broken already";
  EXPECT_EQ(taken(threaded, threaded.all() - CpuSet{0}, 3), "1,4-5") << "a whole core, then the broken one";
  EXPECT_EQ(taken(threaded, threaded.all(), 8), "0-7");
  EXPECT_EQ(taken(threaded, CpuSet{1, 2}, 3), "not enough cpus available to satisfy request: requested=3, available=2");
  const CpuTopology two_nodes = machine(2, 2, 2);
  EXPECT_EQ(taken(two_nodes, two_nodes.all(), 4), "0-1,4-5") << "one whole node";
  EXPECT_EQ(taken(two_nodes, two_nodes.all() - CpuSet{0}, 4), "2-3,6-7") << "the node that is whole";
  EXPECT_EQ(taken(two_nodes, two_nodes.all() - CpuSet{0}, 2), "1,5") << "the fuller node";
}

TEST(TakeSpread, TheSameFromEveryNode) {
  EXPECT_EQ(spread(machine(2, 4, 1), 2), "0-1") << "one node holds it";
  EXPECT_EQ(spread(machine(2, 4, 1), 6), "0-2,4-6");
  EXPECT_EQ(spread(machine(2, 2, 2), 6, 2), "0-2,4-6") << "in whole cores";
  EXPECT_EQ(spread(machine(2, 2, 2), 5, 2), "0-2,4-5") << "no multiple of a core: packed";
}

TEST(TakeSpread, GivesWhatWasAskedOnEveryMachine) {
  for (const int nodes : {1, 2, 3}) {
    for (const int cores : {1, 2}) {
      for (const int threads : {1, 2}) {
        const CpuTopology topology = machine(nodes, cores, threads);
        for (int count = 0; count <= static_cast<int>(topology.places.size()); ++count) {
          for (const int group : {1, threads}) {
            const auto cpus = take_spread(topology, topology.all(), count, group);
            ASSERT_TRUE(cpus);
            EXPECT_EQ(cpus->size(), count) << nodes << cores << threads << group;
          }
        }
      }
    }
  }
}

TEST(StaticCpus, ConfigurationIsRefusedInUpstreamsWords) {
  const CpuTopology topology = machine(1, 2, 1);
  const auto error = [&](const CpuOptions& options) { return parse_cpus(options, topology).error().message; };
  EXPECT_EQ(error({.policy = "dynamic"}), "unknown policy: \"dynamic\"");
  EXPECT_EQ(error({.policy = "static"}),
            "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero");
  EXPECT_EQ(error({.policy = "static", .policy_options = {{"full", "true"}}, .reserved_milli = 100}),
            "unknown CPU Manager Policy option: \"full\"");
  EXPECT_EQ(error({.policy = "static", .policy_options = {{"full-pcpus-only", "yes"}}, .reserved_milli = 100}),
            "bad value for option \"full-pcpus-only\": strconv.ParseBool: parsing \"yes\": invalid syntax");
  EXPECT_EQ(error({.policy = "static", .reserved = {7}}), "this machine has the CPUs 0-1, not all of 7");
  EXPECT_FALSE(parse_cpus({}, topology)->has_value());
}

TEST(StaticCpus, OnlyWholeCpusOfGuaranteedPodsAreExclusive) {
  StaticCpus cpus = static_cpus(machine(1, 4, 1));
  const api::Pod whole = pod("whole", {container("c", "2"), container("d", "500m")});
  for (const api::Container& each : whole.spec.containers) EXPECT_FALSE(cpus.allocate(whole, each, {}));
  EXPECT_EQ(cpus.cpus_of("whole", "c").text(), "1-2");
  EXPECT_EQ(cpus.cpus_of("whole", "d").text(), "0,3");
  api::Pod burstable = pod("burstable", {container("c", "1")});
  burstable.spec.containers[0].resources.limits["memory"] = *api::parse_quantity("2Mi");
  EXPECT_FALSE(cpus.allocate(burstable, burstable.spec.containers[0], {}));
  EXPECT_FALSE(cpus.is_exclusive("burstable", "c"));
  const api::Pod large = pod("large", {container("c", "2")});
  const auto failure = cpus.allocate(large, large.spec.containers[0], {});
  ASSERT_TRUE(failure);
  EXPECT_EQ(refusal_of(*failure).reason, "UnexpectedAdmissionError");
  EXPECT_EQ(refusal_of(*failure).message,
            "Allocate failed due to not enough cpus available to satisfy request: requested=2, available=1, which is "
            "unexpected");
}

TEST(StaticCpus, WholeCoresOrNothing) {
  CpuOptions options{.policy_options = {{"full-pcpus-only", "true"}}};
  StaticCpus cpus = static_cpus(machine(1, 2, 2), options);
  const api::Pod odd = pod("odd", {container("c", "1")});
  const auto failure = cpus.allocate(odd, odd.spec.containers[0], {});
  ASSERT_TRUE(failure);
  EXPECT_EQ(refusal_of(*failure).reason, "SMTAlignmentError");
  EXPECT_EQ(failure->message, "SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2");
  const api::Pod large = pod("large", {container("c", "4")});
  EXPECT_EQ(cpus.allocate(large, large.spec.containers[0], {})->message,
            "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 2, requested CPUs = 4, CPUs "
            "per core = 2");
  const api::Pod fits = pod("fits", {container("c", "2")});
  EXPECT_FALSE(cpus.allocate(fits, fits.spec.containers[0], {}));
  EXPECT_EQ(cpus.cpus_of("fits", "c").text(), "1,3") << "the core of the reserved CPU stays whole";
}

TEST(StaticCpus, InitContainersLeaveTheirsToThoseThatFollow) {
  StaticCpus cpus = static_cpus(machine(1, 6, 1));
  api::Pod made = pod("p", {container("a", "2"), container("b", "1")});
  made.spec.init_containers = {container("first", "3"), container("sidecar", "1")};
  made.spec.init_containers[1].restart_policy = "Always";
  for (const auto* list : {&made.spec.init_containers, &made.spec.containers}) {
    for (const api::Container& each : *list) ASSERT_FALSE(cpus.allocate(made, each, {})) << each.name;
  }
  EXPECT_TRUE((cpus.cpus_of("p", "sidecar") & cpus.cpus_of("p", "a")).empty());
  EXPECT_TRUE((cpus.cpus_of("p", "sidecar") & cpus.cpus_of("p", "b")).empty());
  EXPECT_TRUE((cpus.cpus_of("p", "a") & cpus.cpus_of("p", "b")).empty());
  EXPECT_FALSE((cpus.cpus_of("p", "first") & cpus.cpus_of("p", "a")).empty());
  EXPECT_TRUE(cpus.release("p"));
  EXPECT_EQ(cpus.assignments().shared.text(), "0-5");
}

TEST(StaticCpus, HintsAreTheNodesThatHaveEnough) {
  StaticCpus cpus = static_cpus(machine(2, 2, 1));  // CPU 0 is reserved
  const api::Pod two = pod("two", {container("c", "2")});
  const auto hints = cpus.container_hints(two, two.spec.containers[0]);
  ASSERT_TRUE(hints);
  EXPECT_EQ(hints->at("cpu"), (std::vector<TopologyHint>{{NumaSet{2}, true}, {NumaSet{3}, false}}));
  EXPECT_FALSE(cpus.allocate(two, two.spec.containers[0], {NumaSet{2}, true}));
  EXPECT_EQ(cpus.cpus_of("two", "c").text(), "2-3");
  EXPECT_EQ(cpus.container_hints(two, two.spec.containers[0])->at("cpu"),
            (std::vector<TopologyHint>{{NumaSet{2}, true}, {NumaSet{3}, false}}))
      << "what it holds already";
  const api::Pod three = pod("three", {container("c", "1"), container("d", "1")});
  EXPECT_EQ(cpus.pod_hints(three)->at("cpu"), std::vector<TopologyHint>()) << "one is left on the whole machine";
}

/// Every sequence of `depth` steps, each an arrival or a departure of one of three pods.
void each_sequence(int depth, const std::function<void(const std::vector<int>&)>& visit) {
  std::vector<int> steps(static_cast<std::size_t>(depth), 0);
  for (;;) {
    visit(steps);
    std::size_t last = steps.size();
    while (last > 0 && steps[last - 1] == 5) steps[--last] = 0;
    if (last == 0) return;
    ++steps[last - 1];
  }
}

TEST(StaticCpus, NoCpuBelongsToTwoWhateverStartsAndEnds) {
  for (const CpuTopology& topology : {machine(1, 5, 1), machine(2, 2, 1), machine(1, 2, 2)}) {
    for (const bool is_spread : {false, true}) {
      CpuOptions options;
      if (is_spread) options.policy_options = {{"distribute-cpus-across-numa", "true"}};
      const api::Pod pods[] = {pod("p0", {container("c", "1")}), pod("p1", {container("c", "2")}),
                               pod("p2", {container("c", "1"), container("d", "1")})};
      const StaticCpus fresh = static_cpus(topology, options);
      options.policy = "static";
      options.reserved = {0};
      const CpuSetup setup = **parse_cpus(options, topology);
      each_sequence(3, [&](const std::vector<int>& steps) {
        StaticCpus cpus = fresh;
        for (const int step : steps) {
          const api::Pod& who = pods[step / 2];
          if (step % 2 == 0) {
            for (const api::Container& each : who.spec.containers) {
              if (cpus.allocate(who, each, {})) break;
            }
          } else {
            cpus.release(who.metadata.uid);
            EXPECT_FALSE(cpus.release(who.metadata.uid));
          }
          CpuSet seen = cpus.assignments().shared;
          int sum = seen.size();
          for (const auto& [uid, containers] : cpus.assignments().held) {
            for (const auto& [name, held] : containers) {
              sum += held.size();
              seen.add(held);
            }
          }
          ASSERT_EQ(seen, topology.all());
          ASSERT_EQ(sum, static_cast<int>(topology.places.size())) << "a CPU has two owners";
          ASSERT_TRUE(cpus.assignments().shared.contains(0)) << "the reserved one";
          const auto again = StaticCpus::create(setup, cpus.assignments());
          ASSERT_TRUE(again) << again.error().text();
          ASSERT_EQ(again->assignments(), cpus.assignments()) << "a restart keeps it";
        }
        cpus.keep_only({});
        ASSERT_EQ(cpus.assignments().shared, topology.all());
      });
    }
  }
}

TEST(StaticCpus, AStateThatContradictsTheMachineIsRefused) {
  const CpuSetup setup = **parse_cpus({.policy = "static", .reserved = {0}}, machine(1, 4, 1));
  const auto error = [&](const CpuAssignments& before) { return StaticCpus::create(setup, before).error().message; };
  EXPECT_EQ(error({.shared = {}, .held = {{"u", {{"c", {1}}}}}}), "default cpuset cannot be empty");
  EXPECT_EQ(error({.shared = {1, 2, 3}, .held = {}}),
            "not all reserved cpus: \"0\" are present in defaultCpuSet: \"1-3\"");
  EXPECT_EQ(error({.shared = {0, 1, 2, 3}, .held = {{"u", {{"c", {1}}}}}}),
            "pod: u, container: c cpuset: \"1\" overlaps with default cpuset \"0-3\"");
  EXPECT_EQ(error({.shared = {0, 1}, .held = {{"u", {{"c", {2}}}}}}),
            "current set of available CPUs \"0-3\" doesn't match with CPUs in state \"0-2\"");
}

MemorySetup memory_setup(int nodes) {
  MemoryOptions options{.policy = "Static", .reserved = {{0, {{"memory", 10}}}}};
  NumaLayout layout;
  for (int node = 0; node < nodes; ++node) layout.memory[node] = {{"memory", node == 0 ? 110 : 100}};
  auto setup = parse_memory(options, layout, {{"memory", api::Quantity::of_bytes(Bytes{10})}});
  EXPECT_TRUE(setup) << setup.error().text();
  return **setup;
}

TEST(StaticMemory, ReservationMustAddUp) {
  NumaLayout layout;
  layout.memory[0] = {{"memory", 100}};
  const auto error = [&](const MemoryOptions& options) {
    return parse_memory(options, layout, {{"memory", api::Quantity::of_bytes(Bytes{10})}}).error().message;
  };
  EXPECT_EQ(error({.policy = "Static", .reserved = {{0, {{"memory", 9}}}}}),
            "the total amount \"9\" of type \"memory\" is not equal to the value \"10\" determined by Node Allocatable "
            "feature");
  EXPECT_EQ(error({.policy = "static"}), "unknown policy: \"static\"");
  EXPECT_EQ(error({.policy = "Static", .reserved = {{3, {{"memory", 10}}}}}),
            "the reserved memory configuration references a NUMA node 3 that does not exist on this machine");
  EXPECT_FALSE(parse_memory({}, layout, {})->has_value());
}

TEST(StaticMemory, ANodeServesAloneOrInOneGroup) {
  StaticMemory memory = *StaticMemory::create(memory_setup(3), {});
  const api::Pod small = pod("small", {container("c", "1", "60")});
  EXPECT_FALSE(memory.allocate(small, small.spec.containers[0], {}));
  EXPECT_EQ(memory.nodes_of("small", "c"), std::vector<int>{0});
  const api::Pod wide = pod("wide", {container("c", "1", "150")});
  EXPECT_EQ(memory.container_hints(wide, wide.spec.containers[0])->at("memory"),
            (std::vector<TopologyHint>{{NumaSet{6}, true}}))
      << "node 0 is used alone";
  EXPECT_FALSE(memory.allocate(wide, wide.spec.containers[0], {}));
  EXPECT_EQ(memory.nodes_of("wide", "c"), (std::vector<int>{1, 2}));
  const api::Pod late = pod("late", {container("c", "1", "60")});
  EXPECT_EQ(refusal_of(*memory.allocate(late, late.spec.containers[0], {})).message,
            "Allocate failed due to [memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough "
            "memory is available, which is unexpected");
  const api::Pod tiny = pod("tiny", {container("c", "1", "40")});
  EXPECT_EQ(memory.allocate(tiny, tiny.spec.containers[0], {NumaSet{4}, true})->message,
            "[memorymanager] preferred hint violates NUMA node allocation");
  EXPECT_TRUE(memory.release("wide"));
  EXPECT_FALSE(memory.allocate(late, late.spec.containers[0], {}));
  EXPECT_EQ(memory.nodes_of("late", "c"), std::vector<int>{1});
}

TEST(StaticMemory, FreedAmountsEqualTheTakenOnes) {
  const MemorySetup setup = memory_setup(2);
  api::Pod with_init = pod("p2", {container("c", "1", "70"), container("d", "1", "20")});
  with_init.spec.init_containers = {container("i", "1", "80")};
  const api::Pod pods[] = {pod("p0", {container("c", "1", "60")}), pod("p1", {container("c", "1", "130")}), with_init};
  const StaticMemory empty = *StaticMemory::create(setup, {});
  each_sequence(4, [&](const std::vector<int>& steps) {
    StaticMemory memory = *StaticMemory::create(setup, {});
    for (const int step : steps) {
      const api::Pod& who = pods[step / 2];
      if (step % 2 == 0) {
        for (const auto* list : {&who.spec.init_containers, &who.spec.containers}) {
          for (const api::Container& each : *list) {
            if (memory.allocate(who, each, {})) break;
          }
        }
      } else {
        memory.release(who.metadata.uid);
      }
      std::int64_t held = 0;
      for (const auto& [uid, containers] : memory.assignments().held) {
        for (const auto& [name, blocks] : containers) {
          for (const MemoryBlock& block : blocks) held += block.size_bytes;
        }
      }
      std::int64_t reserved = 0;
      for (const auto& [node, state] : memory.assignments().nodes) {
        const MemoryTable& table = state.tables.at("memory");
        ASSERT_EQ(table.reserved + table.free, table.allocatable);
        ASSERT_GE(table.free, 0);
        reserved += table.reserved;
      }
      ASSERT_EQ(held, reserved);
      const auto again = StaticMemory::create(setup, memory.assignments());
      ASSERT_TRUE(again) << again.error().text();
      ASSERT_EQ(again->assignments(), memory.assignments());
    }
    memory.keep_only({});
    ASSERT_EQ(memory.assignments(), empty.assignments());
  });
}

}  // namespace
}  // namespace spillway::admission
