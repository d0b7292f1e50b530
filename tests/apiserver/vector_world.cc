#include "apiserver/vector_world.h"

#include "api/text/time_text.h"

#include <string>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

/// The meaning of a placeholder.
std::string meaning(std::string_view text, const Json& object, WallTime now) {
  if (text == "@now") return api::format_time(now);
  for (const std::string_view member : {"uid", "resourceVersion", "deletionTimestamp"}) {
    if (text.substr(1) == member) return std::string(object.string_at({"metadata", member}));
  }
  return std::string(text);
}

}  // namespace

std::unique_ptr<TestServer> make_vector_world() {
  auto server = std::make_unique<TestServer>(
      ApiServer::Controllers::kNone, AdmissionRules{.memory_pressure_toleration = false});  // as by default upstream
  server->post("/api/v1/namespaces", R"({"metadata":{"name":"vecns"}})");
  server->post("/api/v1/namespaces/vecns/serviceaccounts", R"({"metadata":{"name":"default"}})");
  server->post("/apis/scheduling.k8s.io/v1/priorityclasses",
               R"({"metadata":{"name":"vec-low"},"value":-5,"preemptionPolicy":"Never"})");
  return server;
}

void fill_in(Json& value, const Json& object, WallTime now) {
  if (std::string* text = value.if_string()) {
    if (text->starts_with('@')) *text = meaning(*text, object, now);
  } else if (Json::Array* array = value.if_array()) {
    for (Json& element : *array) fill_in(element, object, now);
  } else if (Json::Object* members = value.if_object()) {
    for (auto& member : *members) fill_in(member.value, object, now);
  }
}

Json without_server_values(Json object) {
  for (const std::string_view member :
       {"uid", "creationTimestamp", "deletionTimestamp", "resourceVersion", "managedFields"}) {
    object.erase({"metadata", member});
  }
  if (object.string_at({"kind"}) == "CertificateSigningRequest") {
    for (const std::string_view member : {"username", "uid", "groups", "extra"}) object.erase({"spec", member});
  }
  return object;
}

}  // namespace spillway::apiserver
