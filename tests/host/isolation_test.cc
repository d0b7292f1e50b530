// Goal: settings of a pod's namespaces apply to all its containers and to no other process, and a container runs on the
// CPUs it was given.
#include "host/kernel/kernel_file.h"
#include "host/kernel/pod_namespaces.h"
#include "host/real_machine.h"

#include <optional>

namespace spillway::host {
namespace {

using agent::ContainerExited;
using agent::ContainerStartFailed;

struct PodIsolationTest : RealMachine {
  void SetUp() override {
    const auto possible = PodNamespaces::create({.ipc = true, .network = true});
    if (!possible) GTEST_SKIP() << "namespaces cannot be made here: " << possible.error().text();
    RealMachine::SetUp();
  }

  void create(agent::PodIsolation isolation) {
    runtime_->execute(agent::CreatePod{.uid = "u1", .pod = {"default", "pod-u1"}, .isolation = std::move(isolation)});
  }

  /// The output of the script, without the prefix of the log. The whole output is in the log when its last line is.
  std::string said(const std::string& container, const std::string& script) {
    start("u1", container, {"/bin/sh", "-c", script + "; echo that-is-all"});
    EXPECT_TRUE(wait_for<ContainerExited>("u1", container));
    EXPECT_TRUE(logs("u1", container, {"that-is-all\n"})) << script;
    std::string log = log_text("u1", container);
    log.resize(log.rfind('\n', log.find("that-is-all")) + 1);
    const std::size_t mark = log.find(" F ");
    return mark == std::string::npos ? log : log.substr(mark + 3);
  }
};

TEST_F(PodIsolationTest, IpcSysctlsHoldInAllContainersAndNowhereElse) {
  const auto before = read_file("/proc/sys/kernel/shmmni");
  create({.ipc = true, .sysctls = {{"kernel.shmmni", "1234"}, {"fs.mqueue.msg_max", "77"}}});
  EXPECT_EQ(said("a", "echo $(cat /proc/sys/kernel/shmmni /proc/sys/fs/mqueue/msg_max)"), "1234 77\n");
  const std::string space = said("b", "readlink /proc/self/ns/ipc");
  EXPECT_TRUE(space.starts_with("ipc:")) << space;
  EXPECT_EQ(said("d", "readlink /proc/self/ns/ipc"), space);
  EXPECT_EQ(*read_file("/proc/sys/kernel/shmmni"), *before);
}

TEST_F(PodIsolationTest, ANetworkOfItsOwnHasTheLoopbackDeviceAlone) {
  const auto before = read_file("/proc/sys/net/ipv4/ip_local_port_range");
  create({.network = true, .sysctls = {{"net.ipv4.ip_local_port_range", "2000 3000"}}});
  EXPECT_EQ(said("a", "cat /proc/sys/net/ipv4/ip_local_port_range"), "2000\t3000\n");
  EXPECT_EQ(said("b", "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"), "lo\n");
  EXPECT_NE(said("d", "cat /proc/net/fib_trie").find("Main"), std::string::npos);
  EXPECT_NE(log_text("u1", "d").find("127.0.0.1"), std::string::npos) << "the loopback device is up";
  EXPECT_EQ(*read_file("/proc/sys/net/ipv4/ip_local_port_range"), *before);
}

TEST_F(PodIsolationTest, AValueTheKernelRefusesKeepsTheContainerFromStarting) {
  create({.ipc = true, .sysctls = {{"kernel.shmmni", "many"}}});
  start("u1", "a", {"/bin/true"});
  const auto failed = wait_for<ContainerStartFailed>("u1");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->reason, "CreateContainerError");
  EXPECT_EQ(failed->message, "sysctl \"kernel.shmmni\" cannot be set to \"many\": Invalid argument");
}

TEST_F(PodIsolationTest, ANameThatLeavesItsFolderIsRefused) {
  create({.network = true, .sysctls = {{"net.//.kernel.panic", "1"}}});
  start("u1", "a", {"/bin/true"});
  const auto failed = wait_for<ContainerStartFailed>("u1");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->reason, "CreateContainerError");
  EXPECT_NE(failed->message.find("is no kernel parameter"), std::string::npos) << failed->message;
}

