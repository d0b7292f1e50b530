// The system calls forbidden to a container with seccomp profile RuntimeDefault: those that the default profile of the
// well-known container runtimes refuses, as a table. A capability that a container was given lifts the rules that
// depend on its absence. Thread: any (pure). Source: Kubernetes docs, "Restrict a Container's Syscalls with seccomp";
// seccomp(2); capabilities(7).
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <vector>

namespace spillway::host {

/// Empty for an architecture without a filter.
std::vector<sock_filter> default_call_filter(std::uint64_t capabilities);

/// One rule of the filter, for tests and debug output.
struct CallRule {
  long call;
  const char* name;
  int lifted_by;  // capability that allows the call; kNever: none does
};

inline constexpr int kNever = -1;

std::span<const CallRule> call_rules();

}  // namespace spillway::host
