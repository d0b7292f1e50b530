#include "policy/admission/reading.h"

#include "api/codec/codec.h"
#include "base/check.h"

namespace spillway::admission {

using api::Json;

namespace {

api::Pod decoded(const Json& document) {
  Result<api::Pod> pod = api::decode<api::Pod>(document);
  SPILLWAY_CHECK(pod.has_value());
  return *std::move(pod);
}

}  // namespace

api::Pod pod_at(const Json& in, std::string_view name) {
  return decoded(*in.find(name));
}

std::vector<api::Pod> pods_at(const Json& in, std::string_view name) {
  std::vector<api::Pod> pods;
  const Json* list = in.find(name);
  if (list == nullptr || list->if_array() == nullptr) return pods;
  for (const Json& each : *list->if_array()) pods.push_back(decoded(each));
  return pods;
}

std::vector<const api::Pod*> pointers_to(const std::vector<api::Pod>& pods) {
  std::vector<const api::Pod*> pointers;
  for (const api::Pod& pod : pods) pointers.push_back(&pod);
  return pointers;
}

std::vector<std::string> strings_at(const Json& in, std::string_view name) {
  std::vector<std::string> strings;
  const Json* list = in.find(name);
  if (list == nullptr || list->if_array() == nullptr) return strings;
  for (const Json& each : *list->if_array()) strings.push_back(*each.if_string());
  return strings;
}

bool flag_at(const Json& in, std::initializer_list<std::string_view> path, bool otherwise) {
  const Json* found = in.at(path);
  return found == nullptr ? otherwise : found->if_bool().value_or(otherwise);
}

std::int64_t number_at(const Json& in, std::string_view name) {
  return in.find(name)->if_int64().value();
}

Json result_of(const Answer& answer) {
  Json result = Json::object({{"admit", !answer.refusal}});
  if (answer.refusal) {
    result["reason"] = answer.refusal->reason;
    result["message"] = answer.refusal->message;
  }
  return result;
}

Json amounts_json(const policy::Amounts& amounts, std::int64_t pods) {
  Json out = Json::object({{"milli_cpu", amounts.milli_cpu},
                           {"memory", amounts.memory_bytes},
                           {"ephemeral_storage", amounts.ephemeral_storage_bytes},
                           {"pods", pods}});
  for (const auto& [name, amount] : amounts.scalars) out.make({"scalar", name}) = amount;
  return out;
}

Json failures_json(const std::vector<Failure>& failures) {
  Json::Array list;
  for (const Failure& failure : failures) {
    if (const auto* shortage = std::get_if<policy::Shortage>(&failure)) {
      list.push_back(Json::object({{"type", "insufficient"},
                                   {"resource", shortage->resource},
                                   {"requested", shortage->requested},
                                   {"used", shortage->used},
                                   {"capacity", shortage->capacity}}));
    } else {
      const auto& predicate = std::get<FailedPredicate>(failure);
      list.push_back(Json::object({{"type", "predicate"}, {"name", predicate.name}, {"desc", predicate.text}}));
    }
  }
  return Json(std::move(list));
}

Json preempting_event(std::string_view key, const std::string& name) {
  return Json::object({{key, name}, {"type", "Warning"}, {"reason", kPreempting}, {"message", kPreemptedMessage}});
}

}  // namespace spillway::admission
