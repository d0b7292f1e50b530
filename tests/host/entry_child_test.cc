#include "host/spawn/entry_child.h"

#include "host/kernel/pidfd.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace spillway::host {
namespace {

/// Starts `sleep` as an entry and reads reports until their end. True: its number was told, and it could be reaped.
bool reaps_its_program() {
  EntryPlan plan;
  plan.argv = {"/bin/sleep", "1000"};
  plan.working_dir = "/";
  const Result<EntryChild> child = start_entry(plan, {});
  if (!child) return false;
  EntryReports reports;
  while (!reports.at_end) {
    pollfd status{child->status.get(), POLLIN, 0};
    ::poll(&status, 1, -1);
    read_entry_reports(plan, *child, reports);
  }
  if (reports.program <= 0) return false;
  const UniqueFd program = try_open_pidfd(reports.program);
  pollfd ended{program.get(), POLLIN, 0};
  ::poll(&ended, 1, -1);
  const auto end = reap(program.get());
  return end && *end && (*end)->signal == SIGKILL;
}

// The first child may be killed with its cgroup at any time. Between the system call that makes the second child and the
// report of it there are a few instructions: a tracer stops it there.
TEST(EntryChildTest, TheProgramIsKnownThoughTheFirstChildWasKilledBeforeItReportedIt) {
  std::array<int, 2> go = {-1, -1};
  ASSERT_EQ(::pipe(go.data()), 0);
  const pid_t agent = ::fork();
  if (agent == 0) {
    char byte = 0;
    if (::read(go[0], &byte, 1) != 1) ::_exit(2);
    ::_exit(reaps_its_program() ? 0 : 1);
  }
  ASSERT_GT(agent, 0);
  const bool traced = ::ptrace(PTRACE_SEIZE, agent, nullptr, PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL) == 0;
  if (!traced) ::kill(agent, SIGKILL);
  EXPECT_EQ(::write(go[1], "g", 1), 1);
  int killed = 0;
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, __WALL)) > 0;) {
    if (!WIFSTOPPED(status)) {
      if (pid == agent) break;
      continue;
    }
    if (pid != agent && status >> 16 == PTRACE_EVENT_FORK) {
      unsigned long program = 0;
      ASSERT_EQ(::ptrace(PTRACE_GETEVENTMSG, pid, nullptr, &program), 0);
      ::kill(pid, SIGKILL);
      ::kill(static_cast<pid_t>(program), SIGKILL);
      ++killed;
      continue;
    }
    const int signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
    ::ptrace(PTRACE_CONT, pid, nullptr, signal);
  }
  for (const int end : go) ::close(end);
  if (!traced) GTEST_SKIP() << "processes cannot be traced here";
  EXPECT_EQ(killed, 1);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace spillway::host
