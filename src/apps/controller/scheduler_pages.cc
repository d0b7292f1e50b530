#include "apps/controller/scheduler_pages.h"

namespace spillway::apps {

std::optional<api::Response> SchedulerPages::answer(std::string_view path) const {
  if (!path.starts_with(kWaitingPage)) return std::nullopt;
  const std::string_view rest = path.substr(kWaitingPage.size());
  if (!rest.empty() && (rest.front() != '/' || rest.size() == 1)) return std::nullopt;
  if (scheduler_ == nullptr) return status_response(make_error(ErrorCode::kServiceUnavailable, "{}", why_));
  if (!scheduler_->synced()) {
    return status_response(make_error(ErrorCode::kServiceUnavailable, "the scheduler is filling its caches"));
  }
  const Now now = loop_.now();
  if (rest.empty()) return json_response(200, scheduler_->waiting_document(now));
  const std::string key(rest.substr(1));
  if (const auto pod = scheduler_->waiting_pod_document(key, now)) return json_response(200, *pod);
  return status_response(make_error(ErrorCode::kNotFound, "no pod \"{}\" waits for a node", key));
}

}  // namespace spillway::apps
