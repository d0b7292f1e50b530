// Vectors of updates with dryRun=All: an object is made, prepared, and then changed, through the whole engine.
#include "apiserver/vector_world.h"
#include "support/vectors.h"

#include <memory>
#include <string>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

Answer send(TestServer& server, const Json& request, const Json& existing, std::string_view query) {
  Json body = request.find("body") != nullptr ? *request.find("body") : Json();
  fill_in(body, existing, server.now().wall);
  api::HeaderList headers;
  if (const std::string_view type = request.string_at({"contentType"}); !type.empty()) {
    headers.emplace_back("content-type", type);
  }
  return server.call(api::parse_method(request.string_at({"method"})),
                     std::string(request.string_at({"path"})) + std::string(query),
                     body.is_null() ? std::string() : api::to_text(body), std::move(headers));
}

/// A server that holds the row's object, prepared, and the path of that object.
struct Prepared {
  std::string key;  // the key that the row names
  std::unique_ptr<TestServer> server;
  std::string target;  // empty: there is no object
};

Prepared prepare(const Json& row, std::string key) {
  Prepared prepared{std::move(key), make_vector_world(), {}};
  TestServer& server = *prepared.server;
  const Json* existing = row.find("existing");
  if (existing != nullptr && !existing->is_null()) {
    const std::string collection(row.string_at({"create"}));
    const Answer made = server.post(collection, api::to_text(*existing));
    prepared.target = collection + "/" + made.string_at({"metadata", "name"});
  }
  const Json* before = row.find("before");
  if (before == nullptr || before->if_array() == nullptr) return prepared;
  for (const Json& request : *before->if_array()) {
    send(server, request, prepared.target.empty() ? Json() : server.get(prepared.target).body, "");
  }
  return prepared;
}

/// Consecutive rows mostly have the same beginning, and none of them writes.
Prepared& prepared_for(const Json& row) {
  static Prepared last;
  Json asked = Json::object();
  for (const std::string_view member : {"create", "existing", "before"}) {
    if (const Json* value = row.find(member)) asked[member] = *value;
  }
  std::string key = api::to_text(asked);
  if (last.server == nullptr || last.key != key) last = prepare(row, std::move(key));
  return last;
}

std::optional<support::Mismatch> check_update(const Json& row) {
  const Prepared& prepared = prepared_for(row);
  TestServer& server = *prepared.server;
  const Json existing = prepared.target.empty() ? Json() : server.get(prepared.target).body;
  const Answer answer = send(server, row, existing, "?dryRun=All&fieldValidation=Ignore");
  Json want = *row.find("expected");
  Json got = Json::object({{"code", answer.code}});
  if (want.find("object") != nullptr) {
    fill_in(want, existing, server.now().wall);
    got["object"] = without_server_values(answer.body);
  } else {
    got["reason"] = answer.string_at({"reason"});
    if (want.find("causes") != nullptr) got["causes"] = causes_of(answer.body);
    if (want.find("message") != nullptr) got["message"] = answer.string_at({"message"});
  }
  return support::compare(want, got);
}

const bool kSigningUpdate = support::add_vector_check("api/signing_update", check_update);
const bool kEndpointsValidationUpdate = support::add_vector_check("api/endpoints_validation_update", check_update);
const bool kJobValidationUpdate = support::add_vector_check("api/job_validation_update", check_update);
const bool kLimitsValidationUpdate = support::add_vector_check("api/limits_validation_update", check_update);
const bool kNewUpdate = support::add_vector_check("api/new_update", check_update);
const bool kQuotaValidationUpdate = support::add_vector_check("api/quota_validation_update", check_update);
const bool kStatefulValidationUpdate = support::add_vector_check("api/stateful_validation_update", check_update);
const bool kValidationUpdate = support::add_vector_check("api/validation_update", check_update);
const bool kValidationUpdatePod = support::add_vector_check("api/validation_update_pod", check_update);

}  // namespace

}  // namespace spillway::apiserver
