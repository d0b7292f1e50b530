// Goal: a container of a confined pod sees its pod and the programs of the machine, has no rights on the machine, and
// ends as any other does.
#include "host/cgroup/cgroup_kill.h"
#include "host/kernel/kernel_file.h"
#include "host/real_machine.h"
#include "support/patience.h"

#include <linux/capability.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

namespace spillway::host {
namespace {

using agent::ContainerExited;
using agent::ContainerStarted;
using agent::ContainerStartFailed;
using agent::PodStopped;

constexpr std::uint64_t kRights = (1U << CAP_CHOWN) | (1U << CAP_DAC_OVERRIDE) | (1U << CAP_KILL) | (1U << CAP_SETUID);

constexpr std::uint64_t kUsualRights = 0xa80425fb;  // the usual capabilities of container runtimes

/// The last line of every script of said(), on a line of its own. A supervisor that gets no processor for long writes
/// the log after the end of its container has been reported.
constexpr std::string_view kSaidAll = "that-is-all";

struct ConfinedTest : RealMachine {
  ConfinedTest() { isolation_ = ProcessRuntimeOptions::Isolation::kNamespaces; }

  void SetUp() override {
    const auto possible = PodNamespaces::create({.ipc = true, .network = true});
    if (!possible) GTEST_SKIP() << "namespaces cannot be made here: " << possible.error().text();
    RealMachine::SetUp();
  }

  void create(const std::string& uid = "u1", agent::PodIsolation isolation = {}) {
    isolation.confined = true;
    isolation.ipc = true;
    isolation.hostname = "host-of-" + uid;
    runtime_->execute(
        // With a share of the processor, so that what else the machine does holds nothing up for long.
        agent::CreatePod{.uid = uid,
                         .pod = {"default", "pod-" + uid},
                         .qos = api::QosClass::kGuaranteed,
                         .cpu_request_milli = 2000,
                         .isolation = std::move(isolation)});
  }

  void begin(const std::string& uid, const std::string& name, const std::string& script,
             agent::ContainerSecurity security = {.capabilities = kRights}) {
    runtime_->execute(agent::StartContainer{
        .uid = uid, .name = name, .argv = {"/bin/sh", "-c", script}, .security = std::move(security)});
  }

  /// Lines that the script prints, without the prefixes of the log.
  std::string said(const std::string& script, agent::ContainerSecurity security = {.capabilities = kRights}) {
    const std::string name = fmt::format("c{}", ++containers_);
    begin("u1", name, fmt::format("{}\nprintf '\\n{}\\n'", script, kSaidAll), std::move(security));
    bool refused = false;
    const bool ended = run_until([&] {
      return std::ranges::any_of(events_, [&](const agent::HostEvent& event) {
        const auto* exited = std::get_if<ContainerExited>(&event);
        const auto* failed = std::get_if<ContainerStartFailed>(&event);
        if (failed != nullptr && failed->name == name) {
          ADD_FAILURE() << failed->message;
          refused = true;
        }
        return (exited != nullptr && exited->name == name) || (failed != nullptr && failed->name == name);
      });
    });
    EXPECT_TRUE(ended) << script;
    if (refused) return {};
    EXPECT_TRUE(run_until([&] { return log_text("u1", name).contains(kSaidAll); })) << script;
    std::istringstream log(log_text("u1", name));
    std::vector<std::string> lines;
    for (std::string line; std::getline(log, line);)
      lines.push_back(line.substr(line.find(' ', line.find(' ') + 1) + 3));
    std::erase(lines, kSaidAll);
    if (!lines.empty() && lines.back().empty()) lines.pop_back();  // the script had ended its last line itself
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }

