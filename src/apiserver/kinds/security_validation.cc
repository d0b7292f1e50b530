#include "apiserver/kinds/fields.h"
#include "apiserver/kinds/pod.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::int64_t kIdMax = std::numeric_limits<std::int32_t>::max();
constexpr std::string_view kIdRange = "must be between 0 and 2147483647, inclusive";
constexpr std::array<std::string_view, 2> kGroupChangePolicies{"Always", "OnRootMismatch"};
constexpr std::size_t kSysctlNameMax = 253;
constexpr std::string_view kSysctlPattern = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

void validate_id(const api::Json& context, std::string_view key, const std::string& path, api::FieldErrors& errors) {
  const std::optional<std::int64_t> id = integer(context, key);
  if (id && (*id < 0 || *id > kIdMax)) errors.invalid(fmt::format("{}.{}", path, key), *id, kIdRange);
}

bool is_sysctl_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/// What kSysctlPattern says: parts of letters, digits, inner dashes and underscores, joined by '.' or '/'.
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

void validate_sysctls(const api::Json& context, const std::string& path, api::FieldErrors& errors) {
  const api::Json::Array& sysctls = elements(context, "sysctls");
  std::set<std::string_view> taken;
  for (std::size_t i = 0; i < sysctls.size() && !errors.full(); ++i) {
    const std::string_view name = text(sysctls[i], "name");
    const std::string where = fmt::format("{}.sysctls[{}].name", path, i);
    if (name.empty()) {
      errors.required(where);
    } else if (!is_sysctl_name(name)) {
      errors.invalid(where, name,
                     fmt::format("must have at most {} characters and match regex {}", kSysctlNameMax, kSysctlPattern));
    } else if (!taken.insert(name).second) {
      errors.duplicate(where, name);
    }
  }
}

}  // namespace

void validate_pod_security(const api::Json& spec, const std::string& path, api::FieldErrors& errors) {
  const api::Json& context = value_of(spec, "securityContext");
  if (!context.is_object()) return;
  const std::string where = path + ".securityContext";
  for (const std::string_view id : {"fsGroup", "runAsGroup", "runAsUser"}) validate_id(context, id, where, errors);
  const api::Json::Array& groups = elements(context, "supplementalGroups");
  for (std::size_t i = 0; i < groups.size() && !errors.full(); ++i) {
    const std::int64_t group = groups[i].if_int64().value_or(-1);
    if (group >= 0 && group <= kIdMax) continue;
    errors.invalid(fmt::format("{}.supplementalGroups[{}]", where, i), group, kIdRange);
  }
  if (has(context, "fsGroupChangePolicy") &&
      std::ranges::find(kGroupChangePolicies, text(context, "fsGroupChangePolicy")) == kGroupChangePolicies.end()) {
    errors.not_supported(where + ".fsGroupChangePolicy", text(context, "fsGroupChangePolicy"), kGroupChangePolicies);
  }
  validate_sysctls(context, where, errors);
}

void validate_container_security(const api::Json& container, const std::string& path, api::FieldErrors& errors) {
  const api::Json& context = value_of(container, "securityContext");
  if (!context.is_object()) return;
  const std::string where = path + ".securityContext";
  validate_id(context, "runAsUser", where, errors);
  validate_id(context, "runAsGroup", where, errors);
  if (!has(context, "allowPrivilegeEscalation") || is_true(context, "allowPrivilegeEscalation")) return;
  if (is_true(context, "privileged")) {
    errors.invalid(where, context, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
  }
  const api::Json::Array& added = elements(value_of(context, "capabilities"), "add");
  if (std::ranges::any_of(added, [](const api::Json& one) { return one.string_at({}) == "CAP_SYS_ADMIN"; })) {
    errors.invalid(where, context,
                   "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
  }
}

}  // namespace spillway::apiserver::kinds
