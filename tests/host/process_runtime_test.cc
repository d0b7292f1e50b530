#include "host/cgroup/cgroup_limits.h"
#include "host/kernel/kernel_file.h"
#include "host/process/orphaned_cgroups.h"
#include "host/real_machine.h"
#include "host/spawn/process_spawn.h"
#include "support/patience.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>

namespace spillway::host {
namespace {

using agent::ContainerExited;
using agent::ContainerStarted;
using agent::ContainerStartFailed;
using agent::PodStopped;
using ProcessRuntimeTest = RealMachine;

/// Holds 20 MB: dd has read them and cannot write them.
constexpr const char* kHog = "echo begin; dd if=/dev/zero bs=20000000 count=1 2>/dev/null | sleep 1000";
constexpr std::uint64_t kHogBytes = 18'000'000;

const rlim_t kOpenFilesBefore = [] {
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  // The first runtime of this process raises the limit; what it finds after that is ours already.
  files.rlim_cur = std::min<rlim_t>(files.rlim_cur, 1000);
  ::setrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur;
}();

TEST_F(ProcessRuntimeTest, RunsAProgramAndReportsItsExitCode) {
  create_pod("u1");
  start_shell("u1", "echo to stdout; echo to stderr >&2; printf unfinished; exit 7");
  const auto exited = wait_for<ContainerExited>("u1");
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exit_code, 7);
  EXPECT_EQ(exited->signal, 0);
  EXPECT_FALSE(exited->oom_killed);
  EXPECT_LE(exited->started_at, exited->finished_at);
  ASSERT_TRUE(std::holds_alternative<ContainerStarted>(events_.front()));
  EXPECT_GT(std::get<ContainerStarted>(events_.front()).pid, 0);
  EXPECT_EQ(count<ContainerExited>(), 1U);

