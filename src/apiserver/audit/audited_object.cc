#include "apiserver/audit/audited_object.h"

#include "api/json/document_bounds.h"
#include "api/schema/protobuf.h"

#include <utility>

namespace spillway::apiserver {

using api::Json;

Result<Json> audited_object(std::string_view body) {
  if (api::is_protobuf(body)) {
    SPILLWAY_TRY(type, api::protobuf_kind(body));
    if (type == nullptr) return make_error(ErrorCode::kBadRequest, "a kind that is not served");
    return api::read_protobuf(*type, body);
  }
  SPILLWAY_TRY(parsed, api::parse_bounded_json(body));
  // A patch may be a list of operations.
  if (parsed.is_object() || parsed.is_array()) return parsed;
  return make_error(ErrorCode::kBadRequest, "no object");
}

Json without_managed_fields(Json object) {
  object.erase({"metadata", "managedFields"});
  Json* items = object.find("items");
  if (items == nullptr || !items->is_array()) return object;
  for (Json& item : *items->if_array()) item.erase({"metadata", "managedFields"});
  return object;
}

}  // namespace spillway::apiserver
