// Vectors of creates with dryRun=All, through the whole engine: defaults, admission, validation, metadata.
#include "apiserver/server_fixture.h"
#include "support/vectors.h"

#include <algorithm>

namespace spillway::apiserver {

namespace {

using api::Json;

TestServer& world() {
  static TestServer& server = *[] {
    static TestServer made;
    made.post("/api/v1/namespaces", R"({"metadata":{"name":"vecns"}})");
    made.post("/apis/scheduling.k8s.io/v1/priorityclasses",
              R"({"metadata":{"name":"vec-low"},"value":-5,"preemptionPolicy":"Never"})");
    return &made;
  }();
  return server;
}

/// The time at which conditions of a new object were set is that of the request.
void blank_times(Json& document) {
  Json* conditions = document.at({"object", "status", "conditions"});
  if (conditions == nullptr || conditions->if_array() == nullptr || document.string_at({"object", "kind"}) != "Pod")
    return;
  for (Json& condition : *conditions->if_array()) condition["lastTransitionTime"] = "now";
}

std::optional<support::Mismatch> check_create(const Json& row) {
  TestServer& server = world();
  const Answer answer = server.post(std::string(row.string_at({"path"})) + "?dryRun=All&fieldValidation=Ignore",
                                    api::to_text(*row.find("body")));
  const Json& want = *row.find("expected");
  Json got = Json::object({{"code", answer.code}});
  if (want.find("object") != nullptr) {
    Json object = answer.body;
    for (const std::string_view member : {"uid", "creationTimestamp", "resourceVersion", "managedFields"}) {
      object.erase({"metadata", member});
    }
    if (row.string_at({"kind"}) == "CertificateSigningRequest") {
      for (const std::string_view member : {"username", "uid", "groups", "extra"}) object.erase({"spec", member});
    }
    got["object"] = std::move(object);
    blank_times(got);
    Json wanted = want;
    blank_times(wanted);
    return support::compare(wanted, got);
  } else {
    got["reason"] = answer.string_at({"reason"});
    if (want.find("causes") != nullptr) got["causes"] = causes_of(answer.body);
  }
  return support::compare(want, got);
}

/// Rows that name each cause once, however often it is told.
std::optional<support::Mismatch> check_distinct_causes(const Json& row) {
  std::optional<support::Mismatch> mismatch = check_create(row);
  if (!mismatch) return mismatch;
  Json got = api::parse_json(mismatch->got).value();
  Json* causes = got.find("causes");
  if (causes == nullptr || causes->if_array() == nullptr) return mismatch;
  Json::Array& list = *causes->if_array();
  list.erase(std::unique(list.begin(), list.end()), list.end());  // they are sorted
  return support::compare(*row.find("expected"), got);
}

const bool kCreate = support::add_vector_check("api/create", check_distinct_causes);
const bool kSigningCreate = support::add_vector_check("api/signing_create", check_create);

}  // namespace

}  // namespace spillway::apiserver