  EXPECT_TRUE(logs("u1", "c", {" stdout F to stdout\n", " stderr F to stderr\n", " stdout P unfinished\n"}))
      << log_text("u1", "c");
}

TEST_F(ProcessRuntimeTest, ChildHasOnlyWhatItWasGiven) {
  create_pod("u1");
  rlimit files = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_GE(files.rlim_cur, std::min<rlim_t>(files.rlim_max, 65'536)) << "ours is raised";
  runtime_->execute(agent::StartContainer{
      .uid = "u1",
      .name = "c",
      .argv = {"sh", "-c",
               "env; pwd; ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0; ps -o sid= -p $$; "
               "echo $$; cat /proc/self/oom_score_adj; grep SigBlk /proc/self/status; ulimit -Sn"},
      .env = {{"COLOUR", "blue"}},
      .oom_score_adj = 321});
  ASSERT_TRUE(wait_for<ContainerExited>("u1"));
  EXPECT_TRUE(logs("u1", "c", {fmt::format(" F {}\n", kOpenFilesBefore)})) << "theirs is not: " << log_text("u1", "c");
  const std::string log = log_text("u1", "c");
  EXPECT_NE(log.find(" F COLOUR=blue\n"), std::string::npos) << log;
  EXPECT_NE(log.find(" F HOSTNAME=pod-u1\n"), std::string::npos) << log;
  EXPECT_NE(log.find("/pods/default_pod-u1_u1/_work\n"), std::string::npos) << log;
  EXPECT_EQ(log.find("LS_COLORS"), std::string::npos) << log;
  EXPECT_EQ(log.find("LD_PRELOAD"), std::string::npos) << log;
  EXPECT_NE(log.find(" F 0 1 2 3 /dev/null\n"), std::string::npos) << "3 is the directory that ls reads: " << log;
  EXPECT_NE(log.find(" F 321\n"), std::string::npos) << log;
  EXPECT_NE(log.find("SigBlk:\t0000000000000000\n"), std::string::npos) << log;
}

TEST_F(ProcessRuntimeTest, MissingProgramIsAStartFailure) {
  create_pod("u1");
  start("u1", "a", {"no-such-program"});
  start("u1", "b", {"/no/such/program"});
  const std::string plain_file = (state_ / "plain-file").string();
  std::ofstream(plain_file) << "no program";
  start("u1", "d", {plain_file});
  start("u1", "e", {});
  runtime_->execute(
      agent::StartContainer{.uid = "u1", .name = "f", .argv = {"true"}, .working_dir = "/no/such/directory"});
  EXPECT_EQ(wait_for<ContainerStartFailed>("u1", "a")->message,
            "exec: \"no-such-program\": executable file not found in $PATH");
  EXPECT_EQ(wait_for<ContainerStartFailed>("u1", "b")->message,
            "exec: \"/no/such/program\": No such file or directory");
  EXPECT_EQ(wait_for<ContainerStartFailed>("u1", "d")->message,
            fmt::format("exec: \"{}\": Permission denied", plain_file));
  EXPECT_EQ(wait_for<ContainerStartFailed>("u1", "e")->message, "e: no command specified");
  EXPECT_EQ(wait_for<ContainerStartFailed>("u1", "f")->message,
            "working directory \"/no/such/directory\": No such file or directory");
  EXPECT_EQ(count<ContainerStarted>(), 0U);
  EXPECT_EQ(count<ContainerExited>(), 0U);
  // The name is free again.
  start("u1", "a", {"true"}, 1);
  EXPECT_EQ(wait_for<ContainerExited>("u1", "a")->attempt, 1);
}

TEST_F(ProcessRuntimeTest, CgroupsOfPodsThatAreNotThereAreCleared) {
  const CgroupDir& parent = slice_->parent_of(api::QosClass::kBestEffort);
  const Result<CgroupDir> ghost = parent.create_child("podghost");
  const Result<CgroupDir> other = parent.create_child("machine");
  ASSERT_TRUE(ghost && other);
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  SpawnPlan plan{.argv = {"sleep", "1000"}, .environment = {"PATH=/bin:/usr/bin"}, .working_dir = "/"};
  plan.cgroup = &*ghost;
  plan.stdout_fd = plan.stderr_fd = null.get();
  ASSERT_TRUE(spawn(plan));
  create_pod("u1", api::QosClass::kBestEffort);
  start("u1", "c", {"sleep", "1000"});
  ASSERT_TRUE(wait_for<ContainerStarted>("u1"));
  OrphanedCgroups orphans(*slice_);
  const auto is_known = [](std::string_view uid) { return uid == "u1"; };
  EXPECT_TRUE(orphans.clear(is_known).empty()) << "it may be just being removed";
  EXPECT_TRUE(run_until([&] {
    orphans.clear(is_known);
    return !parent.open_child("podghost");
  }));
  EXPECT_TRUE(parent.open_child("machine")) << "it is nobody's pod";
  EXPECT_TRUE(parent.open_child("podu1"));
  EXPECT_EQ(count<ContainerExited>(), 0U);
}

class ProcessRuntimeHousekeepingTest : public RealMachine {
 protected:
  ProcessRuntimeHousekeepingTest() { housekeeping_ = milliseconds(20); }
};

TEST_F(ProcessRuntimeHousekeepingTest, FindsThemAllTheTime) {
  const CgroupDir& parent = slice_->parent_of(api::QosClass::kBurstable);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(parent.create_child("podghost"));
    EXPECT_TRUE(run_until([&] { return !parent.open_child("podghost"); }));
  }
}

TEST_F(ProcessRuntimeTest, UnknownPodRefusesContainersAndIsStoppedAlready) {
  start("nobody", "c", {"true"});
  EXPECT_EQ(wait_for<ContainerStartFailed>("nobody")->reason, "CreateContainerError");
  runtime_->execute(agent::StopPod{"nobody", seconds(1)});
  EXPECT_TRUE(wait_for<PodStopped>("nobody"));
}

TEST_F(ProcessRuntimeTest, TermWithinGraceIsGentle) {
  create_pod("u1");
  start_shell("u1", "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(run_until([&] { return log_text("u1", "c").contains("ready"); }));
  runtime_->execute(agent::StopContainer{"u1", "c", support::kPatience});
  const auto exited = wait_for<ContainerExited>("u1");
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exit_code, 0);
  EXPECT_TRUE(logs("u1", "c", {"bye"})) << log_text("u1", "c");
}

TEST_F(ProcessRuntimeTest, GraceEndsInSigkill) {
  create_pod("u1");
  start_shell("u1", "trap '' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(run_until([&] { return log_text("u1", "c").contains("ready"); }));
  const Instant asked = loop_.now().mono;
  runtime_->execute(agent::StopPod{"u1", milliseconds(300)});
  const auto exited = wait_for<ContainerExited>("u1");
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exit_code, 137);
  EXPECT_EQ(exited->signal, SIGKILL);
  EXPECT_GE(loop_.now().mono - asked, milliseconds(300));
  EXPECT_TRUE(wait_for<PodStopped>("u1"));
  EXPECT_EQ(count<PodStopped>(), 1U);
}

TEST_F(ProcessRuntimeTest, ShorterGraceWins) {
  create_pod("u1");
  start_shell("u1", "trap '' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(run_until([&] { return log_text("u1", "c").contains("ready"); }));
  runtime_->execute(agent::StopContainer{"u1", "c", minutes(10)});
  runtime_->execute(agent::StopContainer{"u1", "c", milliseconds(20)});
  ASSERT_TRUE(wait_for<ContainerExited>("u1"));
}

TEST_F(ProcessRuntimeTest, DaemonsDoNotEscape) {
  create_pod("u1");
  // Twice forked, in a session of its own, ignoring every signal it can.
  start_shell(
      "u1",
      "for i in 1 2 3; do (setsid sh -c \"trap '' TERM HUP INT; echo daemon; while :; do sleep 0.01; done\" &) & "
      "done; echo ready; sleep 1000");
  ASSERT_TRUE(run_until([&] {
    const std::string log = log_text("u1", "c");
    return std::ranges::count(log, '\n') >= 4;
  }));
  std::vector<pid_t> before;  // the shell may not have begun its last program
  ASSERT_TRUE(run_until([&] {
    before = pod_pids("u1");
    return before.size() >= 5U;
  })) << before.size();
  runtime_->execute(agent::StopContainer{"u1", "c", Duration::zero()});
  ASSERT_TRUE(wait_for<ContainerExited>("u1"));
  EXPECT_TRUE(pod_pids("u1").empty());
  for (const pid_t pid : before) EXPECT_TRUE(run_until([&] { return has_ended(pid); })) << pid << " lives";
}

TEST_F(ProcessRuntimeTest, WhatTheFirstProcessLeavesBehindDiesWithIt) {
  create_pod("u1");
  start_shell("u1", "setsid sleep 1000 & setsid sleep 1000 & exit 3");
  const auto exited = wait_for<ContainerExited>("u1");
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exit_code, 3);
  EXPECT_TRUE(pod_pids("u1").empty());
}

TEST_F(ProcessRuntimeTest, ForkBombIsKilled) {
  create_pod("u1");
  start_shell("u1", "bomb() { bomb | bomb & wait; }; bomb 2>/dev/null");
  ASSERT_TRUE(run_until([&] { return pod_pids("u1").size() > 100; }));
  runtime_->execute(agent::StopPod{"u1", Duration::zero()});
  ASSERT_TRUE(wait_for<PodStopped>("u1"));
  EXPECT_TRUE(pod_pids("u1").empty());
}

TEST_F(ProcessRuntimeTest, MemoryLimitEndsInAnOomKill) {
  create_pod("u1", api::QosClass::kGuaranteed, mebibytes(24));
  runtime_->execute(agent::StartContainer{
      .uid = "u1", .name = "c", .argv = {"tail", "/dev/zero"}, .memory_limit = mebibytes(24), .oom_score_adj = 1000});
  const auto exited = wait_for<ContainerExited>("u1");
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exit_code, 137);
  EXPECT_TRUE(exited->oom_killed);
}

TEST_F(ProcessRuntimeTest, RestartGetsAFreshCgroupAndLog) {
  create_pod("u1");
  for (const int attempt : {0, 1, 2}) {
    start("u1", "c", {"sh", "-c", fmt::format("echo attempt {}", attempt)}, attempt);
    ASSERT_TRUE(run_until([&] { return count<ContainerExited>() == static_cast<std::size_t>(attempt) + 1; }));
    EXPECT_TRUE(logs("u1", "c", {fmt::format("attempt {}", attempt)}, attempt));
  }
  const Result<std::string> newest = runtime_->find_log({"default", "pod-u1"}, "c", 2);
  ASSERT_TRUE(newest) << newest.error().text();
  EXPECT_TRUE(newest->ends_with("/c/2.log"));
  EXPECT_TRUE(runtime_->find_log({"default", "pod-u1"}, "c", 1)->ends_with("/c/1.log"));
  EXPECT_EQ(runtime_->find_log({"default", "pod-u1"}, "c", 3).error().code, ErrorCode::kNotFound);
}

TEST_F(ProcessRuntimeTest, RemovedContainerTakesItsLogAndNoOther) {
  create_pod("u1");
  start("u1", "c", {"true"}, 0);
  ASSERT_TRUE(wait_for<ContainerExited>("u1"));
  start("u1", "c", {"sleep", "1000"}, 1);
  ASSERT_TRUE(run_until([&] { return count<ContainerStarted>() == 2; }));
  const std::filesystem::path folder = state_ / "pods" / "default_pod-u1_u1" / "c";
  std::ofstream(folder / "0.log.1") << "rotated";
  runtime_->execute(agent::RemoveContainer{"u1", "c", 1});
  runtime_->execute(agent::RemoveContainer{"u1", "c", 0});
  EXPECT_TRUE(run_until([&] { return !std::filesystem::exists(folder / "0.log"); }));
  EXPECT_TRUE(run_until([&] { return !std::filesystem::exists(folder / "0.log.1"); }));
  EXPECT_TRUE(std::filesystem::exists(folder / "1.log")) << "it runs";
}

TEST_F(ProcessRuntimeTest, PodsTogetherAreLimited) {
  runtime_->execute(agent::LimitGroup{
      .cgroup = {}, .limits = {.memory = mebibytes(96), .cpu_milli = 1500, .pids_max = 77, .huge_pages = {}}});
  ASSERT_TRUE(run_until([&] { return count<agent::GroupLimited>() == 1; }));
  const agent::GroupLimited answer = std::get<agent::GroupLimited>(events_.back());
  EXPECT_TRUE(answer.outcome) << answer.outcome.error().text();
  const bool v1 = slice_->kubepods().version() == CgroupVersion::kV1;
  const auto memory = slice_->kubepods().read(Controller::kMemory, v1 ? "memory.limit_in_bytes" : "memory.max");
  ASSERT_TRUE(memory);
  EXPECT_TRUE(memory->starts_with(fmt::format("{}", mebibytes(96).count()))) << *memory;
  if (!slice_->kubepods().has(Controller::kPids)) return;
  EXPECT_TRUE(slice_->kubepods().read(Controller::kPids, "pids.max").value_or("").starts_with("77"));
}

TEST_F(ProcessRuntimeTest, DaemonsAreLimitedInTheirOwnCgroup) {
  const Result<CgroupDir> daemons = slice_->slice().create_child("daemons");
  ASSERT_TRUE(daemons) << daemons.error().text();
  runtime_->execute(agent::LimitGroup{.group = agent::LimitedGroup::kKubeReserved,
                                      .cgroup = daemons->path(),
                                      .limits = {.memory = mebibytes(64), .cpu_milli = 250, .pids_max = 50}});
  runtime_->execute(agent::LimitGroup{
      .group = agent::LimitedGroup::kSystemReserved, .cgroup = daemons->path() + "-not", .limits = {}});
  ASSERT_TRUE(run_until([&] { return count<agent::GroupLimited>() == 2; }));
  const agent::GroupLimited refused = std::get<agent::GroupLimited>(events_.back());
  EXPECT_EQ(refused.group, agent::LimitedGroup::kSystemReserved);
  ASSERT_FALSE(refused.outcome);
  EXPECT_EQ(refused.outcome.error().code, ErrorCode::kNotFound);
  const bool v1 = daemons->version() == CgroupVersion::kV1;
  const auto first_line = [&](Controller controller, const char* file) {
    return daemons->read(controller, file).value_or("");
  };
  EXPECT_EQ(first_line(Controller::kMemory, v1 ? "memory.limit_in_bytes" : "memory.max"), "67108864\n");
  EXPECT_EQ(first_line(Controller::kPids, "pids.max"), "50\n");
  EXPECT_EQ(first_line(Controller::kCpu, v1 ? "cpu.shares" : "cpu.weight"), v1 ? "256\n" : "10\n");
}

TEST_F(ProcessRuntimeTest, RemovedPodLeavesNothing) {
  create_pod("u1");
  start_shell("u1", "sleep 1000");
  ASSERT_TRUE(wait_for<ContainerStarted>("u1"));
  runtime_->execute(agent::RemovePod{"u1"});
  ASSERT_TRUE(wait_for<ContainerExited>("u1"));
  EXPECT_TRUE(run_until([&] { return !std::filesystem::exists(state_ / "pods" / "default_pod-u1_u1"); }));
  EXPECT_FALSE(slice_->parent_of(api::QosClass::kBestEffort).open_child("podu1"));
  EXPECT_TRUE(runtime_->pods().empty());
}

TEST_F(ProcessRuntimeTest, CreatePodTwiceIsHarmless) {
  create_pod("u1");
  start_shell("u1", "sleep 1000");
  create_pod("u1");
  ASSERT_TRUE(wait_for<ContainerStarted>("u1"));
  EXPECT_EQ(runtime_->pods().size(), 1U);
  start_shell("u1", "true");
  EXPECT_TRUE(wait_for<ContainerStartFailed>("u1")->message.contains("still running"));
}

TEST_F(ProcessRuntimeTest, LimitsAreInTheFiles) {
  runtime_->execute(agent::CreatePod{.uid = "u1",
                                     .pod = {"default", "pod-u1"},
                                     .qos = api::QosClass::kBurstable,
                                     .memory_limit = mebibytes(64),
                                     .cpu_limit_milli = 500,
                                     .cpu_request_milli = 250,
                                     .pids_max = 40});
  runtime_->execute(agent::StartContainer{.uid = "u1",
                                          .name = "c",
                                          .argv = {"sleep", "1000"},
                                          .memory_limit = mebibytes(32),
                                          .cpu_limit_milli = 300,
                                          .cpu_request_milli = 125});
  ASSERT_TRUE(wait_for<ContainerStarted>("u1"));
  const CgroupDir& burstable = slice_->parent_of(api::QosClass::kBurstable);
  const Result<CgroupDir> pod = burstable.open_child("podu1");
  ASSERT_TRUE(pod);
  const Result<CgroupDir> container = pod->open_child("c");
  ASSERT_TRUE(container);
  if (pod->version() == CgroupVersion::kV1) {
    EXPECT_EQ(*pod->read(Controller::kMemory, "memory.limit_in_bytes"), "67108864\n");
    EXPECT_EQ(*pod->read(Controller::kCpu, "cpu.cfs_quota_us"), "50000\n");
    EXPECT_EQ(*pod->read(Controller::kCpu, "cpu.shares"), "256\n");
    EXPECT_EQ(*burstable.read(Controller::kCpu, "cpu.shares"), "256\n");
    EXPECT_EQ(*container->read(Controller::kMemory, "memory.limit_in_bytes"), "33554432\n");
    EXPECT_EQ(*container->read(Controller::kCpu, "cpu.cfs_quota_us"), "30000\n");
  } else {
    EXPECT_EQ(*pod->read(Controller::kMemory, "memory.max"), "67108864\n");
    EXPECT_EQ(*container->read(Controller::kMemory, "memory.max"), "33554432\n");
  }
  if (pod->has(Controller::kPids)) {
    EXPECT_EQ(*pod->read(Controller::kPids, "pids.max"), "40\n");
  }
  EXPECT_EQ(container->pids()->size(), 1U);
}

TEST_F(ProcessRuntimeTest, ResizesAPodThatRuns) {
  runtime_->execute(agent::CreatePod{.uid = "u1",
                                     .pod = {"default", "pod-u1"},
                                     .qos = api::QosClass::kBurstable,
                                     .memory_limit = mebibytes(64),
                                     .cpu_limit_milli = 500,
                                     .cpu_request_milli = 250});
  runtime_->execute(agent::StartContainer{
      .uid = "u1", .name = "c", .argv = {"sh", "-c", kHog}, .memory_limit = mebibytes(64), .cpu_limit_milli = 500});
  ASSERT_TRUE(wait_for<ContainerStarted>("u1"));
  const Result<CgroupDir> pod = slice_->parent_of(api::QosClass::kBurstable).open_child("podu1");
  ASSERT_TRUE(pod);
  const Result<CgroupDir> container = pod->open_child("c");
  ASSERT_TRUE(container);
  const bool v1 = pod->version() == CgroupVersion::kV1;
  const auto memory_of = [v1](const CgroupDir& cgroup) {
    const auto text = cgroup.read(Controller::kMemory, v1 ? "memory.limit_in_bytes" : "memory.max");
    return text ? *text : text.error().text();
  };
  std::uint64_t id = 0;
  // The agent's idea of the limits before is wrong, as after a kill: the files of the cgroups count.
  const auto resize = [&](std::int64_t milli, Bytes memory) {
    const containers::GroupAmounts before{.memory_limit = memory, .cpu_limit_milli = 600, .cpu_request_milli = 250};
    const containers::GroupAmounts after{.memory_limit = memory, .cpu_limit_milli = milli, .cpu_request_milli = 300};
    runtime_->execute(agent::ResizePod{.id = ++id,
                                       .uid = "u1",
                                       .pod = {"", before, after},
                                       .containers = {{"c", before, after}, {"no-such", before, after}}});
    EXPECT_TRUE(run_until([&] { return count<agent::PodResized>() == id; }));
    std::string problem = "no answer";
    for (const agent::HostEvent& event : events_) {
      if (const auto* answer = std::get_if<agent::PodResized>(&event)) problem = answer->problem;
    }
    return problem;
  };
  EXPECT_EQ(resize(700, mebibytes(128)), "");
  EXPECT_EQ(memory_of(*pod), "134217728\n");
  EXPECT_EQ(memory_of(*container), "134217728\n");
  for (const std::int64_t milli : {700, 900, 650, 550, 1200}) {
    EXPECT_EQ(resize(milli, mebibytes(128)), "") << milli;
    for (const CgroupDir* cgroup : {&*pod, &*container}) {
      if (cgroup->has(Controller::kCpu))
        EXPECT_EQ(compare_cpu_quota(*cgroup, milli * 100, kCpuPeriodMicros), std::strong_ordering::equal) << milli;
    }
  }
  ASSERT_TRUE(run_until([&] {
    const auto used = container->read(Controller::kMemory, v1 ? "memory.usage_in_bytes" : "memory.current");
    return used && parse_number(*used).value_or(0) > kHogBytes;
  }));
  const std::string problem = resize(700, mebibytes(16));
  EXPECT_TRUE(
      problem.starts_with("cannot decrease memory limits: [attempting to set container \"c\" memory limit "
                          "(16777216) below current usage ("))
      << problem;
  EXPECT_EQ(memory_of(*container), "134217728\n") << "nothing of it is done";
  EXPECT_EQ(resize(700, mebibytes(96)), "");
  EXPECT_EQ(memory_of(*pod), "100663296\n");
  EXPECT_EQ(memory_of(*container), "100663296\n");
  EXPECT_EQ(count<ContainerExited>(), 0U);
}

TEST_F(ProcessRuntimeTest, ObservesNodePodsAndContainers) {
  create_pod("u1", api::QosClass::kBurstable);
  start("u1", "hog", {"sh", "-c", kHog});
  ASSERT_TRUE(logs("u1", "hog", {"begin"}));
  api::Summary summary;
  ASSERT_TRUE(run_until([&] {  // until the shell has begun both programs, so that nothing changes any more
    summary = observe();
    if (!summary.node.fs || summary.pods.at(0).containers.empty()) return false;
    const std::optional<api::MemoryStats>& hog = summary.pods[0].containers[0].memory;
    return hog && *hog->working_set_bytes > kHogBytes && summary.pods[0].process_count.value_or(0) >= 3U;
  }));
  ASSERT_TRUE(summary.node.memory);
  EXPECT_EQ(summary.node.node_name, "n1");
  const api::MemoryStats& node = *summary.node.memory;
  EXPECT_EQ(*node.available_bytes + *node.working_set_bytes, static_cast<std::uint64_t>(mebibytes(128).count()));
  ASSERT_GE(summary.node.system_containers.size(), 1U);
  EXPECT_EQ(summary.node.system_containers[0].name, "pods");
  EXPECT_TRUE(summary.node.system_containers[0].memory->available_bytes);
  EXPECT_EQ(summary.node.rlimit->max_pid, 200);
  EXPECT_EQ(summary.node.rlimit->running_processes, static_cast<std::int64_t>(*summary.pods.at(0).process_count) + 1)
      << "its supervisor is in none of its cgroups";
  ASSERT_EQ(summary.pods.size(), 1U);
  const api::PodStats& pod = summary.pods[0];
  EXPECT_EQ(pod.uid, "u1");
  EXPECT_GE(*pod.process_count, 2U);
  EXPECT_GT(*pod.memory->working_set_bytes, kHogBytes);
  EXPECT_GT(*pod.cpu->usage_core_nano_seconds, 0U);
  ASSERT_EQ(pod.containers.size(), 1U);
  EXPECT_EQ(pod.containers[0].name, "hog");
  EXPECT_GT(*pod.containers[0].memory->working_set_bytes, kHogBytes);
  EXPECT_EQ(pod.containers[0].logs->used_bytes, log_text("u1", "hog").size());
  EXPECT_GT(*pod.containers[0].memory->page_faults, 0U);
  EXPECT_TRUE(pod.containers[0].swap && pod.swap && summary.node.swap);
  ASSERT_TRUE(summary.node.start_time && pod.start_time && pod.containers[0].start_time);
  EXPECT_LE(*summary.node.start_time, *pod.start_time);
  EXPECT_LE(*pod.start_time, *pod.containers[0].start_time);
  EXPECT_EQ(pod.network, summary.node.network) << "pods share the machine's network";
  EXPECT_FALSE(summary.node.memory->psi) << "not asked for";
}

TEST_F(ProcessRuntimeTest, ItsOwnCgroupIsASystemContainerUnlessItIsTheRoot) {
  const Result<std::string> text = read_file("/proc/self/cgroup");
  ASSERT_TRUE(text);
  const std::string path = parse_memory_path(*text, read_cgroup_mounts()->version);
  const bool has_own = path != "/" && !path.contains("/..");
  const api::Summary summary = observe();
  const auto kubelet = std::ranges::find(summary.node.system_containers, "kubelet", &api::ContainerStats::name);
  ASSERT_EQ(kubelet != summary.node.system_containers.end(), has_own) << path;
  if (!has_own) return;
  EXPECT_GT(*kubelet->memory->working_set_bytes, 0U);
  EXPECT_TRUE(kubelet->start_time);
}

TEST_F(ProcessRuntimeTest, NodeMemoryAloneIsWhatTheWholePassSays) {
  create_pod("u1");
  start_shell("u1", kHog);
  std::uint64_t before = 0;  // at rest: two readings are equal
  ASSERT_TRUE(run_until([&] {
    const std::uint64_t used = *observe().node.memory->working_set_bytes;
    return std::exchange(before, used) == used && used > kHogBytes;
  }));
  events_.clear();
  runtime_->execute(agent::Observe{4711, agent::ObserveDepth::kNodeMemory});
  std::optional<agent::Observed> quick;
  ASSERT_TRUE(run_until([&] {
    for (const agent::HostEvent& event : events_)
      if (const auto* observed = std::get_if<agent::Observed>(&event)) quick = *observed;
    return quick.has_value();
  }));
  ASSERT_EQ(quick->id, 4711U);
  ASSERT_EQ(quick->depth, agent::ObserveDepth::kNodeMemory);
  ASSERT_TRUE(quick->summary) << quick->summary.error().text();
  const api::Summary whole = observe();
  const auto near = [](std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
    EXPECT_NEAR(static_cast<double>(*a), static_cast<double>(*b), 1 << 20);
  };
  near(quick->summary->node.memory->available_bytes, whole.node.memory->available_bytes);
  near(quick->summary->node.memory->working_set_bytes, whole.node.memory->working_set_bytes);
  ASSERT_EQ(quick->summary->node.system_containers.size(), 1U);
  near(quick->summary->node.system_containers[0].memory->available_bytes,
       whole.node.system_containers[0].memory->available_bytes);
  EXPECT_TRUE(quick->summary->pods.empty());
}

TEST_F(ProcessRuntimeTest, ShutdownStopsEverythingAndRefusesMore) {
  for (const std::string uid : {"u1", "u2", "u3"}) {
    create_pod(uid);
    start(uid, "c", {"sleep", "1000"});
    ASSERT_TRUE(wait_for<ContainerStarted>(uid));
  }
  bool done = false;
  runtime_->shutdown(support::kPatience, [&] { done = true; });
  EXPECT_TRUE(run_until([&] { return done; }));
  EXPECT_EQ(count<ContainerExited>(), 3U);
  start("u1", "late", {"true"});
  EXPECT_TRUE(wait_for<ContainerStartFailed>("u1", "late"));
}

TEST_F(ProcessRuntimeTest, ANodeThatIsFullSaysSo) {
  Result<std::unique_ptr<ProcessRuntime>> small = ProcessRuntime::create(
      loop_, *slice_, *this, telemetry::Log(), {.state_dir = (state_ / "small").string(), .pods_max = 1});
  ASSERT_TRUE(small) << small.error().text();
  (*small)->execute(agent::CreatePod{.uid = "s1", .pod = {"default", "one"}});
  (*small)->execute(agent::CreatePod{.uid = "s2", .pod = {"default", "two"}});
  (*small)->execute(agent::StartContainer{.uid = "s2", .name = "c", .argv = {"true"}});
  EXPECT_EQ(wait_for<ContainerStartFailed>("s2")->message, "this node runs 1 pods already");
}

TEST_F(ProcessRuntimeTest, NamesThatLeadElsewhereAreRefused) {
  runtime_->execute(agent::CreatePod{.uid = "../../x", .pod = {"default", "pod"}});
  start("../../x", "c", {"true"});
  EXPECT_EQ(wait_for<ContainerStartFailed>("../../x")->reason, "CreateContainerError");
  create_pod("u1");
  for (const std::string name : {"..", "a/b", "_work", ""}) {
    start("u1", name, {"true"});
    EXPECT_TRUE(run_until([&] {
      return std::ranges::any_of(events_, [&](const agent::HostEvent& event) {
        const auto* failed = std::get_if<ContainerStartFailed>(&event);
        return failed != nullptr && failed->uid == "u1" && failed->name == name;
      });
    })) << name;
  }
  EXPECT_EQ(count<ContainerStarted>(), 0U);
}

TEST_F(ProcessRuntimeTest, RemainsOfAnEarlierProcessAreCleared) {
  const std::filesystem::path stale = state_ / "pods" / "default_old_uid";
  const std::filesystem::path foreign = state_ / "pods" / "keep";
  std::filesystem::create_directories(stale / "c");
  std::filesystem::create_directories(foreign);
  runtime_.reset();
  Result<std::unique_ptr<ProcessRuntime>> again =
      ProcessRuntime::create(loop_, *slice_, *this, telemetry::Log(), {.state_dir = state_.string()});
  ASSERT_TRUE(again) << again.error().text();
  runtime_ = *std::move(again);
  EXPECT_FALSE(std::filesystem::exists(stale));
  EXPECT_TRUE(std::filesystem::exists(foreign)) << "what is not ours stays";
}

TEST_F(ProcessRuntimeTest, MuchOutputIsBoundedAndComplete) {
  create_pod("u1");
  start_shell("u1", "seq 1 20000; head -c 40000 /dev/zero | tr '\\0' x");
  ASSERT_TRUE(wait_for<ContainerExited>("u1"));
  ASSERT_TRUE(run_until([&] { return std::ranges::count(log_text("u1", "c"), '\n') >= 20003; }))
      << std::ranges::count(log_text("u1", "c"), '\n');
  const std::string log = log_text("u1", "c");
  EXPECT_TRUE(log.contains(" F 1\n"));
  EXPECT_TRUE(log.contains(" F 20000\n"));
  EXPECT_EQ(std::ranges::count(log, '\n'), 20003);  // 40000 bytes without an end: two pieces of 16 KiB and the rest
  EXPECT_EQ(std::ranges::count(log, 'x'), 40000);
}

}  // namespace
}  // namespace spillway::host
