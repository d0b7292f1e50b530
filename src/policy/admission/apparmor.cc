#include "policy/admission/apparmor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace spillway::admission {

namespace {

constexpr std::string_view kAnnotationPrefix = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kUnconfined = "Unconfined";
constexpr std::string_view kLocalhost = "Localhost";
constexpr std::string_view kLocalhostPrefix = "localhost/";

using Containers = std::vector<api::Container>;

std::array<const Containers*, 3> all_containers(const api::PodSpec& spec) {
  return {&spec.init_containers, &spec.containers, &spec.ephemeral_containers};
}

bool confines(const std::optional<api::AppArmorProfile>& profile) {
  return profile && profile->type != kUnconfined;
}

bool asks_for_profile(const api::Pod& pod) {
  if (confines(pod.spec.app_armor)) return true;
  for (const Containers* list : all_containers(pod.spec)) {
    if (std::ranges::any_of(*list, [](const api::Container& each) { return confines(each.app_armor); })) return true;
  }
  const auto first = pod.metadata.annotations.lower_bound(kAnnotationPrefix);
  return first != pod.metadata.annotations.end() && first->first.starts_with(kAnnotationPrefix) &&
         first->second != "unconfined";
}

/// A profile as the older annotation names it; nullopt: none, or a spelling without meaning.
std::optional<api::AppArmorProfile> annotated_profile(const api::Pod& pod, const std::string& container) {
  const auto found = pod.metadata.annotations.find(std::string(kAnnotationPrefix) + container);
  if (found == pod.metadata.annotations.end()) return std::nullopt;
  const std::string& text = found->second;
  if (text == "runtime/default") return api::AppArmorProfile{"RuntimeDefault", {}};
  if (text == "unconfined") return api::AppArmorProfile{std::string(kUnconfined), {}};
  if (text.starts_with(kLocalhostPrefix) && text.size() > kLocalhostPrefix.size()) {
    return api::AppArmorProfile{std::string(kLocalhost), text.substr(kLocalhostPrefix.size())};
  }
  return std::nullopt;
}

std::optional<api::AppArmorProfile> profile_of(const api::Pod& pod, const api::Container& container) {
  if (container.app_armor) return container.app_armor;
  if (auto annotated = annotated_profile(pod, container.name)) return annotated;
  return pod.spec.app_armor;
}

Answer cannot_enforce(std::string_view why, policy::Reason reason) {
  return refuse("AppArmor", fmt::format("Cannot enforce AppArmor: {}", why), std::move(reason));
}

Answer check_profile(const api::Pod& pod, const api::Container& container) {
  const std::optional<api::AppArmorProfile> profile = profile_of(pod, container);
  if (!profile || profile->type != kLocalhost) return {};
  const std::optional<std::string>& name = profile->localhost_profile;
  if (name && name->find_first_not_of(" \t\n\v\f\r") != std::string::npos) return {};
  // Upstream prints the profile the way its language prints a struct.
  return cannot_enforce(fmt::format("invalid empty AppArmor profile name: "
                                    "\"&AppArmorProfile{{Type:Localhost,LocalhostProfile:{},}}\"",
                                    name ? "*" + *name : "nil"),
                        {policy::ReasonCode::kAppArmorUnavailable, {{"container", container.name}}});
}

Answer unavailable(std::string_view host_error) {
  return cannot_enforce(host_error, {policy::ReasonCode::kAppArmorUnavailable, {{"error", std::string(host_error)}}});
}

}  // namespace

Answer admit_app_armor(const api::Pod& pod, std::string_view host_error) {
  if (pod.status.phase != "Pending" || !asks_for_profile(pod)) return {};
  if (!host_error.empty()) return unavailable(host_error);
  for (const Containers* list : all_containers(pod.spec)) {
    for (const api::Container& container : *list) {
      if (Answer answer = check_profile(pod, container); answer.refusal) return answer;
    }
  }
  return {};
}

Answer admit_app_armor_of(const api::Pod& pod, const api::Container& container, std::string_view host_error) {
  if (!host_error.empty() && confines(profile_of(pod, container))) return unavailable(host_error);
  return check_profile(pod, container);
}

}  // namespace spillway::admission
