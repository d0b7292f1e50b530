#include "apiserver/resource/object_condition.h"

#include "api/json/json_values.h"
#include "api/text/time_text.h"

#include <utility>

namespace spillway::apiserver {

using api::Json;

void set_condition(Json& object, std::string_view type, std::string_view status, std::string_view reason,
                   std::string_view message, WallTime now) {
  Json& list = object.make({"status", "conditions"});
  if (!list.is_array()) list = Json::array();
  Json* found = nullptr;
  for (Json& condition : *list.if_array()) {
    if (condition.string_at({"type"}) == type) found = &condition;
  }
  if (found == nullptr) found = &list.if_array()->emplace_back(Json::object({{"type", type}}));
  if (found->string_at({"status"}) != status) (*found)["lastTransitionTime"] = api::format_time(now);
  (*found)["status"] = status;
  if (object.string_at({"apiVersion"}) == "v1" && object.string_at({"kind"}) == "Pod") {
    if (found->find("lastProbeTime") == nullptr) (*found)["lastProbeTime"] = nullptr;
    const std::int64_t generation = api::integer_at(object, {"metadata", "generation"}, 0);
    if (generation != 0) (*found)["observedGeneration"] = generation;
  }
  for (const auto& [member, text] : {std::pair{"reason", reason}, std::pair{"message", message}}) {
    if (text.empty()) {
      found->erase({member});
    } else {
      (*found)[member] = text;
    }
  }
}

}  // namespace spillway::apiserver
