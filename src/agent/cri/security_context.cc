#include "agent/cri/security_context.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;

constexpr int kUnconfined = 1;
constexpr int kLocalhost = 2;
constexpr int kStrict = 1;
constexpr std::string_view kLegacyAppArmor = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::array kMaskedPaths = {"/proc/asound",     "/proc/acpi",        "/proc/interrupts",
                                     "/proc/kcore",      "/proc/keys",        "/proc/latency_stats",
                                     "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
                                     "/proc/scsi",       "/sys/firmware",     "/sys/devices/virtual/powercap"};
constexpr std::array kReadOnlyPaths = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"};

template <typename List>
Json list_of(const List& values) {
  Json list = Json::array();
  for (const auto& each : values) list.if_array()->emplace_back(each);
  return list;
}

Json wrapped(std::int64_t value) {
  return value == 0 ? Json::object() : Json::object({{"value", value}});
}

std::string described(const api::Pod& pod, const api::Container& container) {
  return fmt::format("(pod: \"{}_{}({})\", container: {})", pod.metadata.name, pod.metadata.ns, pod.metadata.uid,
                     container.name);
}

/// Returns the container's own value, else the pod's.
template <typename T>
const std::optional<T>& first_of(const std::optional<T>& own, const std::optional<T>& shared) {
  return own ? own : shared;
}

Outcome check_not_root(const api::Pod& pod, const api::Container& container, const ImageUser& image) {
  const auto& wanted = first_of(container.security.run_as_non_root, pod.spec.security.run_as_non_root);
  if (!wanted.value_or(false)) return {};
  if (const auto& user = first_of(container.security.run_as_user, pod.spec.security.run_as_user)) {
    if (*user != 0) return {};
    return invalid({}, "container's runAsUser breaks non-root policy {}", described(pod, container));
  }
  if (image.uid ? *image.uid == 0 : image.name.empty())
    return invalid({}, "container has runAsNonRoot and image will run as root {}", described(pod, container));
  if (!image.uid)
    return invalid({},
                   "container has runAsNonRoot and image has non-numeric user ({}), cannot verify user is non-root {}",
                   image.name, described(pod, container));
  return {};
}

Result<Json> seccomp_profile(const api::Pod& pod, const api::Container& container, const SecurityWish& wish) {
  const auto& profile = first_of(container.security.seccomp, pod.spec.security.seccomp);
  const Json runtime_default = Json::object();
  const Json unconfined = Json::object({{"profile_type", kUnconfined}});
  if (!profile) return wish.seccomp_default ? runtime_default : unconfined;
  if (profile->type == "RuntimeDefault") return runtime_default;
  if (profile->type != "Localhost")
    return profile->type == "Unconfined" || !wish.seccomp_default ? unconfined : runtime_default;
  if (profile->localhost_profile.empty())
    return invalid({}, "localhostProfile must be set if seccompProfile type is Localhost.");
  const auto path = std::filesystem::path(wish.state_dir + "/seccomp/" + profile->localhost_profile).lexically_normal();
  return Json::object({{"localhost_ref", path.string()}, {"profile_type", kLocalhost}});
}

/// The legacy annotation is of a time before the fields.
std::optional<api::AppArmorProfile> app_armor_of(const api::Pod& pod, const api::Container& container) {
  if (container.app_armor) return container.app_armor;
  const auto found = pod.metadata.annotations.find(fmt::format("{}{}", kLegacyAppArmor, container.name));
  if (found == pod.metadata.annotations.end()) return pod.spec.app_armor;
  if (found->second == "runtime/default") return api::AppArmorProfile{"RuntimeDefault", {}};
  if (found->second == "unconfined") return api::AppArmorProfile{"Unconfined", {}};
  constexpr std::string_view kLocal = "localhost/";
  if (found->second.starts_with(kLocal)) return api::AppArmorProfile{"Localhost", found->second.substr(kLocal.size())};
  return pod.spec.app_armor;
}