TEST(SysctlPath, HasSlashesForDots) {
  EXPECT_EQ(*sysctl_path("kernel.shmmax"), "/proc/sys/kernel/shmmax");
  EXPECT_EQ(*sysctl_path("net.ipv4.conf.eth0/100.rp_filter"), "/proc/sys/net/ipv4/conf/eth0.100/rp_filter");
  for (const char* name : {"", "net.", ".x", "net.//.kernel", "net./.x"}) EXPECT_FALSE(sysctl_path(name)) << name;
}

struct CpusetTest : RealMachine {
  CpusetTest() { extra_controllers_ = {Controller::kCpuset}; }

  void SetUp() override {
    RealMachine::SetUp();
    if (slice_ && !slice_->kubepods().has(Controller::kCpuset)) GTEST_SKIP() << "there is no cpuset controller here";
  }

  std::string allowed(const std::string& container) {
    const std::string log = log_text("u1", container);
    const std::size_t at = log.rfind("Cpus_allowed_list:\t");
    return at == std::string::npos ? "" : log.substr(at + 19, log.find('\n', at) - at - 19);
  }

  static constexpr const char* kReportCpus = "while :; do grep Cpus_allowed_list /proc/self/status; sleep 0.05; done";
};

TEST_F(CpusetTest, AContainerHasItsCpusAndThePoolMoves) {
  create_pod("u1", api::QosClass::kGuaranteed);
  runtime_->execute(agent::StartContainer{.uid = "u1",
                                          .name = "own",
                                          .argv = {"/bin/sh", "-c", kReportCpus},
                                          .cpuset = {.cpus = "0", .memory_nodes = "0", .shares = false}});
  runtime_->execute(agent::StartContainer{.uid = "u1",
                                          .name = "shared",
                                          .argv = {"/bin/sh", "-c", kReportCpus},
                                          .cpuset = {.cpus = "0-1", .memory_nodes = "", .shares = true}});
  EXPECT_TRUE(run_until([&] { return allowed("own") == "0" && allowed("shared") == "0-1"; }))
      << allowed("own") << " and " << allowed("shared");
  runtime_->execute(agent::ShareCpus{"1"});
  EXPECT_TRUE(run_until([&] { return allowed("shared") == "1"; })) << allowed("shared");
  EXPECT_EQ(allowed("own"), "0");
}

TEST_F(CpusetTest, AContainerWithCpusOfItsOwnStartsWhenTheirAssignmentIsOnTheDisk) {
  create_pod("u1", api::QosClass::kGuaranteed);
  const Result<CgroupDir> pod = slice_->parent_of(api::QosClass::kGuaranteed).open_child("podu1");
  ASSERT_TRUE(pod);
  runtime_->execute(agent::SaveCheckpoint{"cpu_manager_state", "assignments"});
  const auto start = [&](const char* name, bool shares) {
    runtime_->execute(agent::StartContainer{.uid = "u1",
                                            .name = name,
                                            .argv = {"/bin/sh", "-c", kReportCpus},
                                            .cpuset = {.cpus = "0", .memory_nodes = "", .shares = shares}});
  };
  start("shared", true);
  start("own", false);
  EXPECT_TRUE(pod->open_child("shared"));
  EXPECT_FALSE(pod->open_child("own")) << "it was started before the loop could learn of the file";
  EXPECT_TRUE(run_until([&] { return allowed("own") == "0"; })) << allowed("own");
}

TEST_F(CpusetTest, CpusThatAreNotThereKeepTheContainerFromStarting) {
  create_pod("u1", api::QosClass::kGuaranteed);
  runtime_->execute(agent::StartContainer{.uid = "u1",
                                          .name = "c",
                                          .argv = {"/bin/true"},
                                          .cpuset = {.cpus = "4000", .memory_nodes = "", .shares = false}});
  const auto failed = wait_for<ContainerStartFailed>("u1");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->reason, "CreateContainerError");
  EXPECT_NE(failed->message.find("cpuset.cpus"), std::string::npos) << failed->message;
}

TEST_F(CpusetTest, ACheckpointIsReplacedAsAWhole) {
  runtime_->execute(agent::SaveCheckpoint{"cpu_manager_state", "a long text that is replaced"});
  runtime_->execute(agent::SaveCheckpoint{"cpu_manager_state", "short"});
  EXPECT_TRUE(run_until([&] { return read_file(state_ / "cpu_manager_state").value_or("") == "short"; }));
}

}  // namespace
}  // namespace spillway::host
