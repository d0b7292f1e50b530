// Goal: the filter refuses what its table says, with any calls before and after it. It is run here as the kernel runs
// it.
#include "host/kernel/call_filter.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

namespace spillway::host {
namespace {

/// The filter's answer to a call, by interpreting the statements that default_call_filter() uses.
std::uint32_t answer(const std::vector<sock_filter>& filter, const seccomp_data& data) {
  std::uint32_t accumulator = 0;
  for (std::size_t at = 0; at < filter.size(); ++at) {
    const sock_filter& each = filter[at];
    const auto jump = [&](bool holds) { at += holds ? each.jt : each.jf; };
    switch (each.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&data) + each.k, sizeof accumulator);
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        jump(accumulator == each.k);
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        jump(accumulator > each.k);
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        jump((accumulator & each.k) != 0);
        break;
      case BPF_RET | BPF_K:
        return each.k;
      default:
        ADD_FAILURE() << "statement " << each.code;
        return 0;
    }
  }
  ADD_FAILURE() << "no answer";
  return 0;
}

struct CallFilterTest : ::testing::Test {
  void SetUp() override {
    if (default_call_filter(0).empty()) GTEST_SKIP() << "not for this architecture";
  }

  static seccomp_data call(long number, std::uint64_t first = 0) {
    seccomp_data data = {};
    data.nr = static_cast<int>(number);
    data.args[0] = first;
#if defined(__x86_64__)
    data.arch = AUDIT_ARCH_X86_64;
#else
    data.arch = AUDIT_ARCH_AARCH64;
#endif
    return data;
  }

  static constexpr std::uint32_t refused(int error) { return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error); }

  static std::uint64_t right(int capability) { return std::uint64_t{1} << capability; }
};

TEST_F(CallFilterTest, EveryRuleRefusesItsCall) {
  const auto filter = default_call_filter(0);
  EXPECT_GE(call_rules().size(), 50U);
  for (const CallRule& rule : call_rules()) EXPECT_EQ(answer(filter, call(rule.call)), refused(EPERM)) << rule.name;
}

TEST_F(CallFilterTest, ARightLiftsItsRulesAndNoOthers) {
  const auto filter = default_call_filter(right(CAP_SYS_ADMIN));
  for (const CallRule& rule : call_rules())
    EXPECT_EQ(answer(filter, call(rule.call)) == SECCOMP_RET_ALLOW, rule.lifted_by == CAP_SYS_ADMIN) << rule.name;
  EXPECT_EQ(answer(filter, call(SYS_clone, CLONE_NEWUSER)), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(filter, call(SYS_clone3)), SECCOMP_RET_ALLOW);
}

TEST_F(CallFilterTest, WhatProgramsNeedIsAllowed) {
  const auto filter = default_call_filter(0);
  for (const long number : {SYS_read, SYS_write, SYS_openat, SYS_execve, SYS_exit_group, SYS_mmap, SYS_futex, SYS_kill,
                            SYS_setuid, SYS_chroot, SYS_wait4, SYS_epoll_pwait, SYS_seccomp, SYS_prctl})
    EXPECT_EQ(answer(filter, call(number)), SECCOMP_RET_ALLOW) << number;
  EXPECT_EQ(answer(filter, call(SYS_clone, CLONE_VM | CLONE_FS | CLONE_THREAD | CLONE_SIGHAND)), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(filter, call(SYS_socket, AF_INET)), SECCOMP_RET_ALLOW);
}

TEST_F(CallFilterTest, NamespacesAndSocketsOfMachinesAreRefused) {
  const auto filter = default_call_filter(0);
  for (const std::uint64_t flag : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP})
    EXPECT_EQ(answer(filter, call(SYS_clone, flag | CLONE_VM)), refused(EPERM)) << flag;
  EXPECT_EQ(answer(filter, call(SYS_clone3)), refused(ENOSYS));
  EXPECT_EQ(answer(filter, call(SYS_socket, AF_VSOCK)), refused(EAFNOSUPPORT));
}

TEST_F(CallFilterTest, UnknownNumbersAndArchitecturesAreNotThere) {
  const auto filter = default_call_filter(~std::uint64_t{0});
  EXPECT_EQ(answer(filter, call(100'000)), refused(ENOSYS));
  EXPECT_EQ(answer(filter, call(0x4000'0000 | SYS_read)), refused(ENOSYS));
  seccomp_data other = call(SYS_read);
  other.arch = AUDIT_ARCH_I386;
  EXPECT_EQ(answer(filter, other), refused(ENOSYS));
}

}  // namespace
}  // namespace spillway::host
