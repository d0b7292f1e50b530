#include "base/json_string.h"
#include "policy/podsecurity/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace spillway::podsecurity {

namespace {

using api::Json;

constexpr std::string_view kAppArmorPrefix = "container.apparmor.security.beta.kubernetes.io/";

/// The capabilities of a container by default, except NET_RAW.
constexpr auto kDefaultCapabilities =
    std::to_array<std::string_view>({"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
                                     "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"});

constexpr auto kSelinuxTypes =
    std::to_array<std::string_view>({"", "container_t", "container_init_t", "container_kvm_t"});
constexpr std::string_view kSelinuxEngineType = "container_engine_t";
constexpr std::int32_t kEngineTypeSince = 31;

struct SafeSysctl {
  std::string_view name;
  std::int32_t since;  // minor version
};

constexpr auto kSafeSysctls = std::to_array<SafeSysctl>({{"kernel.shm_rmid_forced", 0},
                                                         {"net.ipv4.ip_local_port_range", 0},
                                                         {"net.ipv4.tcp_syncookies", 0},
                                                         {"net.ipv4.ping_group_range", 0},
                                                         {"net.ipv4.ip_unprivileged_port_start", 0},
                                                         {"net.ipv4.ip_local_reserved_ports", 27},
                                                         {"net.ipv4.tcp_keepalive_time", 29},
                                                         {"net.ipv4.tcp_fin_timeout", 29},
                                                         {"net.ipv4.tcp_keepalive_intvl", 29},
                                                         {"net.ipv4.tcp_keepalive_probes", 29},
                                                         {"net.ipv4.tcp_rmem", 32},
                                                         {"net.ipv4.tcp_wmem", 32}});

bool is_true(const Json& value) {
  return value.if_bool().value_or(false);
}

bool sets_wrong_profile(const Json& context, Words& values) {
  const Json& profile = member(context, "appArmorProfile");
  if (profile.is_null()) return false;
  const std::string_view type = profile.string_at({"type"});
  if (type == "RuntimeDefault" || type == "Localhost") return false;
  values.emplace(type);
  return true;
}

/// KEY="VALUE" of every annotation that names a forbidden profile.
std::vector<std::string> app_armor_annotations(const PodView& pod) {
  std::vector<std::string> wrong;
  const Json::Object* annotations = member(pod.metadata, "annotations").if_object();
  if (annotations == nullptr) return wrong;
  for (const auto& [key, value] : *annotations) {
    const std::string_view profile = value.string_at({});
    const bool allowed = profile.empty() || profile == "runtime/default" || profile.starts_with("localhost/");
    if (!key.starts_with(kAppArmorPrefix) || allowed) continue;
    std::string& text = wrong.emplace_back(key + "=");
    append_json_string(profile, text);
  }
  std::ranges::sort(wrong);
  return wrong;
}

/// The forbidden SELinux options, collected over the pod and its containers.
struct SelinuxFaults {
  std::int32_t minor;
  Words types;
  bool user = false;
  bool role = false;

  bool found_in(const Json& context) {
    const Json& options = member(context, "seLinuxOptions");
    const std::string_view type = options.string_at({"type"});
    const bool known = std::ranges::find(kSelinuxTypes, type) != kSelinuxTypes.end() ||
                       (minor >= kEngineTypeSince && type == kSelinuxEngineType);
    const bool sets_user = !options.string_at({"user"}).empty();
    const bool sets_role = !options.string_at({"role"}).empty();
    if (!known) types.emplace(type);
    user = user || sets_user;
    role = role || sets_role;
    return !known || sets_user || sets_role;
  }

  std::string text() const {
    std::vector<std::string> parts;
    if (!types.empty()) parts.push_back(fmt::format("{} {}", plural(types.size(), "type", "types"), quoted(types)));
    if (user) parts.emplace_back("user may not be set");
    if (role) parts.emplace_back("role may not be set");
    return joined(parts, "; ");
  }
};

}  // namespace

std::optional<Finding> app_armor_profile(const PodView& pod, std::int32_t) {
  Words values;
  std::vector<std::string> setters;
  if (sets_wrong_profile(pod.context(), values)) setters.emplace_back("pod");
  const auto names = names_where(pod, [&](const Json& c) { return sets_wrong_profile(context_of(c), values); });
  if (!names.empty()) setters.push_back(containers_text(names));
  const std::vector<std::string> annotations = app_armor_annotations(pod);
  if (!annotations.empty()) setters.emplace_back(plural(annotations.size(), "annotation", "annotations"));
  if (setters.empty()) return std::nullopt;
  std::vector<std::string> all(values.begin(), values.end());
  all.insert(all.end(), annotations.begin(), annotations.end());
  return Finding{std::string(plural(all.size(), "forbidden AppArmor profile", "forbidden AppArmor profiles")),
                 fmt::format("{} must not set AppArmor profile type to {}", joined(setters, " and "), quoted(all))};
}

std::optional<Finding> capabilities_baseline(const PodView& pod, std::int32_t) {
  Words added;
  const auto names = names_where(pod, [&](const Json& container) {
    bool wrong = false;
    for (const Json& each : elements(member(context_of(container), "capabilities"), "add")) {
      const std::string_view name = each.string_at({});
      if (std::ranges::find(kDefaultCapabilities, name) != kDefaultCapabilities.end()) continue;
      added.emplace(name);
      wrong = true;
    }
    return wrong;
  });
  if (names.empty()) return std::nullopt;
  return Finding{"non-default capabilities", fmt::format("{} must not include {} in securityContext.capabilities.add",
                                                         containers_text(names), quoted(added))};
}

