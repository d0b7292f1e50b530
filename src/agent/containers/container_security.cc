#include "agent/containers/container_security.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::agent {
namespace {

constexpr std::string_view kConfigError = "CreateContainerConfigError";
constexpr std::string_view kCreateError = "CreateContainerError";
constexpr std::int64_t kIdsMax = 65'536;  // size of the id range of a pod's user namespace

/// Capabilities in the order of the kernel's numbers.
constexpr std::array<std::string_view, 41> kCapabilities = {"CHOWN",
                                                            "DAC_OVERRIDE",
                                                            "DAC_READ_SEARCH",
                                                            "FOWNER",
                                                            "FSETID",
                                                            "KILL",
                                                            "SETGID",
                                                            "SETUID",
                                                            "SETPCAP",
                                                            "LINUX_IMMUTABLE",
                                                            "NET_BIND_SERVICE",
                                                            "NET_BROADCAST",
                                                            "NET_ADMIN",
                                                            "NET_RAW",
                                                            "IPC_LOCK",
                                                            "IPC_OWNER",
                                                            "SYS_MODULE",
                                                            "SYS_RAWIO",
                                                            "SYS_CHROOT",
                                                            "SYS_PTRACE",
                                                            "SYS_PACCT",
                                                            "SYS_ADMIN",
                                                            "SYS_BOOT",
                                                            "SYS_NICE",
                                                            "SYS_RESOURCE",
                                                            "SYS_TIME",
                                                            "SYS_TTY_CONFIG",
                                                            "MKNOD",
                                                            "LEASE",
                                                            "AUDIT_WRITE",
                                                            "AUDIT_CONTROL",
                                                            "SETFCAP",
                                                            "MAC_OVERRIDE",
                                                            "MAC_ADMIN",
                                                            "SYSLOG",
                                                            "WAKE_ALARM",
                                                            "BLOCK_SUSPEND",
                                                            "AUDIT_READ",
                                                            "PERFMON",
                                                            "BPF",
                                                            "CHECKPOINT_RESTORE"};
/// The default capabilities of container runtimes.
constexpr std::array<std::string_view, 14> kDefaultCapabilities = {
    "CHOWN",  "DAC_OVERRIDE", "FSETID",  "FOWNER",           "MKNOD",      "NET_RAW", "SETGID",
    "SETUID", "SETFCAP",      "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL",    "AUDIT_WRITE"};
constexpr std::string_view kAll = "ALL";

std::optional<std::uint64_t> bit_of(std::string_view capability) {
  if (capability.starts_with("CAP_")) capability.remove_prefix(4);
  const auto found = std::ranges::find(kCapabilities, capability);
  if (found == kCapabilities.end()) return std::nullopt;
  return std::uint64_t{1} << (found - kCapabilities.begin());
}

constexpr std::uint64_t kAllCapabilities = (std::uint64_t{1} << kCapabilities.size()) - 1;

std::string upper(std::string text) {
  for (char& each : text)
    if (each >= 'a' && each <= 'z') each = static_cast<char>(each - 'a' + 'A');
  return text;
}

/// "ALL" is applied first, so that capabilities named beside it count.
std::expected<std::uint64_t, StartRefusal> capabilities_of(const api::SecurityContext& context) {
  const auto names_all = [](const std::vector<std::string>& list) {
    return std::ranges::any_of(list, [](const std::string& each) { return upper(each) == kAll; });
  };
  std::uint64_t set = 0;
  for (const std::string_view each : kDefaultCapabilities) set |= *bit_of(each);
  if (names_all(context.capabilities_add)) set = kAllCapabilities;
  if (names_all(context.capabilities_drop)) set = 0;
  for (const auto* list : {&context.capabilities_add, &context.capabilities_drop}) {
    for (const std::string& written : *list) {
      const std::string name = upper(written);
      if (name == kAll) continue;
      const auto bit = bit_of(name);
      if (!bit)
        return std::unexpected(
            StartRefusal{std::string(kCreateError), fmt::format("unknown capability \"{}\"", written)});
      set = list == &context.capabilities_add ? set | *bit : set & ~*bit;
    }
  }
  return set;
}

std::expected<std::uint32_t, StartRefusal> id_of(std::string_view field, std::int64_t id) {
  if (id >= 0 && id < kIdsMax) return static_cast<std::uint32_t>(id);
  return std::unexpected(
      StartRefusal{std::string(kCreateError),
                   fmt::format("{} {}: the process runtime gives a pod the ids 0 to {}", field, id, kIdsMax - 1)});
}

/// nullopt: nothing in it keeps the container from being started.
std::optional<StartRefusal> refusal_of(const api::Pod& pod, const api::Container& container, std::int64_t uid,
                                       const std::optional<api::SeccompProfile>& seccomp) {
  const api::SecurityContext& own = container.security;
  if (own.run_as_non_root.value_or(pod.spec.security.run_as_non_root.value_or(false)) && uid == 0) {
    const bool asked = own.run_as_user || pod.spec.security.run_as_user;
    return StartRefusal{std::string(kConfigError),
                        fmt::format("{} (pod: \"{}_{}({})\", container: {})",
                                    asked ? "container's runAsUser breaks non-root policy"
                                          : "container has runAsNonRoot and image will run as root",
                                    pod.metadata.name, pod.metadata.ns, pod.metadata.uid, container.name)};
  }
  if (seccomp && seccomp->type == "Localhost") {
    if (seccomp->localhost_profile.empty())
      return StartRefusal{std::string(kConfigError),
                          "localhostProfile must be set if seccompProfile type is Localhost."};
    return StartRefusal{std::string(kCreateError), fmt::format("seccomp profile \"{}\": the process runtime loads no "
                                                               "profiles of type Localhost",
                                                               seccomp->localhost_profile)};
  }
  if (own.privileged.value_or(false))
    return StartRefusal{std::string(kCreateError),
                        "the process runtime runs no privileged containers while it confines pods"};
  if (pod.spec.share_process_namespace.value_or(false))
    return StartRefusal{std::string(kCreateError),
                        "shareProcessNamespace: with the process runtime each container has processes of its own"};
  return std::nullopt;
}

}  // namespace

