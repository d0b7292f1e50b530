#include "policy/podsecurity/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace spillway::podsecurity {

namespace {

using api::Json;

constexpr auto kAllowedVolumes =
    std::to_array<std::string_view>({"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image",
                                     "persistentVolumeClaim", "projected", "secret"});
constexpr auto kOtherVolumes = std::to_array<std::string_view>({"hostPath",
                                                                "gcePersistentDisk",
                                                                "awsElasticBlockStore",
                                                                "gitRepo",
                                                                "nfs",
                                                                "iscsi",
                                                                "glusterfs",
                                                                "rbd",
                                                                "flexVolume",
                                                                "cinder",
                                                                "cephfs",
                                                                "flocker",
                                                                "fc",
                                                                "azureFile",
                                                                "vsphereVolume",
                                                                "quobyte",
                                                                "azureDisk",
                                                                "photonPersistentDisk",
                                                                "portworxVolume",
                                                                "scaleIO",
                                                                "storageos"});

bool spared(const PodView& pod, std::int32_t minor) {
  return minor >= kWindowsSparedSince && pod.runs_windows();
}

/// Root in a user namespace is no root of the node.
bool is_root_harmless(const PodView& pod, std::int32_t minor) {
  return minor >= kUserNamespacesSince && pod.has_user_namespace();
}

bool has_any(const Json& volume, std::span<const std::string_view> kinds) {
  return std::ranges::any_of(kinds, [&](std::string_view kind) { return !member(volume, kind).is_null(); });
}

std::string_view kind_of(const Json& volume) {
  const auto* found =
      std::ranges::find_if(kOtherVolumes, [&](std::string_view kind) { return !member(volume, kind).is_null(); });
  return found == kOtherVolumes.end() ? "unknown" : *found;
}

}  // namespace

std::optional<Finding> allow_privilege_escalation(const PodView& pod, std::int32_t minor) {
  if (spared(pod, minor)) return std::nullopt;
  const auto names = names_where(
      pod, [](const Json& c) { return member(context_of(c), "allowPrivilegeEscalation").if_bool().value_or(true); });
  if (names.empty()) return std::nullopt;
  return Finding{"allowPrivilegeEscalation != false",
                 containers_text(names) + " must set securityContext.allowPrivilegeEscalation=false"};
}

std::optional<Finding> capabilities_restricted(const PodView& pod, std::int32_t minor) {
  if (spared(pod, minor)) return std::nullopt;
  const auto drops_all = [](const Json& each) { return each.string_at({}) == "ALL"; };
  const auto keeping = names_where(pod, [&](const Json& container) {
    return std::ranges::none_of(elements(member(context_of(container), "capabilities"), "drop"), drops_all);
  });
  Words added;
  const auto adding = names_where(pod, [&](const Json& container) {
    bool wrong = false;
    for (const Json& each : elements(member(context_of(container), "capabilities"), "add")) {
      if (each.string_at({}) == "NET_BIND_SERVICE") continue;
      added.emplace(each.string_at({}));
      wrong = true;
    }
    return wrong;
  });
  std::vector<std::string> details;
  if (!keeping.empty()) {
    details.push_back(containers_text(keeping) + " must set securityContext.capabilities.drop=[\"ALL\"]");
  }
  if (!adding.empty()) {
    details.push_back(fmt::format("{} must not include {} in securityContext.capabilities.add", containers_text(adding),
                                  quoted(added)));
  }
  if (details.empty()) return std::nullopt;
  return Finding{"unrestricted capabilities", joined(details, "; ")};
}

std::optional<Finding> restricted_volumes(const PodView& pod, std::int32_t) {
  std::vector<std::string> names;
  Words kinds;
  for (const Json& volume : elements(pod.spec, "volumes")) {
    if (has_any(volume, kAllowedVolumes)) continue;
    names.emplace_back(volume.string_at({"name"}));
    kinds.emplace(kind_of(volume));
  }
  if (names.empty()) return std::nullopt;
  return Finding{"restricted volume types",
                 fmt::format("{} {} {} {} {}", plural(names.size(), "volume", "volumes"), quoted(names),
                             plural(names.size(), "uses", "use"),
                             plural(kinds.size(), "restricted volume type", "restricted volume types"), quoted(kinds))};
}

std::optional<Finding> run_as_non_root(const PodView& pod, std::int32_t minor) {
  if (is_root_harmless(pod, minor)) return std::nullopt;
  constexpr std::string_view kReason = "runAsNonRoot != true";
  const std::optional<bool> of_pod = member(pod.context(), "runAsNonRoot").if_bool();
  const auto of_container = [](const Json& c) { return member(context_of(c), "runAsNonRoot").if_bool(); };
  const auto refusing = names_where(pod, [&](const Json& c) { return of_container(c) == std::optional(false); });
  if (of_pod == std::optional(false) || !refusing.empty()) {
    return Finding{std::string(kReason), setters_text(of_pod == std::optional(false), refusing) +
                                             " must not set securityContext.runAsNonRoot=false"};
  }
  if (of_pod) return std::nullopt;
  const auto silent = names_where(pod, [&](const Json& c) { return !of_container(c); });
  if (silent.empty()) return std::nullopt;
  return Finding{std::string(kReason),
                 fmt::format("pod or {} must set securityContext.runAsNonRoot=true", containers_text(silent))};
}

std::optional<Finding> run_as_user(const PodView& pod, std::int32_t minor) {
  if (is_root_harmless(pod, minor)) return std::nullopt;
  const auto is_root = [](const Json& context) { return member(context, "runAsUser").if_int64() == std::optional(0L); };
  const bool by_pod = is_root(pod.context());
  const auto names = names_where(pod, [&](const Json& c) { return is_root(context_of(c)); });
  if (!by_pod && names.empty()) return std::nullopt;
  return Finding{"runAsUser=0", setters_text(by_pod, names) + " must not set runAsUser=0"};
}

}  // namespace spillway::podsecurity
