// The files in which CPUs and NUMA memory that are handed out survive a restart: cpu_manager_state and
// memory_manager_state, in upstream's form and with upstream's checksum, so that either agent reads the other's.
// Thread: any (pure). Source: Kubernetes docs, "Control CPU Management Policies on the Node", "Utilizing the NUMA-aware
// Memory Manager"; the checksum is FNV-1a (32 bits) over the members printed with their types.
#pragma once

#include "base/error.h"
#include "policy/admission/static_cpus.h"
#include "policy/admission/static_memory.h"

#include <string>
#include <string_view>

namespace spillway::agent {

inline constexpr std::string_view kCpuStateFile = "cpu_manager_state";
inline constexpr std::string_view kMemoryStateFile = "memory_manager_state";

std::string to_text(const admission::CpuAssignments& assignments);
std::string to_text(const admission::MemoryAssignments& assignments);

/// kInvalid, in upstream's words: of another policy, damaged, not a set of CPUs.
Result<admission::CpuAssignments> parse_cpu_state(std::string_view text, std::string_view policy);
Result<admission::MemoryAssignments> parse_memory_state(std::string_view text, std::string_view policy);

}  // namespace spillway::agent
