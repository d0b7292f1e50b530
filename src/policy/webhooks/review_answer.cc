#include "policy/webhooks/review_answer.h"

#include "api/json/document_bounds.h"
#include "api/json/json_patch.h"
#include "api/text/base64.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::webhooks {

namespace {

using api::Json;

constexpr int kCodeMin = 400;
constexpr int kCodeMax = 599;
constexpr std::size_t kReasonMax = 128;
constexpr std::size_t kShownMax = 64;  // bytes of a wrong value in a message

Error wrong(std::string_view what) {
  return make_error(ErrorCode::kInvalid, "{}", what);
}

/// The member of a type that it may have; nullptr: absent or null. An error: it is something else.
template <typename IsType>
Result<const Json*> member(const Json& object, std::string_view key, IsType is_type, std::string_view type) {
  const Json* found = object.find(key);
  if (found == nullptr || found->is_null()) return nullptr;
  if (!(found->*is_type)()) {
    return wrong(fmt::format("response.{} is {}, expected {}", key, api::type_phrase(*found), type));
  }
  return found;
}

Result<std::string_view> text_member(const Json& object, std::string_view key) {
  SPILLWAY_TRY(found, member(object, key, &Json::is_string, "a string"));
  return found == nullptr ? std::string_view() : std::string_view(*found->if_string());
}

Outcome read_patch(const Json& response, Phase phase, ReviewAnswer& answer) {
  SPILLWAY_TRY(encoded, text_member(response, "patch"));
  SPILLWAY_TRY(type, member(response, "patchType", &Json::is_string, "a string"));
  if (phase == Phase::kValidating) {
    if (!encoded.empty()) return wrong("validating webhook may not return response.patch");
    if (type != nullptr) return wrong("validating webhook may not return response.patchType");
    return {};
  }
  if (!encoded.empty() && type == nullptr) return wrong("webhook returned response.patch but not response.patchType");
  if (encoded.empty() && type != nullptr) return wrong("webhook returned response.patchType but not response.patch");
  if (type == nullptr) return {};
  if (type->string_at({}) != "JSONPatch") {
    return wrong(fmt::format("webhook returned invalid response.patchType of \"{}\"",
                             shortened(std::string(type->string_at({})), kShownMax)));
  }
  SPILLWAY_TRY(text, api::decode_base64(encoded));
  SPILLWAY_TRY(patch, api::parse_bounded_json(text, nullptr, api::kPatchValuesMax));
  if (!patch.is_array()) return wrong("response.patch is no list of operations");
  if (!patch.if_array()->empty()) answer.patch = std::move(patch);
  return {};
}

Outcome read_notes(const Json& response, ReviewAnswer& answer) {
  SPILLWAY_TRY(warnings, member(response, "warnings", &Json::is_array, "a list"));
  if (warnings != nullptr) {
    for (const Json& warning : *std::as_const(*warnings).if_array()) {
      if (!warning.is_string()) return wrong("response.warnings has an element that is not a string");
      if (answer.warnings.size() < kWarningsMax) {
        answer.warnings.push_back(shortened(*warning.if_string(), kAnswerTextMax));
      }
    }
  }
  SPILLWAY_TRY(annotations, member(response, "auditAnnotations", &Json::is_object, "an object"));
  if (annotations == nullptr) return {};
  for (const auto& [key, value] : *std::as_const(*annotations).if_object()) {
    if (!value.is_string()) return wrong("response.auditAnnotations has a value that is not a string");
    if (answer.annotations.size() < kAnnotationsMax) {
      answer.annotations.emplace_back(shortened(key, kReasonMax), shortened(*value.if_string(), kAnswerTextMax));
    }
  }
  return {};
}

Outcome read_status(const Json& response, ReviewAnswer& answer) {
  answer.status.code = 0;
  SPILLWAY_TRY(status, member(response, "status", &Json::is_object, "an object"));
  if (status == nullptr) return {};
  if (const Json* code = status->find("code"); code != nullptr && !code->is_null()) {
    const auto number = code->if_int64();
    if (!number) return wrong("response.status.code is no integer");
    answer.status.code = static_cast<int>(std::clamp<std::int64_t>(*number, 0, kCodeMax + 1));
  }
  SPILLWAY_TRY(message, text_member(*status, "message"));
  SPILLWAY_TRY(reason, text_member(*status, "reason"));
  answer.status.message = shortened(std::string(message), kAnswerTextMax);
  answer.status.reason = shortened(std::string(reason), kReasonMax);
  return {};
}

/// The review's apiVersion and kind, as its sender wrote them.
std::string kind_text(const Json& review) {
  return shortened(fmt::format("{}, Kind={}", review.string_at({"apiVersion"}), review.string_at({"kind"})), kShownMax);
}

}  // namespace

Result<ReviewAnswer> read_answer(Phase phase, std::string_view uid, std::string_view body) {
  SPILLWAY_TRY(review, api::parse_bounded_json(body, nullptr));
  if (!review.is_object()) return wrong(fmt::format("expected an AdmissionReview, got {}", api::type_phrase(review)));
  if (review.string_at({"apiVersion"}) != "admission.k8s.io/v1" || review.string_at({"kind"}) != "AdmissionReview") {
    return wrong(fmt::format("expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {}",
                             kind_text(review)));
  }
  const Json* response = std::as_const(review).find("response");
  if (response == nullptr || response->is_null()) return wrong("webhook response was absent");
  if (!response->is_object()) return wrong("webhook response is no object");
  SPILLWAY_TRY(answered, text_member(*response, "uid"));
  if (answered != uid) {
    return wrong(
        fmt::format("expected response.uid=\"{}\", got \"{}\"", uid, shortened(std::string(answered), kShownMax)));
  }
  ReviewAnswer answer;
  SPILLWAY_TRY(allowed, member(*response, "allowed", &Json::is_bool, "true or false"));
  answer.allowed = allowed != nullptr && allowed->if_bool().value_or(false);
  SPILLWAY_TRY_VOID(read_patch(*response, phase, answer));
  SPILLWAY_TRY_VOID(read_notes(*response, answer));
  SPILLWAY_TRY_VOID(read_status(*response, answer));
  return answer;
}

api::Status denial_status(std::string_view webhook, const api::Status& said) {
  api::Status status;
  status.code = said.code < kCodeMin || said.code > kCodeMax ? kCodeMin : said.code;
  status.reason = said.reason;
  const std::string_view why = said.message.empty() ? said.reason : said.message;
  status.message = fmt::format("admission webhook \"{}\" denied the request{}{}", webhook, why.empty() ? " " : ": ",
                               why.empty() ? "without explanation" : why);
  return status;
}

api::Status internal_status(std::string_view why) {
  api::Status status = make_error(ErrorCode::kInternalError, "Internal error occurred: {}", why);
  status.make_details().causes.push_back({"", std::string(why), ""});
  return status;
}

api::Status failure_status(std::string_view webhook, std::string_view why) {
  return internal_status(fmt::format("failed calling webhook \"{}\": {}", webhook, why));
}

api::Status dry_run_status(std::string_view webhook) {
  return make_error(ErrorCode::kBadRequest, "admission webhook \"{}\" does not support dry run", webhook);
}

api::StatusResult<Json> patched(const Json& object, const Json& patch) {
  Result<Json> made = api::json_patch(object, patch);
  if (!made) return internal_status(made.error().text());
  if (api::to_text(*made).size() > kObjectBytesMax) {
    return internal_status(fmt::format("the patch makes an object of more than {} bytes", kObjectBytesMax));
  }
  return *std::move(made);
}

}  // namespace spillway::webhooks
