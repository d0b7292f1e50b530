// Checks of a KubeletConfiguration for a machine of given size: its effects, dangerous settings, impossible ones.
// Thread: any (pure). Source: Kubernetes docs, "Node-pressure Eviction", "Reserve Compute Resources for System
// Daemons"; spec "Eviction manager", 3; spec "Wake-up sources", 1 (the kernel's blind zone).
#pragma once

#include "agent/config/kubelet_config.h"
#include "api/json/json.h"
#include "base/bytes.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

enum class LintSeverity { kInvalid, kDangerous, kWarning };

std::string_view to_string(LintSeverity severity);

struct LintFinding {
  LintSeverity severity = LintSeverity::kWarning;
  int line = 0;  // 0: nowhere in particular
  std::string key;
  std::string what;
  std::string why;
};

struct LintMachine {
  Bytes memory;
  std::optional<Bytes> disk;  // nodefs
};

/// The program that the configuration is for: fields that only this project's agent lacks are no finding for a kubelet.
enum class LintTarget { kAgent, kKubelet };

/// One threshold in bytes or inodes of this machine, as the agent applies it.
struct EffectiveThreshold {
  std::string signal;
  bool hard = true;
  std::string written;                 // "10%"
  std::optional<std::int64_t> amount;  // bytes; absent for inodes, pids and unknown sizes
  std::string grace;                   // empty: hard
  bool by_default = false;
};

struct LintReport {
  std::vector<EffectiveThreshold> thresholds;
  std::vector<LintFinding> findings;  // worst first, then by line and key
};

LintReport lint_config(const ConfigDocument& document, const LintMachine& machine,
                       LintTarget target = LintTarget::kAgent);

}  // namespace spillway::agent
