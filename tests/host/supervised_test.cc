// Goal: running containers keep running when the process that runs the pods ends and begins again: the same processes,
// their logs without a gap, ends reported once and truly, and no remains without a pod.
#include "host/attach_client.h"
#include "host/cgroup/cgroup_kill.h"
#include "host/kernel/kernel_file.h"
#include "host/real_machine.h"
#include "host/spawn/process_spawn.h"
#include "host/supervisor/supervisor.h"
#include "support/patience.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace spillway::host {
namespace {

using agent::ContainerExited;
using agent::ContainerStarted;
using agent::PodsFound;
using agent::PodStopped;

TEST(SupervisedEnd, IsReadFromTheLastFieldOfAProcessThatIsNotCollected) {
  EXPECT_EQ(end_in_stat("7 (a) Z b) ) Z 1 2 3 1792\n")->exit_code, 7);
  EXPECT_EQ(end_in_stat("7 (sh) Z 1 2 9")->exit_code, 137);
  EXPECT_EQ(end_in_stat("7 (sh) Z 1 2 139")->signal, 11) << "with a core";
  EXPECT_FALSE(end_in_stat("7 (sh) S 1 2 0")) << "it runs";
  EXPECT_FALSE(end_in_stat("7 (sh) Z 1 2 x"));
  EXPECT_FALSE(end_in_stat("7 (sh) Z 1 2 "));
  EXPECT_FALSE(end_in_stat(""));
}

TEST(KeptRecords, AreReadAsTheyWereWritten) {
  agent::StartContainer container{.uid = "u", .name = "c", .attempt = 3};
  container.env = {{"A", "b \"c\"\n"}, {"A", ""}};
  container.working_dir = "/tmp";
  container.oom_score_adj = -997;
  container.cpuset.shares = true;
  container.security = {.uid = 65'535, .gid = 7, .groups = {1, 2}, .capabilities = 0xa80425fb, .read_only_root = true};
  container.files.push_back({.container_path = "/dev/termination-log", .content = "", .is_message = true});
  container.message_from_logs = container.standard_input = container.terminal = true;
  container.image = "registry/image:1";
  const auto same = parse_container_record(container_record(container));
  ASSERT_TRUE(same);
  EXPECT_EQ(same->env, container.env);
  EXPECT_EQ(same->security, container.security);
  EXPECT_EQ(container_record(*same), container_record(container));
  KeptPod pod{.command = {.uid = "u", .pod = {"ns", "p"}, .qos = api::QosClass::kBurstable},
              .first_id = 0x6FFF'0000,
              .created = WallTime(microseconds(1'700'000'000'000'001))};
  pod.command.memory_limit = mebibytes(3);
  pod.command.isolation = {.ipc = true, .sysctls = {{"net.x", "1"}}, .confined = true, .hostname = "h"};
  const auto same_pod = parse_pod_record(pod_record(pod));
  ASSERT_TRUE(same_pod);
  EXPECT_EQ(pod_record(*same_pod), pod_record(pod));
  EXPECT_EQ(same_pod->command.isolation, pod.command.isolation);
  EXPECT_EQ(same_pod->first_id, pod.first_id);
}

TEST(KeptRecords, BadOnesAreRefused) {
  for (const char* text : {"", "{", "[]", "{}", R"({"uid":1,"name":"c"})", R"({"uid":"u"})"}) {
    EXPECT_FALSE(parse_container_record(text)) << text;
    EXPECT_FALSE(parse_pod_record(text)) << text;
  }
  EXPECT_EQ(parse_ends("{\n\nnull\n{\"name\":\"\"}\n{\"name\":\"a\",\"attempt\":99999999999}").size(), 1U);
}

struct SupervisedTest : RealMachine {
  agent::FoundContainer found(const std::string& uid) {
    EXPECT_TRUE(run_until([&] { return count<PodsFound>() > 0; }));
    for (const agent::HostEvent& event : events_) {
      if (const auto* all = std::get_if<PodsFound>(&event))
        for (const agent::FoundPod& pod : all->pods)
          if (pod.uid == uid && !pod.containers.empty()) return pod.containers.front();
    }
    ADD_FAILURE() << "no container of " << uid;
    return {};
  }

  std::vector<pid_t> supervisors() const {
    const auto cgroup = slice_->slice().open_child("supervisors");
    return cgroup ? cgroup->pids().value_or(std::vector<pid_t>()) : std::vector<pid_t>();
  }

  void say(const std::string& uid, const std::string& word) const {
    std::ofstream(state_ / "pods" / fmt::format("default_pod-{}_{}", uid, uid) / "_work" / word) << word;
  }

  /// Prints the names of files that the test makes, until SIGTERM.
  static constexpr const char* kEchoes =
      "while :; do for f in one two three; do if [ -e $f ]; then echo heard $f; rm $f; fi; done; "
      "[ -e end ] && exit 7; sleep 0.02; done";
};

TEST_F(SupervisedTest, ARestartDisturbsNoProcessAndNoLog) {
  create_pod("u1");
  start_shell("u1", kEchoes);
  const auto started = wait_for<ContainerStarted>("u1");
  ASSERT_TRUE(started);
  say("u1", "one");
  ASSERT_TRUE(run_until([&] { return log_text("u1", "c").contains("heard one"); }));
  EXPECT_TRUE(run_until([&] { return supervisors().size() == 1U; }));
  runtime_->keep_pods();
  runtime_.reset();
  say("u1", "two");
  ASSERT_TRUE(run_until([&] { return log_text("u1", "c").contains("heard two"); })) << "while nobody is there";
  restart();
  const agent::FoundContainer again = found("u1");
  EXPECT_EQ(again.name, "c");
  EXPECT_EQ(again.attempt, 0);
  EXPECT_FALSE(again.ended);
  EXPECT_EQ(again.started_at, started->at);
  const std::vector<pid_t> pids = pod_pids("u1");  // its programs may have smaller numbers
  EXPECT_NE(std::ranges::find(pids, started->pid), pids.end());
  say("u1", "three");
  say("u1", "end");
  const auto exited = wait_for<ContainerExited>("u1");
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exit_code, 7);
  EXPECT_EQ(exited->started_at, started->at);
  EXPECT_TRUE(logs("u1", "c", {"heard one", "heard two", "heard three"})) << log_text("u1", "c");
  const std::string log = log_text("u1", "c");
  EXPECT_LT(log.find("heard one"), log.find("heard two")) << log;
  EXPECT_LT(log.find("heard two"), log.find("heard three")) << log;
  EXPECT_EQ(count<ContainerStarted>(), 0U);
  runtime_->execute(agent::StopPod{"u1", seconds(1)});
  ASSERT_TRUE(wait_for<PodStopped>("u1"));
  EXPECT_TRUE(run_until([&] { return supervisors().empty(); }));
}

TEST_F(SupervisedTest, ASlowSupervisorKeepsNoAnswerFromAnAttachedClient) {
  create_pod("u1");
  agent::StartContainer command{.uid = "u1", .name = "c"};
  command.argv = {"/bin/sh", "-c", "while read x; do echo got $x; done"};
  command.standard_input = true;
  runtime_->execute(command);
  ASSERT_TRUE(wait_for<ContainerStarted>("u1"));
  const auto console = runtime_->console({"default", "pod-u1"}, "u1", "c");
  ASSERT_TRUE(console) << console.error().text();
  ASSERT_TRUE(run_until([&] { return supervisors().size() == 1U; }));
  const pid_t supervisor = supervisors().front();
  ASSERT_EQ(::kill(supervisor, SIGSTOP), 0);
  AttachClient client(loop_, *console);
  client.says("one\n");
  bool passed = false;
  loop_.at(loop_.now().mono + milliseconds(200), [&] { passed = true; });  // time enough for a wrong answer
  ASSERT_TRUE(run_until([&] { return passed; }));
  ASSERT_EQ(::kill(supervisor, SIGCONT), 0);
  EXPECT_TRUE(run_until([&] { return client.received().contains("got one"); }));
}

TEST_F(SupervisedTest, AnEndWhileNoAgentRanIsReportedOnceAndTruly) {
  create_pod("u1");
  start_shell("u1", kEchoes);
  const auto started = wait_for<ContainerStarted>("u1");
  ASSERT_TRUE(started);
  runtime_->keep_pods();
  runtime_.reset();
  const WallTime before = loop_.now().wall;
  say("u1", "end");
  ASSERT_TRUE(run_until([&] { return pod_pids("u1").empty() && supervisors().size() == 1U; }));
  const auto supervisor = Supervisor::find(supervisors().front());
  ASSERT_TRUE(supervisor) << supervisor.error().text();
  ASSERT_TRUE(run_until([&] {
    const auto state = supervisor->state();
    return state && state->phase != SupervisedPhase::kRuns;
  })) << "the supervisor does not notice the end";
  const WallTime after = loop_.now().wall;
  restart();
  EXPECT_FALSE(found("u1").ended) << "it is told as an end";
  const auto exited = wait_for<ContainerExited>("u1");
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exit_code, 7);
  EXPECT_GE(exited->finished_at, before);
  EXPECT_LE(exited->finished_at, after);
  restart();
  const agent::FoundContainer ended = found("u1");
  ASSERT_TRUE(ended.ended);
  EXPECT_EQ(ended.ended->exit_code, 7);
  EXPECT_EQ(ended.ended->reason, "Error");
  EXPECT_EQ(ended.ended->finished_at, exited->finished_at);
  EXPECT_EQ(count<ContainerExited>(), 0U);
  EXPECT_TRUE(run_until([&] { return supervisors().size() == 1U; })) << "it holds the pod's namespaces";
  start("u1", "c", {"sleep", "1000"}, 1);
  ASSERT_TRUE(wait_for<ContainerStarted>("u1"));
  EXPECT_TRUE(run_until([&] { return supervisors().size() == 1U && supervisors().front() > 0; }));
}

TEST_F(SupervisedTest, WithoutItsSupervisorAContainerIsEndedAndThatIsSaid) {
  create_pod("u1");
  start("u1", "c", {"sleep", "1000"});
  ASSERT_TRUE(wait_for<ContainerStarted>("u1"));
  ASSERT_TRUE(run_until([&] { return supervisors().size() == 1U; }));
  ASSERT_EQ(::kill(supervisors().front(), SIGKILL), 0);
  const auto exited = wait_for<ContainerExited>("u1");
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->reason, "ContainerStatusUnknown");
  EXPECT_EQ(exited->exit_code, 137);
  EXPECT_TRUE(pod_pids("u1").empty());
}

TEST_F(SupervisedTest, WhatLostItsSupervisorMeanwhileIsEnded) {
  create_pod("u1");
  start("u1", "c", {"sleep", "1000"});
  ASSERT_TRUE(wait_for<ContainerStarted>("u1"));
  ASSERT_TRUE(run_until([&] { return supervisors().size() == 1U; }));
  const pid_t supervisor = supervisors().front();
  runtime_->keep_pods();
  runtime_.reset();
  ASSERT_EQ(::kill(supervisor, SIGKILL), 0);
  ASSERT_TRUE(run_until([&] { return supervisors().empty(); }));
  restart();
  ASSERT_TRUE(run_until([&] { return count<PodsFound>() > 0; }));
  EXPECT_TRUE(run_until([&] { return pod_pids("u1").empty(); }));
  start("u1", "c", {"true"}, 1);
  EXPECT_TRUE(wait_for<ContainerExited>("u1")) << "the pod is made again";
}

/// The supervisor's version is newer than the agent's, which therefore cannot take it over.
TEST_F(SupervisedTest, OneOfALaterVersionIsEndedWithItsContainer) {
  create_pod("u1");
  start("u1", "c", {"sleep", "1000"});
  ASSERT_TRUE(wait_for<ContainerStarted>("u1"));
  ASSERT_TRUE(run_until([&] { return supervisors().size() == 1U; }));
  runtime_->keep_pods();
  runtime_.reset();
  const std::string shared = fmt::format("/proc/{}/fd/{}", supervisors().front(), static_cast<int>(kStateFd));
  const UniqueFd state(::open(shared.c_str(), O_RDWR | O_CLOEXEC));
  const std::uint32_t later = kSupervisorVersion + 1;
  ASSERT_EQ(::pwrite(state.get(), &later, sizeof later, offsetof(SupervisorState, version)), ssize_t{sizeof later});
  const auto refused = Supervisor::find(supervisors().front());
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.ends_with("or has version 2; this agent knows 1")) << refused.error().text();
  restart();
  EXPECT_TRUE(run_until([&] { return pod_pids("u1").empty() && supervisors().empty(); }));
}

TEST_F(SupervisedTest, NothingOfAContainerStaysOpen) {
  const auto open_files = [] {
    return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                 std::filesystem::directory_iterator());
  };
  create_pod("u1");
  std::ptrdiff_t before = 0;
  for (std::int32_t attempt = 0; attempt < 12; ++attempt) {
    if (attempt == 2) before = open_files();
    start("u1", "c", {"sh", "-c", "exit 4"}, attempt);
    ASSERT_TRUE(run_until([&] { return count<ContainerExited>() == static_cast<std::size_t>(attempt) + 1; }));
    ASSERT_TRUE(run_until([&] { return supervisors().size() == 1U; })) << "the one before has gone";
  }
  EXPECT_TRUE(run_until([&] { return open_files() <= before; })) << open_files() << " where there were " << before;
  runtime_->execute(agent::StopPod{"u1", seconds(1)});
  ASSERT_TRUE(wait_for<PodStopped>("u1"));
  EXPECT_TRUE(run_until([&] { return supervisors().empty(); }));
}

