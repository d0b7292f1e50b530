#include "apiserver/resource/event_view.h"

#include <array>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

api::Json* rename_member(api::Json& object, std::string_view from, std::string_view to) {
  api::Json* found = object.find(from);
  if (found == nullptr) return nullptr;
  api::Json value = std::move(*found);
  object.erase({from});
  object[to] = std::move(value);
  return object.find(to);
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kEventNames{
    {{"involvedObject", "regarding"},
     {"message", "note"},
     {"source", "deprecatedSource"},
     {"firstTimestamp", "deprecatedFirstTimestamp"},
     {"lastTimestamp", "deprecatedLastTimestamp"},
     {"count", "deprecatedCount"},
     {"reportingComponent", "reportingController"}}};

}  // namespace

api::Json event_to_view(const api::Json& stored) {
  api::Json view = stored;
  for (const auto& [v1, events] : kEventNames) rename_member(view, v1, events);
  view["apiVersion"] = "events.k8s.io/v1";
  return view;
}

api::Json event_from_view(const api::Json& view) {
  api::Json stored = view;
  for (const auto& [v1, events] : kEventNames) rename_member(stored, events, v1);
  stored["apiVersion"] = "v1";
  return stored;
}

}  // namespace spillway::apiserver
