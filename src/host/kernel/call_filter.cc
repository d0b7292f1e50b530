#include "host/kernel/call_filter.h"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>

namespace spillway::host {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

/// Calls after this one are younger than the table (Linux 6.8): the filter answers them as a kernel without them does.
constexpr std::uint32_t kLastKnownCall = 461;
constexpr std::uint32_t kNamespaceFlags =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr std::uint32_t kVsockFamily = 40;

#define SPILLWAY_CALL(name, right) \
  CallRule {                       \
    SYS_##name, #name, right       \
  }

constexpr CallRule kRules[] = {
    // Clocks.
    SPILLWAY_CALL(adjtimex, CAP_SYS_TIME),
    SPILLWAY_CALL(clock_adjtime, CAP_SYS_TIME),
    SPILLWAY_CALL(clock_settime, CAP_SYS_TIME),
    SPILLWAY_CALL(settimeofday, CAP_SYS_TIME),
    // The kernel and its modules.
    SPILLWAY_CALL(acct, CAP_SYS_PACCT),
    SPILLWAY_CALL(bpf, CAP_BPF),
    SPILLWAY_CALL(delete_module, CAP_SYS_MODULE),
    SPILLWAY_CALL(finit_module, CAP_SYS_MODULE),
    SPILLWAY_CALL(init_module, CAP_SYS_MODULE),
    SPILLWAY_CALL(kexec_file_load, CAP_SYS_BOOT),
    SPILLWAY_CALL(kexec_load, CAP_SYS_BOOT),
    SPILLWAY_CALL(perf_event_open, CAP_PERFMON),
    SPILLWAY_CALL(reboot, CAP_SYS_BOOT),
    SPILLWAY_CALL(syslog, CAP_SYSLOG),
    // Keys that have no namespace.
    SPILLWAY_CALL(add_key, kNever),
    SPILLWAY_CALL(keyctl, kNever),
    SPILLWAY_CALL(request_key, kNever),
    // Mounts, namespaces, the file system as a whole.
    SPILLWAY_CALL(fanotify_init, CAP_SYS_ADMIN),
    SPILLWAY_CALL(fsconfig, CAP_SYS_ADMIN),
    SPILLWAY_CALL(fsmount, CAP_SYS_ADMIN),
    SPILLWAY_CALL(fsopen, CAP_SYS_ADMIN),
    SPILLWAY_CALL(fspick, CAP_SYS_ADMIN),
    SPILLWAY_CALL(mount, CAP_SYS_ADMIN),
    SPILLWAY_CALL(mount_setattr, CAP_SYS_ADMIN),
    SPILLWAY_CALL(move_mount, CAP_SYS_ADMIN),
    SPILLWAY_CALL(open_by_handle_at, CAP_DAC_READ_SEARCH),
    SPILLWAY_CALL(open_tree, CAP_SYS_ADMIN),
    SPILLWAY_CALL(pivot_root, CAP_SYS_ADMIN),
    SPILLWAY_CALL(quotactl, CAP_SYS_ADMIN),
    SPILLWAY_CALL(quotactl_fd, CAP_SYS_ADMIN),
    SPILLWAY_CALL(setdomainname, CAP_SYS_ADMIN),
    SPILLWAY_CALL(sethostname, CAP_SYS_ADMIN),
    SPILLWAY_CALL(setns, CAP_SYS_ADMIN),
    SPILLWAY_CALL(swapoff, CAP_SYS_ADMIN),
    SPILLWAY_CALL(swapon, CAP_SYS_ADMIN),
    SPILLWAY_CALL(umount2, CAP_SYS_ADMIN),
    SPILLWAY_CALL(unshare, CAP_SYS_ADMIN),
    // Access to other processes, and memory policies.
    SPILLWAY_CALL(get_mempolicy, CAP_SYS_NICE),
    SPILLWAY_CALL(kcmp, CAP_SYS_PTRACE),
    SPILLWAY_CALL(mbind, CAP_SYS_NICE),
    SPILLWAY_CALL(move_pages, CAP_SYS_NICE),
    SPILLWAY_CALL(pidfd_getfd, CAP_SYS_PTRACE),
    SPILLWAY_CALL(process_madvise, CAP_SYS_PTRACE),
    SPILLWAY_CALL(process_vm_readv, CAP_SYS_PTRACE),
    SPILLWAY_CALL(process_vm_writev, CAP_SYS_PTRACE),
    SPILLWAY_CALL(ptrace, CAP_SYS_PTRACE),
    SPILLWAY_CALL(set_mempolicy, CAP_SYS_NICE),
    SPILLWAY_CALL(vhangup, CAP_SYS_TTY_CONFIG),
    // Ways into the kernel with a history.
    SPILLWAY_CALL(io_uring_enter, kNever),
    SPILLWAY_CALL(io_uring_register, kNever),
    SPILLWAY_CALL(io_uring_setup, kNever),
    SPILLWAY_CALL(nfsservctl, kNever),
    SPILLWAY_CALL(userfaultfd, kNever),
#if defined(__x86_64__)
    SPILLWAY_CALL(ioperm, CAP_SYS_RAWIO),
    SPILLWAY_CALL(iopl, CAP_SYS_RAWIO),
    SPILLWAY_CALL(_sysctl, kNever),
    SPILLWAY_CALL(create_module, kNever),
    SPILLWAY_CALL(get_kernel_syms, kNever),
    SPILLWAY_CALL(query_module, kNever),
    SPILLWAY_CALL(sysfs, kNever),
    SPILLWAY_CALL(uselib, kNever),
    SPILLWAY_CALL(ustat, kNever),
#endif
};

#undef SPILLWAY_CALL

constexpr std::uint32_t kNumberAt = offsetof(seccomp_data, nr);
constexpr std::uint32_t kArchitectureAt = offsetof(seccomp_data, arch);
constexpr std::uint32_t kFirstArgumentAt = offsetof(seccomp_data, args);  // the lower half: little-endian

sock_filter load_word(std::uint32_t at) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
}