TEST_F(SupervisedTest, ForgedAndForeignProcessesAreNotTakenOver) {
  const auto cgroup = slice_->slice().open_child("supervisors");
  ASSERT_TRUE(cgroup);
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  SpawnPlan plan{.argv = {"sleep", "1000"}, .environment = {"PATH=/bin:/usr/bin"}, .working_dir = "/"};
  plan.cgroup = &*cgroup;
  plan.stdout_fd = plan.stderr_fd = null.get();
  const auto forged = spawn(plan);
  ASSERT_TRUE(forged);
  ASSERT_TRUE(run_until([&] { return supervisors().size() == 1U; }));
  EXPECT_FALSE(Supervisor::find(forged->pid));
  restart();
  EXPECT_TRUE(run_until([&] { return supervisors().empty(); }));
}

TEST_F(SupervisedTest, RecordsThatSayNothingGo) {
  const auto folder = state_ / "pods" / "default_ghost_u9";
  std::filesystem::create_directories(folder / "c");
  std::ofstream(folder / "_pod.json") << "{\"uid\":\"u9\"";
  restart();
  EXPECT_TRUE(run_until([&] { return !std::filesystem::exists(folder); }));
}

struct SupervisedConfinedTest : SupervisedTest {
  SupervisedConfinedTest() { isolation_ = ProcessRuntimeOptions::Isolation::kNamespaces; }

