#include "policy/webhooks/review_request.h"

#include <utility>

namespace spillway::webhooks {

namespace {

using api::Json;

Json kind_json(const KindName& kind) {
  return Json::object({{"group", kind.group}, {"version", kind.version}, {"kind", kind.kind}});
}

Json resource_json(const ResourceName& name) {
  return Json::object({{"group", name.group}, {"version", name.version}, {"resource", name.resource}});
}

Json user_json(const api::UserInfo& user) {
  Json json = Json::object();
  if (!user.name.empty()) json["username"] = user.name;
  if (!user.uid.empty()) json["uid"] = user.uid;
  if (!user.groups.empty()) json["groups"] = Json::Array(user.groups.begin(), user.groups.end());
  for (const auto& [key, values] : user.extra) {
    json.make({"extra"})[key] = Json::Array(values.begin(), values.end());
  }
  return json;
}

}  // namespace

Json review_facts(const ReviewRequest& request) {
  Json asked = Json::object({{"kind", kind_json(request.kind)},
                             {"resource", resource_json(request.resource)},
                             {"requestKind", kind_json(request.asked_kind)},
                             {"requestResource", resource_json(request.asked_resource)},
                             {"operation", to_string(request.operation)},
                             {"userInfo", user_json(request.user)},
                             {"dryRun", request.dry_run},
                             {"options", request.options}});
  if (!request.subresource.empty()) {
    asked["subResource"] = request.subresource;
    asked["requestSubResource"] = request.subresource;
  }
  if (!request.name.empty()) asked["name"] = request.name;
  if (!request.ns.empty()) asked["namespace"] = request.ns;
  return asked;
}

std::string review_text(const ReviewRequest& request) {
  Json asked = review_facts(request);
  asked["uid"] = request.uid;
  asked["object"] = request.object == nullptr ? Json() : *request.object;
  asked["oldObject"] = request.old == nullptr ? Json() : *request.old;
  return api::to_text(Json::object(
      {{"kind", "AdmissionReview"}, {"apiVersion", "admission.k8s.io/v1"}, {"request", std::move(asked)}}));
}

}  // namespace spillway::webhooks