std::expected<ContainerSecurity, StartRefusal> security_of(const api::Pod& pod, const api::Container& container,
                                                           SeccompDefault seccomp_default) {
  const api::SecurityContext& own = container.security;
  const api::PodSecurityContext& shared = pod.spec.security;
  const std::int64_t uid = own.run_as_user ? *own.run_as_user : shared.run_as_user.value_or(0);
  const std::int64_t gid = own.run_as_group ? *own.run_as_group : shared.run_as_group.value_or(0);
  const auto seccomp = own.seccomp ? own.seccomp : shared.seccomp;
  if (auto refused = refusal_of(pod, container, uid, seccomp)) return std::unexpected(*std::move(refused));
  ContainerSecurity made;
  const auto capabilities = capabilities_of(own);
  if (!capabilities) return std::unexpected(capabilities.error());
  made.capabilities = *capabilities;
  const auto user = id_of("runAsUser", uid);
  if (!user) return std::unexpected(user.error());
  made.uid = *user;
  const auto group = id_of("runAsGroup", gid);
  if (!group) return std::unexpected(group.error());
  made.gid = *group;
  std::vector<std::int64_t> groups = shared.supplemental_groups;
  if (shared.fs_group) groups.insert(groups.begin(), *shared.fs_group);
  for (const std::int64_t each : groups) {
    const auto id = id_of("supplementalGroups", each);
    if (!id) return std::unexpected(id.error());
    if (std::ranges::find(made.groups, *id) == made.groups.end()) made.groups.push_back(*id);
  }
  made.read_only_root = own.read_only_root_filesystem.value_or(false);
  made.filters_calls = seccomp ? seccomp->type == "RuntimeDefault" : seccomp_default == SeccompDefault::kRuntimeDefault;
  return made;
}

std::optional<StartRefusal> refusal_without_confinement(const api::Pod& pod) {
  if (pod.spec.host_users.value_or(true)) return std::nullopt;
  return StartRefusal{std::string(kCreateError),
                      "hostUsers: false: this node gives pods no user namespace (--process-isolation=none)"};
}

std::vector<LeftOut> left_out_of(const api::Pod& pod, const std::string& shared_network_because) {
  std::vector<LeftOut> all{
      {LeftOut::Weight::kNormal, "ImageNotUsed",
       "Images are ignored: this node has no container runtime and runs programs of the machine. To run images, "
       "install containerd, runc and containernetworking-plugins (docs/runtimes.md)"}};
  const auto listens = [](const api::Container& container) { return !container.ports.empty(); };
  if (!shared_network_because.empty() && !pod.spec.host_network && std::ranges::any_of(pod.spec.containers, listens)) {
    all.push_back(
        {LeftOut::Weight::kNormal, "NetworkShared",
         fmt::format("The pod uses the network of its node, so no other pod there can listen on its ports: {}",
                     shared_network_because)});
  }
  return all;
}

}  // namespace spillway::agent