  void SetUp() override {
    const auto possible = PodNamespaces::create({.ipc = true, .network = true});
    if (!possible) GTEST_SKIP() << "namespaces cannot be made here: " << possible.error().text();
    RealMachine::SetUp();
  }

  void begin(std::int32_t attempt, const std::string& script) {
    runtime_->execute(agent::StartContainer{.uid = "u1",
                                            .name = "c",
                                            .attempt = attempt,
                                            .argv = {"/bin/sh", "-c", script},
                                            .security = {.capabilities = 0xa80425fb}});
  }
};

TEST_F(SupervisedConfinedTest, TheNextContainerFindsThePodAsItWas) {
  agent::PodIsolation isolation{.ipc = true, .confined = true, .hostname = "kept"};
  runtime_->execute(agent::CreatePod{.uid = "u1", .pod = {"default", "pod-u1"}, .isolation = std::move(isolation)});
  begin(0, "echo secret > /dev/shm/word; echo disk > /tmp/word");
  ASSERT_TRUE(wait_for<ContainerExited>("u1"));
  restart();
  ASSERT_TRUE(found("u1").ended);
  begin(1,
        "cat /dev/shm/word /tmp/word; cat /proc/sys/kernel/hostname; ls /proc | grep -c '^[0-9]'; ls /proc/1/fd | tr "
        "'\\n' ' '");
  ASSERT_TRUE(wait_for<ContainerExited>("u1"));
  EXPECT_TRUE(logs("u1", "c", {" F secret\n", " F disk\n", " F kept\n", " P "}, 1)) << log_text("u1", "c", 1);
  const std::string log = log_text("u1", "c", 1);
  EXPECT_FALSE(log.contains("supervisor")) << log;
}

TEST_F(SupervisedConfinedTest, AnotherProgramEntersAfterARestart) {
  runtime_->execute(agent::CreatePod{
      .uid = "u1", .pod = {"default", "pod-u1"}, .isolation = {.ipc = true, .confined = true, .hostname = "kept"}});
  begin(0, "while :; do sleep 1; done");
  ASSERT_TRUE(wait_for<ContainerStarted>("u1"));
  restart();
  found("u1");
  runtime_->execute(agent::RunInContainer{.id = 5,
                                          .uid = "u1",
                                          .container = "c",
                                          .argv = {"cat", "/proc/sys/kernel/hostname"},
                                          .timeout = support::kPatience});
  ASSERT_TRUE(run_until([&] { return count<agent::RanInContainer>() > 0; }));
  for (const agent::HostEvent& event : events_)
    if (const auto* ran = std::get_if<agent::RanInContainer>(&event)) EXPECT_EQ(ran->output, "kept\n");
}

}  // namespace
}  // namespace spillway::host
