// Vectors of creates with dryRun=All, through the whole engine: defaults, admission, validation, metadata.
#include "apiserver/vector_world.h"
#include "support/vectors.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

TestServer& world() {
  static TestServer& server = *make_vector_world().release();
  return server;
}

/// The time at which conditions of a new object were set is that of the request.
void blank_times(Json& document) {
  Json* conditions = document.at({"object", "status", "conditions"});
  if (conditions == nullptr || conditions->if_array() == nullptr || document.string_at({"object", "kind"}) != "Pod")
    return;
  for (Json& condition : *conditions->if_array()) condition["lastTransitionTime"] = "now";
}

/// Rows of Services leave out what the server chooses.
void drop_allocated(const Json& want, Json& got) {
  const Json* chosen = want.at({"object", "spec"});
  if (chosen == nullptr || want.string_at({"object", "kind"}) != "Service") return;
  for (const std::string_view member : {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}) {
    if (chosen->find(member) == nullptr) got.erase({"object", "spec", member});
  }
}

Json without_repetitions(Json causes) {
  Json::Array& list = *causes.if_array();
  list.erase(std::unique(list.begin(), list.end()), list.end());  // the list is sorted
  return causes;
}

enum class Repetitions { kReported, kOmitted };

template <Repetitions repetitions>
std::optional<support::Mismatch> check_create(const Json& row) {
  TestServer& server = world();
  const Answer answer = server.post(std::string(row.string_at({"path"})) + "?dryRun=All&fieldValidation=Ignore",
                                    api::to_text(*row.find("body")));
  Json want = *row.find("expected");
  Json got = Json::object({{"code", answer.code}});
  if (want.find("object") != nullptr) {
    fill_in(want, answer.body, server.now().wall);
    got["object"] = without_server_values(answer.body);
    blank_times(got);
    blank_times(want);
    drop_allocated(want, got);
  } else {
    got["reason"] = answer.string_at({"reason"});
    if (want.find("causes") != nullptr) got["causes"] = causes_of(answer.body);
    if (want.find("message") != nullptr) got["message"] = answer.string_at({"message"});
    if (repetitions == Repetitions::kOmitted && got.find("causes") != nullptr) {
      got["causes"] = without_repetitions(*got.find("causes"));
    }
  }
  return support::compare(want, got);
}

const bool kCreate = support::add_vector_check("api/create", check_create<Repetitions::kOmitted>);
const bool kSigningCreate = support::add_vector_check("api/signing_create", check_create<Repetitions::kReported>);
const bool kDefaulting = support::add_vector_check("api/defaulting", check_create<Repetitions::kReported>);
const bool kEndpointsDefaulting =
    support::add_vector_check("api/endpoints_defaulting", check_create<Repetitions::kReported>);
const bool kEndpointsValidationCreate =
    support::add_vector_check("api/endpoints_validation_create", check_create<Repetitions::kReported>);
const bool kJobDefaulting = support::add_vector_check("api/job_defaulting", check_create<Repetitions::kReported>);
const bool kJobValidationCreate =
    support::add_vector_check("api/job_validation_create", check_create<Repetitions::kReported>);
const bool kLimitsDefaulting = support::add_vector_check("api/limits_defaulting", check_create<Repetitions::kReported>);
const bool kLimitsValidationCreate =
    support::add_vector_check("api/limits_validation_create", check_create<Repetitions::kReported>);
const bool kNewCreate = support::add_vector_check("api/new_create", check_create<Repetitions::kReported>);
const bool kQuotaDefaulting = support::add_vector_check("api/quota_defaulting", check_create<Repetitions::kReported>);
const bool kQuotaValidationCreate =
    support::add_vector_check("api/quota_validation_create", check_create<Repetitions::kReported>);
const bool kStatefulDefaulting =
    support::add_vector_check("api/stateful_defaulting", check_create<Repetitions::kReported>);
const bool kStatefulValidationCreate =
    support::add_vector_check("api/stateful_validation_create", check_create<Repetitions::kReported>);
const bool kDefaultingPod = support::add_vector_check("api/defaulting_pod", check_create<Repetitions::kReported>);
const bool kValidationCreate = support::add_vector_check("api/validation_create", check_create<Repetitions::kReported>);
const bool kValidationCreatePod =
    support::add_vector_check("api/validation_create_pod", check_create<Repetitions::kReported>);

}  // namespace

}  // namespace spillway::apiserver