sock_filter refuse_with(int error) {
  return BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error));
}

sock_filter allow_it() {
  return BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

/// Continues with the next statement if the values are equal; else skips `otherwise` more.
sock_filter if_equal(std::uint32_t value, std::uint8_t otherwise) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, otherwise);
}

bool holds(std::uint64_t capabilities, int right) {
  return right != kNever && (capabilities >> right & 1) != 0;
}

}  // namespace

std::span<const CallRule> call_rules() {
  return kRules;
}

std::vector<sock_filter> default_call_filter(std::uint64_t capabilities) {
  if (kArchitecture == 0) return {};
  std::vector<sock_filter> filter;
  // Calls of another architecture have other numbers.
  filter.push_back(load_word(kArchitectureAt));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
  filter.push_back(refuse_with(ENOSYS));
  filter.push_back(load_word(kNumberAt));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kLastKnownCall, 0, 1));
  filter.push_back(refuse_with(ENOSYS));
  for (const CallRule& rule : kRules) {
    if (holds(capabilities, rule.lifted_by)) continue;
    filter.push_back(if_equal(static_cast<std::uint32_t>(rule.call), 1));
    filter.push_back(refuse_with(EPERM));
  }
  if (!holds(capabilities, CAP_SYS_ADMIN)) {
    // The flags of clone3 lie in memory, where a filter cannot look: programs fall back to clone.
    filter.push_back(if_equal(SYS_clone3, 1));
    filter.push_back(refuse_with(ENOSYS));
    filter.push_back(if_equal(SYS_clone, 4));
    filter.push_back(load_word(kFirstArgumentAt));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNamespaceFlags, 0, 1));
    filter.push_back(refuse_with(EPERM));
    filter.push_back(allow_it());
  }
  filter.push_back(if_equal(SYS_socket, 4));
  filter.push_back(load_word(kFirstArgumentAt));
  filter.push_back(if_equal(kVsockFamily, 1));
  filter.push_back(refuse_with(EAFNOSUPPORT));
  filter.push_back(allow_it());
  filter.push_back(allow_it());
  return filter;
}

}  // namespace spillway::host
