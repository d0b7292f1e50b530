#include "apiserver/access/authorizer.h"

#include <algorithm>

namespace spillway::apiserver {

api::Status refusal_status(const api::UserInfo& user, const RequestAttributes& asked, const Verdict& verdict) {
  std::string why = "User \"" + user.name + "\" cannot " + asked.verb;
  if (!asked.is_resource) {
    why += " path \"" + asked.path + "\"";
    if (!verdict.reason.empty()) why += ": " + verdict.reason;
    return api::forbidden_status({}, {}, why);
  }
  why += " resource \"" + asked.resource + (asked.subresource.empty() ? "" : "/" + asked.subresource) +
         "\" in API group \"" + asked.group + "\"" +
         (asked.ns.empty() ? " at the cluster scope" : " in the namespace \"" + asked.ns + "\"");
  if (!verdict.reason.empty()) why += ": " + verdict.reason;
  return api::forbidden_status({asked.group, asked.resource}, asked.name, why);
}

bool in_group(const api::UserInfo& user, std::string_view group) {
  return std::ranges::find(user.groups, group) != user.groups.end();
}

bool is_public_path(std::string_view path) {
  return path == "/healthz" || path == "/livez" || path == "/readyz" || path == "/version";
}

bool is_dashboard_path(std::string_view path) {
  return path == "/ui" || path.starts_with("/ui/");
}

}  // namespace spillway::apiserver