std::optional<Finding> host_namespaces(const PodView& pod, std::int32_t) {
  std::vector<std::string> shared;
  for (const std::string_view name : {"hostIPC", "hostNetwork", "hostPID"}) {
    if (is_true(member(pod.spec, name))) shared.emplace_back(name);
  }
  if (shared.empty()) return std::nullopt;
  return Finding{"host namespaces", joined(shared, ", ")};
}

std::optional<Finding> host_path_volumes(const PodView& pod, std::int32_t) {
  std::vector<std::string> names;
  for (const Json& volume : elements(pod.spec, "volumes")) {
    if (!member(volume, "hostPath").is_null()) names.emplace_back(volume.string_at({"name"}));
  }
  if (names.empty()) return std::nullopt;
  return Finding{"hostPath volumes", fmt::format("{} {}", plural(names.size(), "volume", "volumes"), quoted(names))};
}

std::optional<Finding> host_ports(const PodView& pod, std::int32_t) {
  Words ports;
  const auto names = names_where(pod, [&](const Json& container) {
    bool wrong = false;
    for (const Json& each : elements(container, "ports")) {
      const std::int64_t port = member(each, "hostPort").if_int64().value_or(0);
      if (port == 0) continue;
      ports.insert(std::to_string(port));
      wrong = true;
    }
    return wrong;
  });
  if (names.empty()) return std::nullopt;
  return Finding{"hostPort", fmt::format("{} {} {} {}", containers_text(names), plural(names.size(), "uses", "use"),
                                         plural(ports.size(), "hostPort", "hostPorts"),
                                         joined(std::vector(ports.begin(), ports.end()), ", "))};
}

std::optional<Finding> probe_hosts(const PodView& pod, std::int32_t) {
  Words hosts;
  const auto names = names_where(pod, [&](const Json& container) {
    bool wrong = false;
    const auto check = [&](const Json& handler) {
      for (const std::string_view action : {"httpGet", "tcpSocket"}) {
        const std::string_view host = member(handler, action).string_at({"host"});
        if (host.empty()) continue;
        hosts.emplace(host);
        wrong = true;
      }
    };
    for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
      check(member(container, probe));
    }
    const Json& lifecycle = member(container, "lifecycle");
    for (const std::string_view hook : {"postStart", "preStop"}) check(member(lifecycle, hook));
    return wrong;
  });
  if (names.empty()) return std::nullopt;
  return Finding{
      "probe or lifecycle host",
      fmt::format("{} {} {} {}", containers_text(names), plural(names.size(), "uses", "use"),
                  plural(hosts.size(), "probe or lifecycle host", "probe or lifecycle hosts"), quoted(hosts))};
}

std::optional<Finding> privileged(const PodView& pod, std::int32_t) {
  const auto names = names_where(pod, [](const Json& c) { return is_true(member(context_of(c), "privileged")); });
  if (names.empty()) return std::nullopt;
  return Finding{"privileged", containers_text(names) + " must not set securityContext.privileged=true"};
}

std::optional<Finding> proc_mount(const PodView& pod, std::int32_t minor) {
  if (minor >= kUserNamespacesSince && pod.has_user_namespace()) return std::nullopt;
  return proc_mount_restricted(pod, minor);
}

std::optional<Finding> proc_mount_restricted(const PodView& pod, std::int32_t) {
  Words types;
  const auto names = names_where(pod, [&](const Json& container) {
    const Json& mount = member(context_of(container), "procMount");
    if (mount.is_null() || mount.string_at({}) == "Default") return false;
    types.emplace(mount.string_at({}));
    return true;
  });
  if (names.empty()) return std::nullopt;
  return Finding{"procMount",
                 fmt::format("{} must not set securityContext.procMount to {}", containers_text(names), quoted(types))};
}

std::optional<Finding> selinux_options(const PodView& pod, std::int32_t minor) {
  SelinuxFaults faults{.minor = minor, .types = {}};
  const bool by_pod = faults.found_in(pod.context());
  const auto names = names_where(pod, [&](const Json& c) { return faults.found_in(context_of(c)); });
  if (!by_pod && names.empty()) return std::nullopt;
  return Finding{"seLinuxOptions", fmt::format("{} set forbidden securityContext.seLinuxOptions: {}",
                                               setters_text(by_pod, names), faults.text())};
}

std::optional<Finding> sysctls(const PodView& pod, std::int32_t minor) {
  std::vector<std::string> wrong;
  for (const Json& each : elements(pod.context(), "sysctls")) {
    const std::string_view name = each.string_at({"name"});
    const auto* safe = std::ranges::find(kSafeSysctls, name, &SafeSysctl::name);
    if (safe == kSafeSysctls.end() || minor < safe->since) wrong.emplace_back(name);
  }
  if (wrong.empty()) return std::nullopt;
  return Finding{"forbidden sysctls", joined(wrong, ", ")};
}

std::optional<Finding> windows_host_process(const PodView& pod, std::int32_t) {
  const auto wrong = [](const Json& context) {
    return is_true(member(member(context, "windowsOptions"), "hostProcess"));
  };
  const bool by_pod = wrong(pod.context());
  const auto names = names_where(pod, [&](const Json& c) { return wrong(context_of(c)); });
  if (!by_pod && names.empty()) return std::nullopt;
  return Finding{"hostProcess",
                 setters_text(by_pod, names) + " must not set securityContext.windowsOptions.hostProcess=true"};
}

}  // namespace spillway::podsecurity
