#include "agent/scripted_api.h"

#include "api/exchange/status.h"
#include "api/patch/patch.h"
#include "api/schema/schema.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::agent {

using api::Json;

namespace {

std::string plural_of(std::string_view kind) {
  std::string plural(kind);
  std::ranges::transform(plural, plural.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return plural + (plural.ends_with('s') ? "es" : "s");
}

api::Response json(int status, const Json& document) {
  return {.status = status, .headers = {{"Content-Type", "application/json"}}, .body = api::to_text(document)};
}

api::Response failure(ErrorCode code, const std::string& message) {
  return json(api::http_code(code), Json::object({{"kind", "Status"},
                                                  {"apiVersion", "v1"},
                                                  {"status", "Failure"},
                                                  {"reason", api::reason_text(code)},
                                                  {"message", message},
                                                  {"code", api::http_code(code)}}));
}

std::string path_without_query(const std::string& target) {
  return target.substr(0, target.find('?'));
}

}  // namespace

std::string ScriptedApi::path_of(const Json& object) {
  return client::object_path(object.string_at({"apiVersion"}), plural_of(object.string_at({"kind"})),
                             object.string_at({"metadata", "namespace"}), object.string_at({"metadata", "name"}));
}

const Json* ScriptedApi::find(const std::string& path) const {
  const auto it = objects_.find(path);
  return it == objects_.end() ? nullptr : &it->second;
}

std::vector<Json> ScriptedApi::all(std::string_view collection) const {
  std::vector<Json> found;
  for (const auto& [path, object] : objects_) {
    if (path.find(collection) != std::string::npos) found.push_back(object);
  }
  return found;
}

ScriptedApi::Watch ScriptedApi::watch_of(const api::Target& target) {
  Watch watch;
  watch.resource = target.segments.back();
  if (const std::string* selector = target.find("fieldSelector")) {
    const auto equals = selector->find('=');
    watch.field = selector->substr(0, equals);
    watch.value = selector->substr(equals + 1);
  }
  return watch;
}

bool ScriptedApi::selects(const Watch& watch, const Json& object) {
  if (plural_of(object.string_at({"kind"})) != watch.resource) return false;
  if (watch.field == "metadata.name") return object.string_at({"metadata", "name"}) == watch.value;
  if (watch.field == "spec.nodeName") return object.string_at({"spec", "nodeName"}) == watch.value;
  return true;
}

void ScriptedApi::announce(std::string_view type, const Json& object, std::vector<client::ApiEvent>& events) const {
  for (const auto& [id, watch] : watches_) {
    if (!selects(watch, object)) continue;
    const std::string frame = api::to_text(Json::object({{"type", type}, {"object", object}}));
    events.emplace_back(client::WatchFrame{id, std::make_shared<const std::string>(frame)});
  }
}

void ScriptedApi::store(const std::string& path, Json object, std::vector<client::ApiEvent>& events) {
  const bool added = !objects_.contains(path);
  object.make({"metadata", "resourceVersion"}) = std::to_string(++version_);
  if (object.string_at({"metadata", "uid"}).empty()) object.make({"metadata", "uid"}) = fmt::format("uid-{}", version_);
  objects_[path] = object;
  announce(added ? "ADDED" : "MODIFIED", object, events);
}

std::vector<client::ApiEvent> ScriptedApi::put(Json object) {
  std::vector<client::ApiEvent> events;
  const std::string path = path_of(object);
  store(path, std::move(object), events);
  return events;
}

std::vector<client::ApiEvent> ScriptedApi::remove(const std::string& path) {
  std::vector<client::ApiEvent> events;
  const auto it = objects_.find(path);
  if (it == objects_.end()) return events;
  it->second.make({"metadata", "resourceVersion"}) = std::to_string(++version_);
  announce("DELETED", it->second, events);
  objects_.erase(it);
  return events;
}

std::vector<client::ApiEvent> ScriptedApi::break_watches(const Error& error) {
  std::vector<client::ApiEvent> events;
  for (const auto& [id, watch] : watches_) events.emplace_back(client::WatchEnded{id, error});
  watches_.clear();
  return events;
}

api::Response ScriptedApi::create(const std::string& path, const api::Request& request,
                                  std::vector<client::ApiEvent>& events) {
  Json object = api::parse_json(request.body).value();
  const std::string name(object.string_at({"metadata", "name"}));
  const std::string full = path + "/" + name;
  if (objects_.contains(full)) return failure(ErrorCode::kAlreadyExists, full + " already exists");
  store(full, std::move(object), events);
  return json(201, objects_.at(full));
}

api::Response ScriptedApi::patch(const std::string& path, const api::Request& request,
                                 std::vector<client::ApiEvent>& events) {
  const auto it = objects_.find(path);
  if (it == objects_.end()) return failure(ErrorCode::kNotFound, path + " not found");
  Json change = api::parse_json(request.body).value();
  const std::string_view uid = change.string_at({"metadata", "uid"});
  if (!uid.empty() && uid != it->second.string_at({"metadata", "uid"})) {
    return failure(ErrorCode::kConflict, "the UID does not match");
  }
  const std::string_view version = change.string_at({"metadata", "resourceVersion"});
  if (!version.empty() && version != it->second.string_at({"metadata", "resourceVersion"})) {
    return failure(ErrorCode::kConflict, "the object has been modified");
  }
  const api::Type* type = api::find_kind(it->second.string_at({"apiVersion"}), it->second.string_at({"kind"}));
  const auto kind = api::parse_patch_type(request.header("content-type"));
  auto changed = api::apply_patch(*type, it->second, kind.value(), change);
  if (!changed) return failure(changed.error().code, changed.error().message);
  if (*changed != it->second) store(path, *std::move(changed), events);
  return json(200, objects_.at(path));
}

Result<api::Response> ScriptedApi::answer(const api::Request& request, std::vector<client::ApiEvent>& events) {
  std::string path = path_without_query(request.target);
  if (path.ends_with("/status")) path.resize(path.size() - std::string_view("/status").size());
  switch (request.method) {
    case api::Method::kGet: {
      if (const Json* object = find(path)) return json(200, *object);
      const api::Target target = api::parse_target(request.target).value();
      if (target.find("limit") == nullptr) return failure(ErrorCode::kNotFound, path + " not found");
      Json items = Json::array();
      const Watch selection = watch_of(target);
      for (const auto& [at, object] : objects_) {
        if (selects(selection, object)) items.if_array()->push_back(object);
      }
      Json list = Json::object({{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}});
      list.make({"metadata", "resourceVersion"}) = std::to_string(version_);
      return json(200, list);
    }
    case api::Method::kPost:
      return create(path, request, events);
    case api::Method::kPatch:
      return patch(path, request, events);
    case api::Method::kPut: {
      const auto it = objects_.find(path);
      if (it == objects_.end()) return failure(ErrorCode::kNotFound, path + " not found");
      Json object = request.document ? *request.document : api::parse_json(request.body).value();
      if (object.string_at({"metadata", "resourceVersion"}) != it->second.string_at({"metadata", "resourceVersion"})) {
        return failure(ErrorCode::kConflict, "the object has been modified");
      }
      store(path, std::move(object), events);
      return json(200, objects_.at(path));
    }
    case api::Method::kDelete: {
      const Json* found = find(path);
      if (found == nullptr) return failure(ErrorCode::kNotFound, path + " not found");
      const Json options = request.body.empty() ? Json() : api::parse_json(request.body).value();
      const std::string_view uid = options.string_at({"preconditions", "uid"});
      if (!uid.empty() && uid != found->string_at({"metadata", "uid"})) {
        return failure(ErrorCode::kConflict, "the UID does not match");
      }
      for (client::ApiEvent& event : remove(path)) events.push_back(std::move(event));
      return json(200, Json::object({{"kind", "Status"}, {"status", "Success"}}));
    }
    case api::Method::kHead:
    case api::Method::kOptions:
    case api::Method::kOther:
      break;
  }
  return failure(ErrorCode::kMethodNotAllowed, "not scripted");
}

std::vector<client::ApiEvent> ScriptedApi::handle(const client::ApiCommand& command) {
  std::vector<client::ApiEvent> events;
  if (const auto* call = std::get_if<client::SendCall>(&command)) {
    requests_.push_back(call->request);
    log_.push_back(
        fmt::format("{} {}", api::to_string(call->request.method), path_without_query(call->request.target)));
    const auto fault = fault_ ? fault_(call->request) : std::nullopt;
    const Result<api::Response> response = fault ? *fault : answer(call->request, events);
    statuses_.push_back(response ? response->status : 0);
    events.insert(events.begin(), client::CallDone{call->id, response});
  } else if (const auto* open = std::get_if<client::OpenWatch>(&command)) {
    watches_[open->id] = watch_of(api::parse_target(open->request.target).value());
  } else if (const auto* close = std::get_if<client::CloseWatch>(&command)) {
    watches_.erase(close->id);
  }
  return events;
}

}  // namespace spillway::agent
