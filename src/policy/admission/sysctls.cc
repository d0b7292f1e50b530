#include "policy/admission/sysctls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace spillway::admission {

namespace {

using policy::ReasonCode;

constexpr std::size_t kNameMax = 253;
constexpr std::string_view kNamePattern = R"(([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*])";

struct KernelVersion {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const KernelVersion&, const KernelVersion&) = default;
};

struct SafeSysctl {
  std::string_view name;
  KernelVersion since;
};

constexpr std::array<SafeSysctl, 12> kSafe{{{"kernel.shm_rmid_forced", {}},
                                            {"net.ipv4.ip_local_port_range", {}},
                                            {"net.ipv4.tcp_syncookies", {}},
                                            {"net.ipv4.ping_group_range", {}},
                                            {"net.ipv4.ip_unprivileged_port_start", {}},
                                            {"net.ipv4.ip_local_reserved_ports", {3, 16}},
                                            {"net.ipv4.tcp_keepalive_time", {4, 5}},
                                            {"net.ipv4.tcp_fin_timeout", {4, 6}},
                                            {"net.ipv4.tcp_keepalive_intvl", {4, 5}},
                                            {"net.ipv4.tcp_keepalive_probes", {4, 5}},
                                            {"net.ipv4.tcp_rmem", {4, 15}},
                                            {"net.ipv4.tcp_wmem", {4, 15}}}};

constexpr std::array<std::string_view, 10> kIpcNames{
    "kernel.msg", "kernel.msgmax",          "kernel.msgmnb", "kernel.msgmni", "kernel.sem",
    "kernel.shm", "kernel.shm_rmid_forced", "kernel.shmall", "kernel.shmmax", "kernel.shmmni"};

/// The number at the front of `text`, taken off it; nullopt: none, or one with a leading zero.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto length = static_cast<std::size_t>(end - text.data());
  if (failed != std::errc() || length == 0 || text.front() == '-') return std::nullopt;
  if (text.front() == '0' && length > 1) return std::nullopt;
  text.remove_prefix(length);
  return number;
}

std::optional<KernelVersion> parse_kernel(std::string_view release) {
  if (release.starts_with('v')) release.remove_prefix(1);
  const std::optional<int> major = take_number(release);
  if (!major || !release.starts_with('.')) return std::nullopt;
  release.remove_prefix(1);
  const std::optional<int> minor = take_number(release);
  if (!minor) return std::nullopt;
  return KernelVersion{*major, *minor};
}

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_inner(char c) {
  return is_alphanumeric(c) || c == '-' || c == '_';
}

/// Checks a part of a name that ends at a dot or slash: it starts and ends with a letter or digit.
bool is_inner_part(std::string_view part) {
  return !part.empty() && is_alphanumeric(part.front()) && is_alphanumeric(part.back()) &&
         std::ranges::all_of(part, is_inner);
}

/// The end of the name, where the last character may be the star.
bool is_last_part(std::string_view part) {
  if (part.empty() || !(is_alphanumeric(part.back()) || part.back() == '*')) return false;
  const std::string_view before = part.substr(0, part.size() - 1);
  return before.empty() || (is_alphanumeric(before.front()) && std::ranges::all_of(before, is_inner));
}

bool is_pattern(std::string_view text) {
  if (text.size() > kNameMax) return false;
  for (std::size_t end = text.find_first_of("./"); end != std::string_view::npos; end = text.find_first_of("./")) {
    if (!is_inner_part(text.substr(0, end))) return false;
    text.remove_prefix(end + 1);
  }
  return is_last_part(text);
}

Answer forbid(const std::string& name, std::string_view why) {
  return refuse("SysctlForbidden", fmt::format("forbidden sysctl: \"{}\" {}", name, why),
                {ReasonCode::kSysctlForbidden, {{"sysctl", name}}});
}

}  // namespace

std::vector<std::string> safe_sysctls(std::string_view kernel_release) {
  const KernelVersion kernel = parse_kernel(kernel_release).value_or(KernelVersion{});
  std::vector<std::string> safe;
  for (const SafeSysctl& each : kSafe) {
    if (each.since <= kernel) safe.emplace_back(each.name);
  }
  return safe;
}

std::string normalize_sysctl(std::string_view name) {
  std::string normalized(name);
  const std::size_t first = normalized.find_first_of("./");
  if (first == std::string::npos || normalized[first] == '.') return normalized;
  for (char& c : normalized) {
    if (c == '.') {
      c = '/';
    } else if (c == '/') {
      c = '.';
    }
  }
  return normalized;
}

SysctlNamespace sysctl_namespace(std::string_view normalized_name) {
  if (std::ranges::find(kIpcNames, normalized_name) != kIpcNames.end()) return SysctlNamespace::kIpc;
  if (normalized_name.starts_with("fs.mqueue.")) return SysctlNamespace::kIpc;
  if (normalized_name.starts_with("net.")) return SysctlNamespace::kNet;
  return SysctlNamespace::kNone;
}

bool asks_for_own_network(const api::Pod& pod) {
  const auto wish = pod.metadata.annotations.find(kOwnNetworkAnnotation);
  return wish != pod.metadata.annotations.end() && wish->second == kOwnNetworkValue && !pod.spec.host_network;
}

Result<SysctlAllowlist> SysctlAllowlist::parse(std::span<const std::string> patterns) {
  SysctlAllowlist list;
  for (const std::string& pattern : patterns) {
    if (!is_pattern(pattern)) {
      return Error{ErrorCode::kInvalid, fmt::format("sysctl \"{}\" must have at most {} characters and match regex {}",
                                                    pattern, kNameMax, kNamePattern)};
    }
    const std::string normalized = normalize_sysctl(pattern);
    const std::string part = normalized.substr(0, normalized.find('*'));
    const SysctlNamespace held_by = sysctl_namespace(part);
    if (held_by == SysctlNamespace::kNone) {
      return Error{ErrorCode::kInvalid, fmt::format("the sysctls \"{}\" are not known to be namespaced", part)};
    }
    (part == normalized ? list.names_ : list.prefixes_).insert_or_assign(part, held_by);
  }
  return list;
}

Answer SysctlAllowlist::admit(const api::PodSpec& spec, const HostNamespaces& shared) const {
  for (const api::Sysctl& sysctl : spec.sysctls) {
    const std::string name = normalize_sysctl(sysctl.name);
    auto entry = names_.find(name);
    if (entry == names_.end()) {
      entry = std::ranges::find_if(prefixes_, [&](const auto& prefix) { return name.starts_with(prefix.first); });
      if (entry == prefixes_.end()) return forbid(name, "not allowlisted");
    }
    if (entry->second == SysctlNamespace::kNet && (spec.host_network || shared.net)) {
      return forbid(name, "not allowed with host Net enabled");
    }
    if (entry->second == SysctlNamespace::kIpc && (spec.host_ipc || shared.ipc)) {
      return forbid(name, "not allowed with host IPC enabled");
    }
  }
  return {};
}

}  // namespace spillway::admission
