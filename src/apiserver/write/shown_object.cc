#include "apiserver/write/shown_object.h"

#include <string_view>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

}  // namespace

Json shown(const Resource& row, const std::optional<EndpointForm>& form, const Json& object) {
  if (form) return form->show(object);
  return row.from_stored(object);
}

Json shown_new(const Resource& row, const Json& object, bool name_is_generated) {
  Json result = shown(row, std::nullopt, object);
  Json& metadata = result["metadata"];
  metadata.erase({"uid"});
  metadata.erase({"generation"});
  metadata.erase({"creationTimestamp"});
  if (name_is_generated) metadata.erase({"name"});
  return result;
}

void keep_managers(Json& object, const Json& before) {
  if (const Json* managers = before.at({"metadata", "managedFields"})) {
    object.make({"metadata", "managedFields"}) = *managers;
  } else {
    object.erase({"metadata", "managedFields"});
  }
}

StatusResult<void> check_same_object(const Json& object, const Json& before, bool name_is_generated) {
  for (const std::string_view member : {"name", "namespace"}) {
    if (name_is_generated && member == "name") continue;
    if (object.string_at({"metadata", member}) != before.string_at({"metadata", member})) {
      return make_error(ErrorCode::kBadRequest, "a webhook has changed metadata.{} of the object, which is fixed",
                        member);
    }
  }
  return {};
}

}  // namespace spillway::apiserver
