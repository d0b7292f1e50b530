#include "policy/podsecurity/evaluate.h"

#include "base/followed_version.h"
#include "base/utf8.h"
#include "policy/podsecurity/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace spillway::podsecurity {

namespace {

static_assert(kNewestMinor == kFollowedMinor, "\"latest\" is the version that is followed");

struct Check {
  std::string_view id;
  Level level;
  std::int32_t since;  // minor version
  CheckFunction find;
  std::string_view replaces;  // the id of a check of baseline; empty: none
};

// Checks in the order of their messages. clang-format off
constexpr auto kChecks = std::to_array<Check>({
    {"appArmorProfile", Level::kBaseline, 0, app_armor_profile, {}},
    {"capabilities_baseline", Level::kBaseline, 0, capabilities_baseline, {}},
    {"hostNamespaces", Level::kBaseline, 0, host_namespaces, {}},
    {"hostPathVolumes", Level::kBaseline, 0, host_path_volumes, {}},
    {"hostPorts", Level::kBaseline, 0, host_ports, {}},
    {"hostProbesAndHostLifecycle", Level::kBaseline, 34, probe_hosts, {}},
    {"privileged", Level::kBaseline, 0, privileged, {}},
    {"procMount", Level::kBaseline, 0, proc_mount, {}},
    {"seLinuxOptions", Level::kBaseline, 0, selinux_options, {}},
    {"seccompProfile_baseline", Level::kBaseline, 0, seccomp_profile_baseline, {}},
    {"sysctls", Level::kBaseline, 0, sysctls, {}},
    {"windowsHostProcess", Level::kBaseline, 0, windows_host_process, {}},
    {"allowPrivilegeEscalation", Level::kRestricted, 8, allow_privilege_escalation, {}},
    {"capabilities_restricted", Level::kRestricted, 22, capabilities_restricted, "capabilities_baseline"},
    {"procMount_restricted", Level::kRestricted, kUserNamespacesSince, proc_mount_restricted, "procMount"},
    {"restrictedVolumes", Level::kRestricted, 0, restricted_volumes, "hostPathVolumes"},
    {"runAsNonRoot", Level::kRestricted, 0, run_as_non_root, {}},
    {"runAsUser", Level::kRestricted, 23, run_as_user, {}},
    {"seccompProfile_restricted", Level::kRestricted, 19, seccomp_profile_restricted, "seccompProfile_baseline"},
});
// clang-format on

bool applies(const Check& check, Level level, std::int32_t minor) {
  return check.level <= level && check.since <= minor;
}

bool is_replaced(const Check& check, Level level, std::int32_t minor) {
  return std::ranges::any_of(
      kChecks, [&](const Check& other) { return other.replaces == check.id && applies(other, level, minor); });
}

}  // namespace

std::vector<Violation> evaluate(const LevelVersion& standard, const api::Json& metadata, const api::Json& spec) {
  std::vector<Violation> violations;
  if (standard.level == Level::kPrivileged) return violations;
  const std::int32_t minor = std::min(standard.version.minor.value_or(kNewestMinor), kNewestMinor);
  const PodView pod(metadata, spec);
  for (const Check& check : kChecks) {
    if (!applies(check, standard.level, minor) || is_replaced(check, standard.level, minor)) continue;
    std::optional<Finding> found = check.find(pod, minor);
    if (!found) continue;
    violations.push_back({check.id, std::move(found->reason), shortened(found->detail, kDetailBytesMax)});
  }
  return violations;
}

std::string reasons_text(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& each : violations) {
    if (!text.empty()) text += ", ";
    text += each.reason;
  }
  return text;
}

std::string details_text(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& each : violations) {
    if (!text.empty()) text += ", ";
    text += each.reason;
    if (!each.detail.empty()) text += fmt::format(" ({})", each.detail);
  }
  return text;
}

}  // namespace spillway::podsecurity
