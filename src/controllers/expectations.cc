#include "controllers/expectations.h"

#include <utility>

namespace spillway::controllers {
namespace {

constexpr Duration kUnansweredWait = seconds(10);

}  // namespace

Expectations* ExpectationTable::find(const std::string& uid) {
  const auto found = by_owner_.find(uid);
  return found != by_owner_.end() ? &found->second : nullptr;
}

void ExpectationTable::creation_failed(const std::string& uid, const Error& error, client::ApiClient& client,
                                       std::function<void(Now)> look_again, Now now) {
  if (error.code != ErrorCode::kTimeout) {
    if (Expectations* expected = find(uid)) expected->creation_settled();
    return;
  }
  client.at(now.mono + kUnansweredWait, [this, uid, look_again = std::move(look_again)](Now then) {
    Expectations* expected = find(uid);
    if (expected == nullptr) return;
    expected->creation_settled();
    look_again(then);
  });
}

void ExpectationTable::deletion_failed(const std::string& uid, const std::string& pod_uid) {
  if (Expectations* expected = find(uid)) expected->deletion_settled(pod_uid);
}

}  // namespace spillway::controllers