  int containers_ = 0;
};

TEST_F(ConfinedTest, IsRootOfItsPodAndUnprivilegedOnTheMachine) {
  create();
  EXPECT_EQ(said("id -u; id -g; hostname; echo $$; pwd; echo $HOME"), "0\n0\nhost-of-u1\n1\n/tmp\n/tmp\n");
  const std::string map = said("cat /proc/self/uid_map");
  std::istringstream fields(map);
  std::uint32_t inside = 1;
  std::uint32_t outside = 0;
  std::uint32_t count = 0;
  fields >> inside >> outside >> count;
  EXPECT_EQ(inside, 0U);
  EXPECT_GE(outside, IdRanges::kFirst) << map;
  EXPECT_EQ(count, 65'536U);
  said("echo x > written");
  struct stat written{};
  ASSERT_EQ(::stat((state_ / "pods/default_pod-u1_u1/_work/written").c_str(), &written), 0);
  EXPECT_EQ(written.st_uid, outside);
}

TEST_F(ConfinedTest, HasTheRightsItWasGivenAndNoFilterUnlessAsked) {
  create();
  const char* script =
      "grep -E '^(NoNewPrivs|Seccomp|CapInh|CapEff|CapBnd|CapAmb):' /proc/self/status | tr -d '\\t\\n'";
  const std::string rights = fmt::format("{:016x}", kRights);
  EXPECT_EQ(said(script),
            fmt::format("CapInh:{0}CapEff:{1}CapBnd:{1}CapAmb:{0}NoNewPrivs:1Seccomp:0\n", "0000000000000000", rights));
  EXPECT_EQ(said(script, {.uid = 1000, .gid = 2000, .groups = {3000}, .capabilities = kRights, .filters_calls = true}),
            fmt::format("CapInh:{0}CapEff:{0}CapBnd:{1}CapAmb:{0}NoNewPrivs:1Seccomp:2\n", "0000000000000000", rights));
  EXPECT_EQ(said("id -u; id -g; id -G", {.uid = 1000, .gid = 2000, .groups = {3000}}), "1000\n2000\n2000 3000\n");
}

/// The mounts of the first pod's container are opened when the second pod, of the same uid, exists.
TEST_F(ConfinedTest, AContainerIsNotStartedInALaterPodOfTheSameUid) {
  const auto begin_with_file = [this](const std::string& uid) {
    agent::ManagedFile hosts;
    hosts.container_path = "/etc/hosts";
    runtime_->execute(
        agent::StartContainer{.uid = uid, .name = "c", .argv = {"/bin/sleep", "1000"}, .files = {std::move(hosts)}});
  };
  const auto reports_of = [this](const std::string& uid) {
    return std::ranges::count_if(events_, [&](const agent::HostEvent& event) {
      const auto* started = std::get_if<ContainerStarted>(&event);
      const auto* failed = std::get_if<ContainerStartFailed>(&event);
      return (started != nullptr && started->uid == uid) || (failed != nullptr && failed->uid == uid);
    });
  };
  create();
  begin_with_file("u1");
  runtime_->execute(agent::RemovePod{"u1"});
  create();
  begin_with_file("u1");
  create("u2");
  begin_with_file("u2");
  ASSERT_TRUE(run_until([&] { return reports_of("u1") > 0 && reports_of("u2") > 0; }));
  EXPECT_EQ(reports_of("u1"), 1) << "the first start has no pod any more";
}

/// Runs commands inside the container "main".
struct EntryTest : ConfinedTest {
  void begin_main(const std::string& script = "sleep 1000",
                  agent::ContainerSecurity security = {.capabilities = kRights}) {
    create();
    begin("u1", "main", script, std::move(security));
    ASSERT_TRUE(wait_for<ContainerStarted>("u1", "main"));
  }

  agent::RanInContainer run(std::vector<std::string> argv, Duration timeout = support::kPatience) {
    const std::uint64_t id = ++runs_;
    runtime_->execute(agent::RunInContainer{id, "u1", "main", std::move(argv), timeout});
    const agent::RanInContainer* answer = nullptr;
    EXPECT_TRUE(run_until([&] {
      for (const agent::HostEvent& event : events_) {
        const auto* ran = std::get_if<agent::RanInContainer>(&event);
        if (ran != nullptr && ran->id == id) answer = ran;
      }
      return answer != nullptr;
    }));
    return answer == nullptr ? agent::RanInContainer{} : *answer;
  }

  std::string output(const std::string& script) {
    const agent::RanInContainer ran = run({"/bin/sh", "-c", script});
    EXPECT_TRUE(ran.exit_code) << ran.exit_code.error().text();
    return ran.output;
  }

  std::uint64_t runs_ = 0;
};

TEST_F(EntryTest, IsWhereTheContainerIsAndNoMore) {
  begin_main("echo $$ > /tmp/pid; sleep 1000", {.uid = 1000,
                                                .gid = 2000,
                                                .groups = {3000},
                                                .capabilities = kRights,
                                                .read_only_root = false,
                                                .filters_calls = true});
  EXPECT_EQ(output("id -u; id -g; id -G; hostname; pwd; echo $HOME"),
            "1000\n2000\n2000 3000\nhost-of-u1\n/tmp\n/tmp\n");
  for (const char* space : {"user", "mnt", "pid", "ipc", "uts", "cgroup", "net"})
    EXPECT_EQ(
        output(fmt::format("test $(readlink /proc/1/ns/{0}) = $(readlink /proc/self/ns/{0}) && echo same", space)),
        "same\n")
        << space;
  const char* rights =
      "grep -E '^(NoNewPrivs|Seccomp|CapInh|CapPrm|CapEff|CapBnd|CapAmb|Groups|SigIgn|SigBlk|Umask):' ";
  EXPECT_EQ(output(fmt::format("{} /proc/self/status", rights)), output(fmt::format("{} /proc/1/status", rights)));
  EXPECT_EQ(output("cat /proc/self/cgroup"), output("cat /proc/1/cgroup"));
  EXPECT_EQ(output("cat /proc/self/oom_score_adj"), output("cat /proc/1/oom_score_adj"));
  EXPECT_EQ(output("ls /proc/self/fd"), "0\n1\n2\n3\n") << "3 is the directory";
  EXPECT_EQ(output("cut -d' ' -f6 /proc/$$/stat | grep -cx $$"), "1\n") << "a session of its own";
}

TEST_F(EntryTest, SaysHowItEnded) {
  begin_main();
  EXPECT_EQ(run({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}).exit_code.value(), 3);
  EXPECT_EQ(output("echo out; echo err >&2"), "out\nerr\n");
  EXPECT_EQ(run({"/bin/sh", "-c", "kill -9 $$"}).exit_code.value(), 137);
  const agent::RanInContainer absent = run({"no-such-program"});
  ASSERT_FALSE(absent.exit_code);
  EXPECT_EQ(absent.exit_code.error().text(), "exec: \"no-such-program\": executable file not found in $PATH");
  EXPECT_FALSE(run({}).exit_code);
  runtime_->execute(agent::StopContainer{"u1", "main", Duration::zero()});
  ASSERT_TRUE(wait_for<ContainerExited>("u1", "main"));
  const agent::RanInContainer gone = run({"true"});
  ASSERT_FALSE(gone.exit_code);
  EXPECT_EQ(gone.exit_code.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(gone.exit_code.error().text(), "container not found (\"main\")");
}

TEST_F(EntryTest, KeepsTheBeginningOfWhatItSays) {
  begin_main();
  const agent::RanInContainer ran = run({"/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; exit 4"});
  EXPECT_EQ(ran.exit_code.value(), 4);
  EXPECT_EQ(ran.output, std::string(agent::kCommandOutputMax, 'x'));
}

TEST_F(EntryTest, IsKilledWithItsGroupWhenItTakesTooLong) {
  begin_main();
  const std::vector<std::string> argv = {"/bin/sh", "-c", "echo begun; sleep 1001 & sleep 1001"};
  agent::RanInContainer ran = run(argv, seconds(5));
  for (Duration limit = seconds(10); ran.timed_out && ran.output.empty() && limit < support::kPatience; limit *= 2)
    ran = run(argv, limit);  // on a busy machine it had not begun
  EXPECT_TRUE(ran.timed_out);
  EXPECT_EQ(ran.output, "begun\n");
  EXPECT_TRUE(run_until([&] { return !output("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").contains("sleep 1001"); }));
}

TEST_F(EntryTest, EndsWithItsContainer) {
  begin_main();
  runtime_->execute(agent::RunInContainer{77, "u1", "main", {"sleep", "1000"}, {}});
  runtime_->execute(agent::StopPod{.uid = "u1", .grace = Duration::zero()});
  EXPECT_TRUE(wait_for<PodStopped>("u1"));
  EXPECT_TRUE(run_until([&] { return count<agent::RanInContainer>() == 1; }));
}

TEST_F(EntryTest, ShowsTheContainerNothingOfThisProgram) {
  // A program of the container watches for new processes and tries to read their earlier environment. Between two of
  // its checks a new process may have executed its program, whose environment all processes in the container may read.
  ::setenv("SPILLWAY_SECRET_OF_THE_TEST", "1", 1);
  begin_main(
      "printf '#!/proc/self/exe\\n' > /tmp/trap; chmod 755 /tmp/trap; while :; do for p in /proc/[0-9]*; do "
      "case $p in /proc/1|/proc/$$|/proc/self) continue;; esac; "
      "c=$(tr '\\0' ' ' < $p/cmdline 2>/dev/null); case \"$c\" in *_test*|*spillway*) "
      "(head -c 1 $p/mem >/dev/null 2>&1 || dd if=$p/mem bs=1 count=1 skip=4194304 2>/dev/null | grep -q . ) && echo "
      "read >> /tmp/found; "
      "ls $p/fd/4 >/dev/null 2>&1 && echo descriptors >> /tmp/found; "
      "grep -q SPILLWAY_SECRET $p/environ 2>/dev/null && echo environment >> /tmp/found;; esac; done; done");
  for (int i = 0; i < 30; ++i) EXPECT_EQ(run({"true"}).exit_code.value(), 0);
  EXPECT_EQ(output("cat /tmp/found 2>/dev/null; echo done"), "done\n");
  ::unsetenv("SPILLWAY_SECRET_OF_THE_TEST");
  // The program that the kernel starts for it is this one: inside, without any right to change it. What it starts there
  // is the container's.
  ignored(run({"/tmp/trap"}, seconds(5)).exit_code, "whatever it does, it does inside");
  EXPECT_EQ(output("echo done"), "done\n");
}

TEST_F(ConfinedTest, SeesNothingOfTheNodeAndOtherPods) {
  std::ofstream(state_ / "key") << "secret";
  create("u2");
  begin("u2", "other", "echo theirs > /tmp/theirs; echo ready; sleep 1000");
  ASSERT_TRUE(run_until([&] { return log_text("u2", "other").contains("ready"); }));
  create();
  EXPECT_EQ(said("ls /tmp; echo mine > /tmp/mine; ls /tmp"), "mine\n");
  EXPECT_EQ(said(fmt::format("ls {} 2>/dev/null || echo hidden", state_.string())), "hidden\n");
  EXPECT_EQ(said(fmt::format("cat /proc/{}/environ 2>/dev/null || echo hidden", ::getpid())), "hidden\n");
  EXPECT_EQ(said("set -- /proc/[0-9]*; echo $#; set -- /proc/1/fd/*; echo $#"), "1\n4\n") << "3 is the directory";
  EXPECT_EQ(said("echo /root/* /home/* /run/*"), "/root/* /home/* /run/spillway\n");
  EXPECT_EQ(said("ls /sys/fs/cgroup | grep -c memory.usage_in_bytes; cat /proc/kcore 2>/dev/null | head -c 1"), "0\n");
  EXPECT_EQ(said("grep -c . /proc/self/mountinfo > /tmp/n; test $(cat /tmp/n) -lt 40 && echo few"), "few\n");
}

TEST_F(ConfinedTest, ChangesNothingOfTheMachine) {
  create();
  EXPECT_EQ(said("for file in /usr/x /etc/x /x /dev/x /proc/sys/kernel/panic /proc/sysrq-trigger /run/x; do "
                 "(echo 1 > $file) 2>/dev/null && echo wrote $file; done; echo done"),
            "done\n");
  EXPECT_EQ(
      said("mount -t tmpfs none /tmp 2>/dev/null && echo mounted; umount /usr 2>/dev/null && echo unmounted; "
           "mount -o remount,rw / 2>/dev/null && echo remounted; hostname evil 2>/dev/null && echo renamed; "
           "unshare -m true 2>/dev/null && echo unshared; chroot / true 2>/dev/null || echo no chroot; echo done"),
      "no chroot\ndone\n");
  EXPECT_EQ(said(fmt::format("kill -9 {} 2>/dev/null && echo killed; echo done", ::getpid())), "done\n");
  EXPECT_EQ(said("echo to stdout > /dev/stdout; echo to null > /dev/null; head -c 1 /dev/urandom | wc -c"),
            "to stdout\n1\n");
}

TEST_F(ConfinedTest, DevicesOfTheMachineStayTheMachines) {
  create();
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}) {
    EXPECT_EQ(said(fmt::format("chmod 600 {0} 2>/dev/null && echo closed; chown 0 {0} 2>/dev/null && echo taken; "
                               "echo done",
                               device)),
              "done\n");
    struct stat found{};
    ASSERT_EQ(::stat(device, &found), 0);
    EXPECT_EQ(found.st_uid, 0U) << device;
    EXPECT_EQ(found.st_mode & 0666, 0666U) << device;
  }
}

TEST_F(ConfinedTest, AReadOnlyRootHasNoPlaceToWriteButSharedMemory) {
  create();
  EXPECT_EQ(said("touch /tmp/x 2>/dev/null && echo wrote; touch /dev/shm/x && echo shared",
                 {.capabilities = kRights, .read_only_root = true}),
            "shared\n");
  EXPECT_EQ(said("ls /dev/shm; touch /tmp/x && echo wrote"), "x\nwrote\n") << "the pod's containers share it";
}

TEST_F(ConfinedTest, AFilterRefusesNamespaces) {
  create();
  EXPECT_EQ(said("unshare -Ur true 2>&1 | grep -o 'Operation not permitted'; echo done",
                 {.capabilities = kRights, .filters_calls = true}),
            "Operation not permitted\ndone\n");
}

TEST_F(ConfinedTest, ANamespaceWithinGivesNothingBack) {
  create();
  EXPECT_EQ(
      said(fmt::format("unshare -Urmpf sh -c 'mount -t proc proc /proc 2>/dev/null; umount -l /usr 2>/dev/null && "
                       "echo unmounted; ls {} 2>/dev/null && echo seen; (echo 1 > /etc/x) 2>/dev/null && echo "
                       "wrote; echo within'; echo done",
                       state_.string()),
           {.capabilities = kUsualRights}),
      "within\ndone\n");
}

TEST_F(ConfinedTest, EndsBySigtermAsAnywhereElse) {
  create();
  begin("u1", "plain", "echo ready; while :; do sleep 0.01; done");
  begin("u1", "gentle", "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
  for (const char* name : {"plain", "gentle"})
    ASSERT_TRUE(run_until([&] { return log_text("u1", name).contains("ready"); })) << name;
  runtime_->execute(agent::StopPod{"u1", hours(1)});  // the command's effect is not awaited
  const auto plain = wait_for<ContainerExited>("u1", "plain");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->exit_code, 128 + SIGTERM);
  EXPECT_EQ(plain->signal, SIGTERM);
  EXPECT_EQ(wait_for<ContainerExited>("u1", "gentle")->exit_code, 3);
  EXPECT_TRUE(wait_for<PodStopped>("u1"));
}

TEST_F(ConfinedTest, AProcessThatIgnoresSigtermEndsAfterItsGrace) {
  create();
  begin("u1", "deaf", "trap '' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(run_until([&] { return log_text("u1", "deaf").contains("ready"); }));
  const Instant asked = loop_.now().mono;
  runtime_->execute(agent::StopPod{"u1", milliseconds(500)});
  EXPECT_EQ(wait_for<ContainerExited>("u1", "deaf")->exit_code, 137);
  EXPECT_GE(loop_.now().mono - asked, milliseconds(500));
  EXPECT_TRUE(wait_for<PodStopped>("u1"));
}

/// A program that blocks SIGTERM, and then prints that it does.
std::string blocking(const std::string& then) {
  return "exec python3 -c \"import signal as s, time, os; s.pthread_sigmask(s.SIG_BLOCK, [s.SIGTERM]); "
         "print('ready', flush=True); " +
         then + "\"";
}

TEST_F(ConfinedTest, ASignalThatIsBlockedForAMomentEndsItAsWell) {
  create();
  begin("u1", "c",
        blocking("[time.sleep(0.01) for _ in iter(lambda: s.SIGTERM in s.sigpending(), True)]; "
                 "s.pthread_sigmask(s.SIG_UNBLOCK, [s.SIGTERM]); time.sleep(1000)"));
  ASSERT_TRUE(run_until([&] { return log_text("u1", "c").contains("ready"); }));
  runtime_->execute(agent::StopPod{"u1", hours(1)});
  const auto exited = wait_for<ContainerExited>("u1", "c");
  ASSERT_TRUE(exited) << "the kernel has dropped the signal";
  EXPECT_EQ(exited->signal, SIGTERM);
}

TEST_F(ConfinedTest, AProgramThatWaitsForTheSignalEndsByItself) {
  create();
  begin("u1", "c", blocking("s.sigwait([s.SIGTERM]); time.sleep(0.3); os._exit(3)"));
  ASSERT_TRUE(run_until([&] { return log_text("u1", "c").contains("ready"); }));
  runtime_->execute(agent::StopPod{"u1", hours(1)});
  const auto exited = wait_for<ContainerExited>("u1", "c");
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exit_code, 3);
}

TEST_F(ConfinedTest, AStopBeforeTheProgramIsNotLost) {
  create();
  for (int i = 0; i < 10; ++i) {
    begin("u1", fmt::format("c{}", i), "exec sleep 1000");
    runtime_->execute(agent::StopContainer{"u1", fmt::format("c{}", i), hours(1)});
  }
  EXPECT_TRUE(run_until([&] { return count<ContainerExited>() + count<ContainerStartFailed>() == 10; }));
}

TEST_F(ConfinedTest, DaemonsEndWithIt) {
  create();
  begin("u1", "c",
        "for i in 1 2 3; do (setsid sh -c \"trap '' TERM HUP INT; echo daemon; while :; do sleep 0.01; done\" &) & "
        "done; echo ready; sleep 1000");
  ASSERT_TRUE(run_until([&] {
    const std::string log = log_text("u1", "c");
    return std::ranges::count(log, '\n') >= 4;
  }));
  std::vector<pid_t> before;  // the shell may not have begun its last program
  ASSERT_TRUE(run_until([&] {
    before = pod_pids("u1", api::QosClass::kGuaranteed);
    return before.size() >= 5U;
  })) << before.size();
  runtime_->execute(agent::StopContainer{"u1", "c", Duration::zero()});
  ASSERT_TRUE(wait_for<ContainerExited>("u1"));
  EXPECT_TRUE(pod_pids("u1", api::QosClass::kGuaranteed).empty());
  for (const pid_t pid : before) EXPECT_TRUE(run_until([&] { return has_ended(pid); })) << pid << " lives";
}

TEST_F(ConfinedTest, ExitCodesAndOomKillsAreReported) {
  create();
  begin("u1", "code", "exit 7");
  EXPECT_EQ(wait_for<ContainerExited>("u1", "code")->exit_code, 7);
  runtime_->execute(agent::StartContainer{.uid = "u1",
                                          .name = "hog",
                                          .argv = {"tail", "/dev/zero"},
                                          .memory_limit = mebibytes(24),
                                          .security = {.capabilities = kRights}});
  const auto killed = wait_for<ContainerExited>("u1", "hog");
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->exit_code, 137);
  EXPECT_EQ(killed->signal, SIGKILL);
  EXPECT_TRUE(killed->oom_killed);
}

TEST_F(ConfinedTest, WhatCannotBeStartedSaysWhy) {
  create();
  begin("u1", "fine", "true");
  EXPECT_TRUE(wait_for<ContainerExited>("u1", "fine"));
  runtime_->execute(agent::StartContainer{.uid = "u1", .name = "a", .argv = {"no-such-program"}});
  EXPECT_EQ(wait_for<ContainerStartFailed>("u1", "a")->message,
            "exec: \"no-such-program\": executable file not found in $PATH");
  const std::string program = fmt::format("/tmp/spillway-{}", ::getpid());
  std::filesystem::create_symlink("/bin/true", program);
  runtime_->execute(agent::StartContainer{.uid = "u1", .name = "c", .argv = {program}});
  EXPECT_EQ(wait_for<ContainerStartFailed>("u1", "c")->message,
            fmt::format("exec: \"{}\": No such file or directory (/tmp of a pod is its own directory, not /tmp of this "
                        "machine)",
                        program));
  std::filesystem::remove(program);
  runtime_->execute(
      agent::StartContainer{.uid = "u1", .name = "b", .argv = {"true"}, .working_dir = "/no/such/directory"});
  EXPECT_EQ(wait_for<ContainerStartFailed>("u1", "b")->message,
            "working directory \"/no/such/directory\": No such file or directory");
  agent::DeviceGrant grant;
  grant.nodes.push_back({.container_path = "/dev/no", .host_path = "/dev/no-such-device", .permissions = "rw"});
  runtime_->execute(agent::StartContainer{.uid = "u1", .name = "d", .argv = {"true"}, .devices = grant});
  EXPECT_EQ(wait_for<ContainerStartFailed>("u1", "d")->reason, "CreateContainerError");
}

TEST_F(ConfinedTest, AUserOrGroupThatThePodDoesNotHaveIsRefused) {
  create();
  const agent::ContainerSecurity refused[] = {{.uid = 70'000, .capabilities = kRights},
                                              {.gid = 70'000, .capabilities = kRights},
                                              {.groups = {70'000}, .capabilities = kRights}};
  for (std::size_t i = 0; i < std::size(refused); ++i) {
    const std::string name = fmt::format("a{}", i);
    begin("u1", name, "id", refused[i]);
    ASSERT_TRUE(wait_for<ContainerStartFailed>("u1", name)) << "it runs as " << log_text("u1", name);
    EXPECT_EQ(wait_for<ContainerStartFailed>("u1", name)->message,
              fmt::format("user {}, group {}: Invalid argument", refused[i].uid, refused[i].gid));
  }
}

TEST_F(ConfinedTest, DevicesAppearWhereThePluginSays) {
  create();
  agent::DeviceGrant grant;
  grant.nodes.push_back({.container_path = "/dev/accelerator/zero", .host_path = "/dev/zero", .permissions = "rw"});
  std::ofstream(state_ / "library") << "driver";
  grant.mounts.push_back(
      {.container_path = "/opt-driver/library", .host_path = (state_ / "library").string(), .read_only = true});
  runtime_->execute(agent::StartContainer{
      .uid = "u1",
      .name = "c",
      .argv = {"/bin/sh", "-c",
               "head -c 3 /dev/accelerator/zero | wc -c; cat /opt-driver/library; touch /y && echo bad"},
      .devices = grant,
      .security = {.capabilities = kRights}});
  ASSERT_TRUE(wait_for<ContainerExited>("u1", "c"));
  EXPECT_TRUE(logs("u1", "c", {" F 3\n", "driver\n"})) << log_text("u1", "c");
  const std::string log = log_text("u1", "c");
  EXPECT_FALSE(log.contains("bad\n")) << log;
}

/// A container of that pod, with this file or directory of the machine at /v.
struct AtTopLevel {
  std::string uid;
  std::string path;
  std::string type;
  std::string script;
};

TEST_F(ConfinedTest, AFileMountsWhereAnotherPodHasADirectory) {
  const std::string offered = state_.string() + "-offered";
  std::filesystem::create_directories(offered + "/folder");
  std::ofstream(offered + "/folder/inside") << "in a folder";
  std::ofstream(offered + "/file") << "in a file";
  for (const AtTopLevel& each : {AtTopLevel{"u1", offered + "/folder", "Directory", "cat /v/inside"},
                                 AtTopLevel{"u2", offered + "/file", "File", "cat /v"},
                                 AtTopLevel{"u3", offered + "/made", "FileOrCreate", "test -f /v && echo in a file"},
                                 AtTopLevel{"u4", offered + "/folder", "", "cat /v/inside"},
                                 AtTopLevel{"u5", "", "", "test -e /v || echo nothing"}}) {
    create(each.uid);
    agent::StartContainer start{
        .uid = each.uid, .name = "c", .argv = {"/bin/sh", "-c", each.script}, .security = {.capabilities = kRights}};
    if (!each.path.empty()) {
      runtime_->execute(agent::SetUpVolumes{
          .uid = each.uid, .id = 1, .volumes = {{.name = "v", .content = agent::HostPath{each.path, each.type}}}});
      start.volumes.push_back({.volume = "v", .container_path = "/v"});
    }
    runtime_->execute(std::move(start));
    EXPECT_TRUE(run_until([&] { return count<ContainerExited>() + count<ContainerStartFailed>() > 0; })) << each.uid;
    for (const agent::HostEvent& event : events_)
      if (const auto* failed = std::get_if<ContainerStartFailed>(&event)) ADD_FAILURE() << each.uid << failed->message;
    events_.clear();
    const std::string wanted = each.path.empty() ? "nothing" : each.type.contains("File") ? "in a file" : "in a folder";
    EXPECT_TRUE(logs(each.uid, "c", {wanted})) << each.uid << ": " << log_text(each.uid, "c");
  }
  std::filesystem::remove_all(offered);
}

TEST_F(ConfinedTest, PodsOfTheHostsProcessesSeeThemAndReachNone) {
  create("u1", {.host_pids = true});
  EXPECT_EQ(
      said(fmt::format("test -d /proc/{0} && echo seen; cat /proc/{0}/environ 2>/dev/null && echo read; kill -9 {0} "
                       "2>/dev/null && echo killed; ls /proc/{0}/root/ 2>/dev/null && echo entered; echo done",
                       ::getpid())),
      "seen\ndone\n");
}

TEST_F(ConfinedTest, TheProgramOfTheNodeIsInThePath) {
  create();
  EXPECT_EQ(said("test -x \"$(command -v spillway)\" && echo found"), "found\n");
}

}  // namespace
}  // namespace spillway::host
