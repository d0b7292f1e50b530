#include "agent/cri/namespace_options.h"

namespace spillway::agent {
namespace {

constexpr int kContainer = 1;
constexpr int kNode = 2;
constexpr std::int64_t kRange = 65536;

Result<api::Json> user_namespace(const api::Pod& pod, const NamespaceWish& wish) {
  const std::optional<bool> of_host = pod.spec.host_users;
  if (wish.user_namespaces == UserNamespaces::kOff) {
    if (!of_host) return api::Json();
    return invalid({}, "the feature gate \"UserNamespacesSupport\" is disabled: can't set spec.HostUsers");
  }
  if (of_host.value_or(true)) return api::Json::object({{"mode", kNode}});
  if (wish.user_namespaces == UserNamespaces::kUnsupported) {
    if (wish.runtime_handler.empty())
      return invalid({}, "can't set `spec.hostUsers: false`, runtime does not support user namespaces");
    return invalid({},
                   "can't set `spec.hostUsers: false`, RuntimeClass handler \"{}\" does not support user namespaces",
                   wish.runtime_handler);
  }
  const api::Json ids = api::Json::array({api::Json::object({{"host_id", wish.first_host_id}, {"length", kRange}})});
  return api::Json::object({{"gids", ids}, {"uids", ids}});
}

}  // namespace

Result<api::Json> namespace_options(const api::Pod& pod, const NamespaceWish& wish) {
  api::Json options = api::Json::object();
  if (pod.spec.host_network) options["network"] = kNode;
  if (pod.spec.host_ipc) options["ipc"] = kNode;
  if (pod.spec.host_pid) {
    options["pid"] = kNode;
  } else if (!pod.spec.share_process_namespace.value_or(false)) {
    options["pid"] = kContainer;
  }
  SPILLWAY_TRY(users, user_namespace(pod, wish));
  if (!users.is_null()) options["userns_options"] = std::move(users);
  return options;
}

}  // namespace spillway::agent
