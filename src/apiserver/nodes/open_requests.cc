#include "apiserver/nodes/open_requests.h"

#include <string_view>

namespace spillway::apiserver {
namespace {

constexpr std::string_view kServiceAccount = "system:serviceaccount:";

std::string counted_as(const std::string& user) {
  return user.starts_with(kServiceAccount) ? user.substr(0, user.rfind(':')) : user;
}

}  // namespace

std::shared_ptr<void> OpenRequests::take(const std::string& user) {
  const std::string counted = counted_as(user);
  const auto known = open_->find(counted);
  if (known != open_->end() && known->second >= of_user_max_) return nullptr;
  ++(*open_)[counted];
  // The pointer is not null and owns nothing: only the end of its last copy matters.
  return {static_cast<void*>(open_.get()), [all = open_, counted](void*) {
            const auto mine = all->find(counted);
            if (--mine->second == 0) all->erase(mine);
          }};
}

api::Status too_many_open_to_nodes() {
  return api::retry_status(ErrorCode::kTooManyRequests, "too many open requests to nodes, try again later", 1);
}

}  // namespace spillway::apiserver
