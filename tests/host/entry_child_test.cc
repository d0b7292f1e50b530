#include "host/spawn/entry_child.h"

#include "base/unique_fd.h"
#include "host/spawn/container_entry.h"
#include "runtime/loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>

namespace spillway::host {
namespace {

/// Starts `sleep` as an entry and reads reports until their end. True: its number was known, and it could be reaped.
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
  int status = 0;  // waits: the tracer must detach from the program first
  return ::waitpid(reports.program, &status, 0) == reports.program && WIFSIGNALED(status) &&
         WTERMSIG(status) == SIGKILL;
}

// The first child may be killed with its cgroup at any time. Between the system call that makes the second child and
// the report of it there are a few instructions: a tracer stops it there.
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

struct NoOwner final : ContainerEntry::Owner {
  void on_entry_ended(Result<ProcessEnd> /*end*/) override {}
};

/// Destroys an entry whose program runs, before the loop has read any report of it. True: the program has ended.
bool ends_its_program() {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  EntryPlan plan;
  plan.argv = {"/bin/sh", "-c", "echo; exec sleep 1000"};
  plan.working_dir = "/";
  runtime::Loop loop;
  NoOwner owner;
  std::optional<ContainerEntry> entry(std::in_place, loop, owner, std::move(plan));
  if (!entry->start({.out = theirs.get()})) return false;
  theirs.reset();
  char byte = 0;
  if (::read(ours.get(), &byte, 1) != 1) return false;
  entry.reset();
  return ::read(ours.get(), &byte, 1) == 0;  // the program held the other end
}

// The number of the program is not known to the entry then. A signal to the group of number 0 would be one to the agent
// and its own group.
TEST(EntryChildTest, AnEntryThatIsDestroyedBeforeAnyReportEndsItsProgramAndNotTheAgent) {
  const pid_t agent = ::fork();
  if (agent == 0) {
    ::setpgid(0, 0);
    ::_exit(ends_its_program() ? 0 : 1);
  }
  ASSERT_GT(agent, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(agent, &status, 0), agent);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace spillway::host
