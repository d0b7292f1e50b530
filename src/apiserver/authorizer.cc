#include "apiserver/authorizer.h"

#include <algorithm>

namespace spillway::apiserver {

bool in_group(const api::UserInfo& user, std::string_view group) {
  return std::ranges::find(user.groups, group) != user.groups.end();
}

bool is_public_path(std::string_view path) {
  for (const std::string_view open : {"/healthz", "/livez", "/readyz"}) {
    if (path == open || (path.starts_with(open) && path[open.size()] == '/')) return true;
  }
  return path == "/version" || path == "/api" || path == "/apis";
}

}  // namespace spillway::apiserver
