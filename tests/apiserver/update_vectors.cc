// Vectors of updates with dryRun=All: an object is made, prepared, and then changed, through the whole engine.
#include "apiserver/server_fixture.h"
#include "support/vectors.h"

#include <algorithm>

namespace spillway::apiserver {

namespace {

using api::Json;

/// Strings "@uid" and "@resourceVersion" become what they stand for.
void fill_in(Json& value, const Json& existing) {
  if (std::string* text = value.if_string(); text != nullptr && text->starts_with('@')) {
    *text = existing.string_at({"metadata", std::string_view(*text).substr(1)});
  } else if (Json::Array* array = value.if_array()) {
    for (Json& element : *array) fill_in(element, existing);
  } else if (Json::Object* object = value.if_object()) {
    for (auto& member : *object) fill_in(member.value, existing);
  }
}

Answer send(TestServer& server, const Json& request, const Json& existing, std::string_view query) {
  Json body = *request.find("body");
  fill_in(body, existing);
  api::HeaderList headers;
  if (const std::string_view type = request.string_at({"contentType"}); !type.empty()) {
    headers.emplace_back("content-type", type);
  }
  return server.call(api::parse_method(request.string_at({"method"})),
                     std::string(request.string_at({"path"})) + std::string(query), api::to_text(body),
                     std::move(headers));
}

/// Without repetitions: upstream says four times what is wrong with the metadata of a changed signing request.
Json distinct(Json causes) {
  Json::Array& list = *causes.if_array();
  list.erase(std::unique(list.begin(), list.end()), list.end());  // they are sorted
  return causes;
}

std::optional<support::Mismatch> check_update(const Json& row) {
  TestServer server;
  const std::string collection(row.string_at({"create"}));
  const Answer made = server.post(collection, api::to_text(*row.find("existing")));
  const std::string target = collection + "/" + made.string_at({"metadata", "name"});
  if (const Json* before = row.find("before"); before != nullptr && before->if_array() != nullptr) {
    for (const Json& request : *before->if_array()) send(server, request, server.get(target).body, "");
  }
  const Answer answer = send(server, row, server.get(target).body, "?dryRun=All&fieldValidation=Ignore");
  Json want = *row.find("expected");
  Json got = Json::object({{"code", answer.code}});
  if (want.find("object") != nullptr) {
    Json object = answer.body;
    for (const std::string_view member : {"uid", "creationTimestamp", "resourceVersion", "managedFields"}) {
      object.erase({"metadata", member});
    }
    for (const std::string_view member : {"username", "uid", "groups", "extra"}) object.erase({"spec", member});
    got["object"] = std::move(object);
  } else {
    got["reason"] = answer.string_at({"reason"});
    if (const Json* causes = want.find("causes")) {
      got["causes"] = distinct(causes_of(answer.body));
      want["causes"] = distinct(*causes);
    }
  }
  return support::compare(want, got);
}

const bool kSigningUpdate = support::add_vector_check("api/signing_update", check_update);

}  // namespace

}  // namespace spillway::apiserver
