// vectors/pod-lifecycle: security_context, those rows whose image has no user or root: the process runtime has no
// images.
#include "agent/containers/container_security.h"
#include "api/codec/codec.h"
#include "support/vectors.h"

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

constexpr std::int64_t kRuntimeDefault = 0;
constexpr std::int64_t kLocalhost = 2;

std::int64_t number_at(const Json& document, std::initializer_list<std::string_view> path) {
  const Json* found = document.at(path);
  return found == nullptr ? 0 : found->if_int64().value_or(0);
}

bool is_true(const Json& document, std::string_view member) {
  const Json* found = document.find(member);
  return found != nullptr && found->if_bool().value_or(false);
}

/// Settings that the process runtime refuses count as a known difference, not as a mistake.
bool is_beyond(const api::Pod& pod, const Json& context) {
  return pod.spec.share_process_namespace.value_or(false) || is_true(context, "privileged") ||
         number_at(context, {"seccomp", "profile_type"}) == kLocalhost;
}

Json outcome(std::int64_t user, std::int64_t group, const std::vector<std::int64_t>& groups, bool read_only,
             bool filtered) {
  Json list = Json::array();
  for (const std::int64_t each : groups) list.if_array()->push_back(each);
  return Json::object(
      {{"user", user}, {"group", group}, {"groups", list}, {"readOnly", read_only}, {"filtered", filtered}});
}

std::optional<Mismatch> security_context(const Json& row) {
  const api::Pod pod = api::decode<api::Pod>(*row.at({"in", "pod"})).value();
  const auto seccomp =
      is_true(*row.find("in"), "seccompDefault") ? SeccompDefault::kRuntimeDefault : SeccompDefault::kUnconfined;
  const auto made = security_of(pod, pod.spec.containers.front(), seccomp);
  const Json& want = *row.find("want");
  if (const Json* error = want.find("error")) {
    return support::compare(
        Json::object({{"reason", "CreateContainerConfigError"}, {"message", *error}}),
        made ? Json("started") : Json::object({{"reason", made.error().reason}, {"message", made.error().message}}));
  }
  const Json& context = *want.find("securityContext");
  if (!made) {
    if (is_beyond(pod, context) && made.error().reason == "CreateContainerError") return std::nullopt;
    return Mismatch{api::to_text(context), made.error().message};
  }
  std::vector<std::int64_t> groups;
  if (const Json* listed = context.find("supplemental_groups")) {
    for (const Json& each : *listed->if_array()) {
      const std::int64_t id = each.if_int64().value();
      if (std::ranges::find(groups, id) == groups.end()) groups.push_back(id);
    }
  }
  const Json* profile = context.find("seccomp");
  const bool filtered = profile != nullptr && number_at(context, {"seccomp", "profile_type"}) == kRuntimeDefault;
  return support::compare(
      outcome(number_at(context, {"run_as_user", "value"}), number_at(context, {"run_as_group", "value"}), groups,
              is_true(context, "readonly_rootfs"), filtered),
      outcome(made->uid, made->gid, {made->groups.begin(), made->groups.end()}, made->read_only_root,
              made->filters_calls));
}

const bool kSecurityContext = support::add_vector_check("pod-lifecycle/security_context", security_context);

}  // namespace
}  // namespace spillway::agent
