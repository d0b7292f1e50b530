// Seccomp profiles: whether a forbidden one is named (baseline), whether an allowed one is (restricted).
#include "base/json_string.h"
#include "policy/podsecurity/checks.h"

#include <fmt/format.h>

namespace spillway::podsecurity {

namespace {

using api::Json;

constexpr std::int32_t kFieldsSince = 19;
constexpr std::string_view kPodAnnotation = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kContainerAnnotation = "container.seccomp.security.alpha.kubernetes.io/";

/// Adds KEY="VALUE" of an annotation that names a forbidden profile.
void check_annotation(const PodView& pod, const std::string& key, Words& wrong) {
  const Json* found = member(pod.metadata, "annotations").find(key);
  if (found == nullptr) return;
  const std::string_view profile = found->string_at({});
  if (profile == "runtime/default" || profile == "docker/default" || profile.starts_with("localhost/")) return;
  std::string text = key + "=";
  append_json_string(profile, text);
  wrong.insert(std::move(text));
}

std::optional<Finding> forbidden_annotations(const PodView& pod) {
  Words wrong;
  check_annotation(pod, std::string(kPodAnnotation), wrong);
  for (const Json* container : pod.containers) {
    check_annotation(pod, fmt::format("{}{}", kContainerAnnotation, container->string_at({"name"})), wrong);
  }
  if (wrong.empty()) return std::nullopt;
  return Finding{"seccompProfile", fmt::format("forbidden {} {}", plural(wrong.size(), "annotation", "annotations"),
                                               joined(std::vector(wrong.begin(), wrong.end()), ", "))};
}

enum class Profile : std::uint8_t { kNone, kAllowed, kForbidden };

/// The seccomp profile of a security context; a forbidden type is added to `types`.
Profile profile_in(const Json& context, Words& types) {
  const Json& profile = member(context, "seccompProfile");
  if (profile.is_null()) return Profile::kNone;
  const std::string_view type = profile.string_at({"type"});
  if (type == "RuntimeDefault" || type == "Localhost") return Profile::kAllowed;
  types.emplace(type);
  return Profile::kForbidden;
}

std::optional<Finding> forbidden_fields(const PodView& pod) {
  Words types;
  const bool by_pod = profile_in(pod.context(), types) == Profile::kForbidden;
  const auto names =
      names_where(pod, [&](const Json& c) { return profile_in(context_of(c), types) == Profile::kForbidden; });
  if (!by_pod && names.empty()) return std::nullopt;
  return Finding{"seccompProfile", fmt::format("{} must not set securityContext.seccompProfile.type to {}",
                                               setters_text(by_pod, names), quoted(types))};
}

}  // namespace

std::optional<Finding> seccomp_profile_baseline(const PodView& pod, std::int32_t minor) {
  return minor < kFieldsSince ? forbidden_annotations(pod) : forbidden_fields(pod);
}

std::optional<Finding> seccomp_profile_restricted(const PodView& pod, std::int32_t minor) {
  if (minor >= kWindowsSparedSince && pod.runs_windows()) return std::nullopt;
  if (auto forbidden = forbidden_fields(pod)) return forbidden;
  Words types;
  if (profile_in(pod.context(), types) == Profile::kAllowed) return std::nullopt;
  const auto silent =
      names_where(pod, [&](const Json& c) { return profile_in(context_of(c), types) == Profile::kNone; });
  if (silent.empty()) return std::nullopt;
  return Finding{"seccompProfile",
                 fmt::format("pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
                             "\"Localhost\"",
                             containers_text(silent))};
}

}  // namespace spillway::podsecurity
