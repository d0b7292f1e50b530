#include "apps/controller/controller_pages.h"

#include "api/exchange/status.h"
#include "policy/decision_json.h"

#include <utility>

namespace spillway::apps {

api::Response json_response(int status, const api::Json& document) {
  return {.status = status,
          .headers = {{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"}},
          .body = api::to_text(document) + "\n"};
}

api::Response status_response(const Error& error) {
  const api::Status status(error);
  return json_response(status.code, api::to_json(status));
}

std::optional<api::Response> ControllerPages::answer(std::string_view path) const {
  if (path != kZonesPage && !(path.starts_with(kNodesPage) && path.size() > kNodesPage.size())) return std::nullopt;
  return page(path);
}

api::Response ControllerPages::page(std::string_view path) const {
  if (set_ == nullptr) return status_response(make_error(ErrorCode::kServiceUnavailable, "{}", why_));
  if (!set_->synced()) {
    return status_response(make_error(ErrorCode::kServiceUnavailable, "the controllers are filling their caches"));
  }
  const Now now = loop_.now();
  if (path == kZonesPage) return json_response(200, set_->report().zones_document(now));
  const std::string name(path.substr(kNodesPage.size()));
  const auto decision = set_->report().explain_node(name, now);
  if (!decision) return status_response(make_error(ErrorCode::kNotFound, "nodes \"{}\" not found", name));
  return json_response(200, policy::to_json(*decision));
}

}  // namespace spillway::apps
