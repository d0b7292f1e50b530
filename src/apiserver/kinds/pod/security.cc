// Security contexts of pods and containers.
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/pod/rules.h"
#include "base/ascii.h"
#include "policy/admission/sysctls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 2> kGroupChangePolicies{"Always", "OnRootMismatch"};
constexpr std::array<std::string_view, 3> kProfileTypes{"Localhost", "RuntimeDefault", "Unconfined"};
constexpr std::array<std::string_view, 2> kGroupsPolicies{"Merge", "Strict"};
constexpr std::array<std::string_view, 2> kLabelChangePolicies{"MountOption", "Recursive"};
constexpr std::array<std::string_view, 2> kProcMounts{"Default", "Unmasked"};
constexpr std::size_t kLocalProfileMax = 4095;
constexpr std::size_t kSysctlNameMax = 253;
constexpr std::string_view kSysctlPattern = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

void check_id(const CheckedField& id) {
  if (id.integer()) id.require_valid(id_errors(*id.integer()));
}

bool is_sysctl_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/// Matches kSysctlPattern: parts of letters, digits, inner dashes and underscores, joined by '.' or '/'.
bool is_sysctl_name(std::string_view name) {
  if (name.empty() || name.size() > kSysctlNameMax) return false;
  while (true) {
    const std::size_t end = std::min(name.find_first_of("./"), name.size());
    const std::string_view part = name.substr(0, end);
    if (part.empty() || !is_sysctl_letter(part.front()) || !is_sysctl_letter(part.back())) return false;
    if (!std::ranges::all_of(part, [](char c) { return is_sysctl_letter(c) || c == '-' || c == '_'; })) return false;
    if (end == name.size()) return true;
    name.remove_prefix(end + 1);
  }
}

/// A parameter of a namespace that the pod shares with the host.
void check_sysctl_namespace(const CheckedField& name, const CheckedField& spec) {
  const auto space = admission::sysctl_namespace(admission::normalize_sysctl(name.text()));
  if (spec["hostNetwork"].is_true() && space == admission::SysctlNamespace::kNet) {
    name.invalid("may not be set with hostNetwork enabled");
  } else if (spec["hostIPC"].is_true() && space == admission::SysctlNamespace::kIpc) {
    name.invalid("may not be set with hostIPC enabled");
  }
}

void check_sysctls(const CheckedField& sysctls, const CheckedField& spec) {
  std::set<std::string_view> taken;
  sysctls.each([&](const CheckedField& sysctl) {
    const CheckedField name = sysctl["name"];
    if (!name.require_text()) {
      // The error has been added already.
    } else if (!is_sysctl_name(name.text())) {
      name.invalid(fmt::format("must have at most {} characters and match regex {}", kSysctlNameMax, kSysctlPattern));
    } else if (taken.contains(name.text())) {
      name.duplicate();
    }
    check_sysctl_namespace(name, spec);
    taken.insert(name.text());
  });
}

void check_seccomp(const CheckedField& profile) {
  if (!profile) return;
  const CheckedField type = profile["type"];
  const CheckedField local = profile["localhostProfile"];
  if (type.require_text("type is required when seccompProfile is set")) type.require_one_of(kProfileTypes);
  if (type.text() != "Localhost") {
    if (local) local.invalid(profile.json(), "can only be set when seccomp type is Localhost");
  } else if (!local) {
    local.required("must be set when seccomp type is Localhost");
  } else {
    local.require_valid(descending_path_errors(local.text()));
  }
}

void check_local_app_armor(const CheckedField& profile) {
  const std::string_view name = profile.text();
  if (name.empty()) {
    profile.required("must be set when AppArmor type is Localhost");
  } else if (trimmed(name, kWhiteSpace).size() != name.size()) {
    profile.invalid("must not be padded with whitespace");
  }
  if (name.size() > kLocalProfileMax) profile.too_long(kLocalProfileMax);
}

void check_app_armor(const CheckedField& profile) {
  if (!profile) return;
  const CheckedField type = profile["type"];
  const CheckedField local = profile["localhostProfile"];
  if (!type.require_text("type is required when appArmorProfile is set")) return;
  type.require_one_of(kProfileTypes);
  if (type.text() == "Localhost") {
    check_local_app_armor(local);
  } else if (local && std::ranges::find(kProfileTypes, type.text()) != kProfileTypes.end()) {
    local.invalid("can only be set when AppArmor type is Localhost");
  }
}

}  // namespace

bool is_app_armor_profile(const api::Json& profile) {
  api::FieldErrors errors;
  check_app_armor(CheckedField(&profile, {}, errors));
  return errors.empty();
}

void check_pod_security(const CheckedField& spec) {
  const CheckedField context = spec["securityContext"];
  for (const std::string_view id : {"fsGroup", "runAsGroup", "runAsUser"}) check_id(context[id]);
  const CheckedField groups = context["supplementalGroups"];
  groups.each(check_id);
  if (spec["shareProcessNamespace"].is_true() && spec["hostPID"].is_true()) {
    const CheckedField shown = context["shareProcessNamespace"];
    shown.invalid(true, "ShareProcessNamespace and HostPID cannot both be enabled");
  }
  check_sysctls(context["sysctls"], spec);
  const CheckedField group_change = context["fsGroupChangePolicy"];
  group_change.optional_one_of(kGroupChangePolicies);
  const CheckedField groups_policy = context["supplementalGroupsPolicy"];
  groups_policy.optional_one_of(kGroupsPolicies);
  const CheckedField label_change = context["seLinuxChangePolicy"];
  label_change.optional_one_of(kLabelChangePolicies);
  check_seccomp(context["seccompProfile"]);
  check_windows_options(context["windowsOptions"]);
  check_app_armor(context["appArmorProfile"]);
}

void check_container_security(const CheckedField& context, HostUsers host_users) {
  if (!context) return;
  const CheckedField mount = context["procMount"];
  mount.optional_one_of(kProcMounts);
  if (mount.text() == "Unmasked" && host_users == HostUsers::kShared) {
    mount.invalid("`hostUsers` must be false to use `Unmasked`");
  }
  for (const std::string_view id : {"runAsGroup", "runAsUser"}) check_id(context[id]);
  check_seccomp(context["seccompProfile"]);
  check_windows_options(context["windowsOptions"]);
  check_app_armor(context["appArmorProfile"]);
  const CheckedField escalation = context["allowPrivilegeEscalation"];
  if (!escalation || escalation.is_true()) return;
  if (context["privileged"].is_true()) {
    context.invalid("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
  }
  const CheckedField capabilities = context["capabilities"];
  const CheckedField added = capabilities["add"];
  for (const api::Json& capability : added.elements()) {
    if (capability.string_at({}) != "CAP_SYS_ADMIN") continue;
    context.invalid("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
  }
}

}  // namespace spillway::apiserver::kinds