Outcome add_app_armor(const api::Pod& pod, const api::Container& container, Json& context) {
  const auto profile = app_armor_of(pod, container);
  if (!profile) return {};
  if (profile->type == "RuntimeDefault") {
    context["apparmor"] = Json::object();
    context["apparmor_profile"] = "runtime/default";
  } else if (profile->type == "Unconfined") {
    context["apparmor"] = Json::object({{"profile_type", kUnconfined}});
    context["apparmor_profile"] = "unconfined";
  } else if (profile->type == "Localhost") {
    const std::string name = profile->localhost_profile.value_or("");
    if (name.empty()) return invalid({}, "missing localhost apparmor profile name");
    context["apparmor"] = Json::object({{"localhost_ref", name}, {"profile_type", kLocalhost}});
    context["apparmor_profile"] = fmt::format("localhost/{}", name);
  } else {
    return invalid({}, "unknown apparmor profile type: \"{}\"", profile->type);
  }
  return {};
}

void add_flags(const api::SecurityContext& own, Json& context) {
  if (own.privileged.value_or(false)) context["privileged"] = true;
  if (own.read_only_root_filesystem.value_or(false)) context["readonly_rootfs"] = true;
  if (!own.allow_privilege_escalation.value_or(true)) context["no_new_privs"] = true;
  if (!own.capabilities_add.empty()) context.make({"capabilities", "add_capabilities"}) = list_of(own.capabilities_add);
  if (!own.capabilities_drop.empty())
    context.make({"capabilities", "drop_capabilities"}) = list_of(own.capabilities_drop);
  if (own.proc_mount == "Unmasked") return;
  context["masked_paths"] = list_of(kMaskedPaths);
  context["readonly_paths"] = list_of(kReadOnlyPaths);
}

void add_users(const api::Pod& pod, const api::Container& container, const ImageUser& image, Json& context) {
  if (const auto& group = first_of(container.security.run_as_group, pod.spec.security.run_as_group))
    context["run_as_group"] = wrapped(*group);
  if (const auto& user = first_of(container.security.run_as_user, pod.spec.security.run_as_user)) {
    context["run_as_user"] = wrapped(*user);
  } else if (image.uid || image.name.empty()) {
    context["run_as_user"] = wrapped(image.uid.value_or(0));
  } else {
    context["run_as_username"] = image.name;
  }
}

}  // namespace

Json selinux_options(const Json& options) {
  if (!options.is_object()) return {};
  Json made = Json::object();
  for (const std::string_view name : {"user", "role", "type", "level"}) {
    const std::string_view value = options.string_at({name});
    if (!value.empty()) made[name] = value;
  }
  return made;
}

Outcome add_groups(const api::PodSecurityContext& pod, const std::vector<std::int64_t>& extra, ExtraGroups order,
                   Json& context) {
  std::vector<std::int64_t> groups;
  if (pod.fs_group) groups.push_back(*pod.fs_group);
  if (order == ExtraGroups::kBeforeSupplemental) groups.insert(groups.end(), extra.begin(), extra.end());
  groups.insert(groups.end(), pod.supplemental_groups.begin(), pod.supplemental_groups.end());
  if (order == ExtraGroups::kLast) groups.insert(groups.end(), extra.begin(), extra.end());
  if (!groups.empty()) context["supplemental_groups"] = list_of(groups);
  const std::string& policy = pod.supplemental_groups_policy;
  if (policy == "Strict") {
    context["supplemental_groups_policy"] = kStrict;
  } else if (!policy.empty() && policy != "Merge") {
    return invalid({}, "unsupported supplementalGroupsPolicy: {}", policy);
  }
  return {};
}

Result<Json> security_context(const api::Pod& pod, const api::Container& container, const SecurityWish& wish) {
  SPILLWAY_TRY_VOID(check_not_root(pod, container, wish.image_user));
  Json context = Json::object();
  add_flags(container.security, context);
  SPILLWAY_TRY(seccomp, seccomp_profile(pod, container, wish));
  context["seccomp"] = std::move(seccomp);
  SPILLWAY_TRY_VOID(add_app_armor(pod, container, context));
  add_users(pod, container, wish.image_user, context);
  SPILLWAY_TRY(namespaces, namespace_options(pod, wish.namespaces));
  context["namespace_options"] = std::move(namespaces);
  const Json& labels = container.security.selinux.is_null() ? pod.spec.security.selinux : container.security.selinux;
  if (Json selinux = selinux_options(labels); !selinux.is_null()) context["selinux_options"] = std::move(selinux);
  SPILLWAY_TRY_VOID(add_groups(pod.spec.security, wish.extra_groups, ExtraGroups::kLast, context));
  return context;
}

}  // namespace spillway::agent
