#include "host/reaction/container_handle.h"

#include "host/process/id_ranges.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace spillway::host {
namespace {

std::string status_with(const char* blocked, const char* ignored, const char* caught) {
  return fmt::format("Name:\tx\nSigQ:\t0/1\nSigBlk:\t{}\nSigIgn:\t{}\nSigCgt:\t{}\nCapInh:\t0\n", blocked, ignored,
                     caught);
}

constexpr const char* kNone = "0000000000000000";
constexpr const char* kTerm = "0000000000004000";
constexpr const char* kAllButTerm = "ffffffffffffbfff";

TEST(SignalFate, IsTheDefaultOneUnlessItWasChanged) {
  EXPECT_EQ(fate_of(status_with(kNone, kNone, kNone), SIGTERM), SignalFate::kEnds);
  EXPECT_EQ(fate_of(status_with(kAllButTerm, kAllButTerm, kAllButTerm), SIGTERM), SignalFate::kEnds);
  EXPECT_EQ(fate_of(status_with(kTerm, kNone, kNone), SIGTERM), SignalFate::kBlocked);
  EXPECT_EQ(fate_of(status_with(kTerm, kNone, kTerm), SIGTERM), SignalFate::kTaken);
  EXPECT_EQ(fate_of(status_with(kNone, kTerm, kNone), SIGTERM), SignalFate::kTaken);
  EXPECT_EQ(fate_of(status_with(kNone, kNone, kTerm), SIGTERM), SignalFate::kTaken);
}

TEST(SignalFate, IsNotGuessed) {
  for (const std::string text : {"", "SigBlk:\t0000000000000000\n", "Name:\tSigCgt:\t0\n", "\nSigBlk:\t00\nSigIgn:\t"})
    EXPECT_EQ(fate_of(text, SIGTERM), SignalFate::kTaken) << text;
  EXPECT_EQ(fate_of(status_with("zz00000000000000", kNone, kNone), SIGTERM), SignalFate::kTaken);
}

TEST(SignalFate, OfOneThatWaitsForSignals) {
  EXPECT_TRUE(waits_for_signals(fmt::format("{} 0x7ffd 0x0 0x0 0x8 0x0 0x0 0x7ffd 0x7f10\n", SYS_rt_sigtimedwait)));
  EXPECT_FALSE(waits_for_signals("7 0x7ffd 0x0 0x0 0x8 0x0 0x0 0x7ffd 0x7f10\n"));
  EXPECT_FALSE(waits_for_signals("running\n"));
  EXPECT_FALSE(waits_for_signals("-1 0x7ffd 0x7f10\n")) << "stopped in no call";
  EXPECT_TRUE(waits_for_signals("")) << "nobody knows";
}

TEST(SignalFate, PendingForAThreadOrForAll) {
  for (const char* name : {"SigPnd", "ShdPnd"})
    EXPECT_TRUE(is_pending(fmt::format("Name:\tx\n{}:\t{}\n", name, kTerm), SIGTERM)) << name;
  EXPECT_FALSE(is_pending("\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n", SIGTERM));
  EXPECT_FALSE(is_pending("", SIGTERM));
}

/// The file that the test writes in place of /proc/PID/status.
UniqueFd text_file(std::string_view text) {
  UniqueFd file(::memfd_create("status", 0));
  EXPECT_EQ(::pwrite(file.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return file;
}

class SignalledChild : public ::testing::Test {
 protected:
  SignalledChild() {
    ::signal(SIGTERM, SIG_IGN);  // as the kernel ignores the signal for the first process of a namespace
    child_ = ::fork();
    if (child_ == 0) {
      for (;;) ::pause();
    }
    ::signal(SIGTERM, SIG_DFL);
    handle_.pidfd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
    handle_.call = text_file("7 0x7ffd 0x0 0x0 0x8 0x0 0x0 0x7ffd 0x7f10\n");
  }

  ~SignalledChild() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  void reads(const char* blocked, const char* pending) {
    handle_.status = text_file(fmt::format("{}SigPnd:\t{}\n", status_with(blocked, kNone, kNone), pending));
  }

  pid_t child_ = 0;
  ContainerHandle handle_;
};

/// A shell blocks all signals around every fork: it may have done so again before the check.
TEST_F(SignalledChild, OneThatBlocksAgainIsStillInDoubt) {
  reads(kTerm, kNone);
  handle_.terminate();
  ASSERT_TRUE(handle_.in_doubt);
  reads(kTerm, kTerm);
  handle_.recheck();
  EXPECT_TRUE(handle_.in_doubt) << "it waits to be unblocked";
  reads(kTerm, kNone);
  handle_.recheck();
  EXPECT_TRUE(handle_.in_doubt) << "dropped or taken";
  EXPECT_FALSE(handle_.ended_for);
  reads(kNone, kNone);
  handle_.recheck();
  EXPECT_FALSE(handle_.in_doubt);
  EXPECT_TRUE(handle_.ended_for);
  siginfo_t end{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child_), &end, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(end.si_status, SIGKILL);
}

TEST(IdRanges, ArePodsOwnAndAreReused) {
  IdRanges ranges;
  const std::uint32_t first = ranges.take("u1");
  EXPECT_GE(first, IdRanges::kFirst);
  EXPECT_LE(first + (IdRanges::kSize - 1), IdRanges::kLast);
  EXPECT_EQ(first % IdRanges::kSize, 0U);
  const std::uint32_t second = ranges.take("u1");  // as if another uid led there
  EXPECT_NE(second, first);
  ranges.release(first);
  EXPECT_EQ(ranges.take("u1"), first);
}

}  // namespace
}  // namespace spillway::host
