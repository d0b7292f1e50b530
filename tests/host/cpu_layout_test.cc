// Goal: cores, sockets and NUMA nodes are read from the kernel's files as they are, and a machine that says nothing of
// NUMA is one node.
#include "host/observation/cpu_layout.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

class System {
 public:
  System() { fs::create_directories(root_); }

  ~System() { fs::remove_all(root_); }

  System(const System&) = delete;
  System& operator=(const System&) = delete;

  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  std::string path() const { return root_.string(); }

 private:
  fs::path root_ = fs::temp_directory_path() / ("spillway-cpus-" + std::to_string(::getpid()));
};

/// Two sockets of one core with two threads each; every socket is a NUMA node.
void two_sockets(const System& system) {
  system.put("cpu/online", "0-3\n");
  for (const int cpu : {0, 1, 2, 3}) {
    const std::string topology = "cpu/cpu" + std::to_string(cpu) + "/topology/";
    system.put(topology + "thread_siblings_list", cpu % 2 == 0 ? "0,2\n" : "1,3\n");
    system.put(topology + "physical_package_id", std::to_string(cpu % 2) + "\n");
  }
  system.put("node/online", "0-1\n");
  for (const int node : {0, 1}) {
    const std::string folder = "node/node" + std::to_string(node) + "/";
    system.put(folder + "cpulist", node == 0 ? "0,2\n" : "1,3\n");
    system.put(folder + "meminfo", "\nNode 0 MemTotal:        2048 kB\nNode 0 MemFree:          100 kB\n");
    system.put(folder + "distance", node == 0 ? "10 21\n" : "21 10\n");
    system.put(folder + "hugepages/hugepages-2048kB/nr_hugepages", "3\n");
  }
}

TEST(CpuLayout, IsReadFromTheKernelsFiles) {
  const System system;
  two_sockets(system);
  const auto layout = read_cpu_layout(system.path(), mebibytes(4), {});
  ASSERT_TRUE(layout) << layout.error().text();
  EXPECT_EQ(layout->cpus.places.size(), 4U);
  EXPECT_EQ(layout->cpus.places.at(3), (admission::CpuPlace{.core = 1, .socket = 1, .numa = 1}));
  EXPECT_EQ(layout->numa.memory.at(1),
            (admission::NumaMemory{{"memory", 2048 * 1024}, {"hugepages-2Mi", std::int64_t{3} << 21}}));
  EXPECT_EQ(layout->numa.distances, (std::vector<std::vector<std::uint64_t>>{{10, 21}, {21, 10}}));
}

TEST(CpuLayout, OfAPartOfTheMachineSharesItsMemory) {
  const System system;
  two_sockets(system);
  const auto layout = read_cpu_layout(system.path(), mebibytes(4), Bytes{1001});
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->numa.memory.at(0), (admission::NumaMemory{{"memory", 500}}));
  EXPECT_EQ(layout->numa.memory.at(1), (admission::NumaMemory{{"memory", 501}}));
}

TEST(CpuLayout, WithoutNumaIsOneNode) {
  const System system;
  system.put("cpu/online", "0,2\n");
  const auto layout = read_cpu_layout(system.path(), mebibytes(4), {});
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->cpus.all().text(), "0,2");
  EXPECT_EQ(layout->numa.memory, (std::map<int, admission::NumaMemory>{{0, {{"memory", mebibytes(4).count()}}}}));
  system.put("cpu/online", "some\n");
  EXPECT_FALSE(read_cpu_layout(system.path(), mebibytes(4), {}));
  EXPECT_FALSE(read_cpu_layout("/no/such/system", mebibytes(4), {}));
}

}  // namespace
}  // namespace spillway::host
