#include "apps/controller/controller_pages.h"

#include "policy/decision_json.h"

#include <algorithm>
#include <utility>

namespace spillway::apps {

std::optional<api::Response> ControllerPages::answer(std::string_view path) const {
  if (path == kServicesPage && not_carried_) {
    return json_response(200, api::Json::object({{"kind", "ServiceProxy"},
                                                 {"apiVersion", "spillway/v1"},
                                                 {"runs", not_carried_->empty()},
                                                 {"notCarried", *not_carried_}}));
  }
  const auto is_below = [path](std::string_view page) { return path.starts_with(page) && path.size() > page.size(); };
  if (path != kZonesPage && !is_below(kNodesPage) && !is_below(kPodsPage) && !is_below(kEvictionsPage))
    return std::nullopt;
  return page(path);
}

api::Response ControllerPages::page(std::string_view path) const {
  if (set_ == nullptr) return status_response(make_error(ErrorCode::kServiceUnavailable, "{}", why_));
  if (!set_->synced()) {
    return status_response(make_error(ErrorCode::kServiceUnavailable, "the controllers are filling their caches"));
  }
  const Now now = loop_.now();
  if (path == kZonesPage) return json_response(200, set_->report().zones_document(now));
  if (path.starts_with(kEvictionsPage)) {
    const std::string_view owner = path.substr(kEvictionsPage.size());
    const std::size_t slash = std::min(owner.find('/'), owner.size());
    const std::string key(owner.substr(std::min(slash + 1, owner.size())));
    const auto waits = set_->explain_evictions(owner.substr(0, slash), key, now);
    if (waits) return json_response(200, policy::to_json(*waits));
    return status_response(make_error(ErrorCode::kNotFound, "{} \"{}\" not found", owner.substr(0, slash), key));
  }
  if (path.starts_with(kPodsPage)) {
    const std::string key(path.substr(kPodsPage.size()));
    const auto waits = set_->report().explain_pod(key, now);
    if (waits) return json_response(200, policy::to_json(*waits));
    return status_response(make_error(ErrorCode::kNotFound, "no deletion of a pod \"{}\" is planned", key));
  }
  const std::string name(path.substr(kNodesPage.size()));
  const auto decision = set_->report().explain_node(name, now);
  if (!decision) return status_response(make_error(ErrorCode::kNotFound, "nodes \"{}\" not found", name));
  return json_response(200, policy::to_json(*decision));
}

}  // namespace spillway::apps
