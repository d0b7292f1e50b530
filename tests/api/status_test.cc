#include "api/exchange/status.h"

#include <gtest/gtest.h>

#include <array>

namespace spillway::api {
namespace {

Json parse(std::string_view text) {
  return parse_json(text).value();
}

TEST(StatusCodes, EveryCodeMapsToHttpAndBack) {
  constexpr std::array kAll = {ErrorCode::kBadRequest,
                               ErrorCode::kUnauthorized,
                               ErrorCode::kForbidden,
                               ErrorCode::kNotFound,
                               ErrorCode::kMethodNotAllowed,
                               ErrorCode::kNotAcceptable,
                               ErrorCode::kAlreadyExists,
                               ErrorCode::kConflict,
                               ErrorCode::kExpired,
                               ErrorCode::kRequestEntityTooLarge,
                               ErrorCode::kUnsupportedMediaType,
                               ErrorCode::kInvalid,
                               ErrorCode::kTooManyRequests,
                               ErrorCode::kTimeout,
                               ErrorCode::kServiceUnavailable,
                               ErrorCode::kInternalError};
  for (const ErrorCode code : kAll) {
    EXPECT_GE(http_code(code), 400);
    EXPECT_EQ(error_code_of(reason_text(code), http_code(code)), code) << reason_text(code);
    EXPECT_EQ(error_code_of(reason_text(code), 0), code) << reason_text(code);
  }
}

TEST(StatusCodes, UnknownReasonsGoByHttpCode) {
  EXPECT_EQ(error_code_of("", 409), ErrorCode::kConflict);
  EXPECT_EQ(error_code_of("Gone", 410), ErrorCode::kExpired);
  EXPECT_EQ(error_code_of("ServerTimeout", 500), ErrorCode::kTimeout);
  EXPECT_EQ(error_code_of("Whatever", 418), ErrorCode::kBadRequest);
  EXPECT_EQ(error_code_of("Whatever", 599), ErrorCode::kInternalError);
}

TEST(StatusText, NotFoundNamesTheResource) {
  const Status status = not_found_status({"apps", "deployments"}, "web");
  EXPECT_EQ(to_json(status), parse(R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
    "message":"deployments.apps \"web\" not found","reason":"NotFound",
    "details":{"name":"web","group":"apps","kind":"deployments"},"code":404})"));
}

TEST(StatusText, UnknownResourcesAndMethodsHaveEmptyDetails) {
  EXPECT_EQ(*to_json(unknown_resource_status()).find("details"), Json::object());
  EXPECT_EQ(*to_json(method_not_allowed_status()).find("details"), Json::object());
  EXPECT_EQ(to_json(Status(make_error(ErrorCode::kBadRequest, "x"))).find("details"), nullptr);
}

TEST(StatusText, StaleVersionSaysWhatKubectlExpects) {
  EXPECT_EQ(stale_version_status({"", "pods"}, "p").message,
            "Operation cannot be fulfilled on pods \"p\": the object has been modified; please apply your changes to "
            "the latest version and try again");
}

TEST(StatusText, ForbiddenWithAndWithoutName) {
  EXPECT_EQ(forbidden_status({"", "pods"}, "p", "no").message, "pods \"p\" is forbidden: no");
  EXPECT_EQ(forbidden_status({"", "pods"}, "", "no").message, "pods is forbidden: no");
  EXPECT_EQ(forbidden_status({}, {}, "User \"u\" cannot get path \"/ui\"").message,
            "forbidden: User \"u\" cannot get path \"/ui\"");
}

TEST(StatusText, InvalidListsEveryCauseButEachTextOnce) {
  FieldErrors errors;
  errors.required("spec.containers[0].image");
  errors.invalid("metadata.name", "A b", "must be lower case");
  errors.invalid("metadata.name", "A b", "must be lower case");
  const Status status = invalid_status({"", "Pod"}, "A b", errors);
  EXPECT_EQ(status.code, 422);
  EXPECT_EQ(status.message,
            "Pod \"A b\" is invalid: [spec.containers[0].image: Required value, "
            "metadata.name: Invalid value: \"A b\": must be lower case]");
  ASSERT_EQ(status.details->causes.size(), 3u);
  EXPECT_EQ(status.details->causes[0],
            (StatusCause{"FieldValueRequired", "Required value", "spec.containers[0].image"}));
}

TEST(StatusText, OneCauseHasNoBrackets) {
  FieldErrors errors;
  errors.forbidden("spec", "pod updates may not change fields");
  EXPECT_EQ(invalid_status({"apps", "Deployment"}, "d", errors).message,
            "Deployment.apps \"d\" is invalid: spec: Forbidden: pod updates may not change fields");
}

TEST(FieldErrorText, HasUpstreamsWording) {
  FieldErrors errors;
  constexpr std::array<std::string_view, 2> kPolicies = {"Always", "Never"};
  errors.required("a", "must be set");
  errors.not_supported("b", "Sometimes", kPolicies);
  errors.duplicate("c", 80);
  errors.not_found("d", "vol");
  errors.too_long("e", 63);
  errors.too_many("f", 3, 2);
  errors.type_invalid("g", 1.5, "must be an integer");
  std::vector<std::string> texts;
  for (const FieldError& error : errors.errors()) texts.push_back(error.text());
  EXPECT_EQ(texts, (std::vector<std::string>{
                       "a: Required value: must be set",
                       "b: Unsupported value: \"Sometimes\": supported values: \"Always\", \"Never\"",
                       "c: Duplicate value: 80", "d: Not found: \"vol\"", "e: Too long: may not be more than 63 bytes",
                       "f: Too many: 3: must have at most 2 items", "g: Invalid value: 1.5: must be an integer"}));
}

TEST(FieldPaths, IndexAndKey) {
  EXPECT_EQ(index_path("spec.ports", 2), "spec.ports[2]");
  EXPECT_EQ(key_path("spec.limits", "cpu"), "spec.limits[cpu]");
}

TEST(StatusDocument, RoundTripsWithAllDetails) {
  Status status = retry_status(ErrorCode::kTooManyRequests, "slow down", 10);
  status.details->causes.push_back({"DisruptionBudget", "needs 3", "spec"});
  status.details->uid = "u";
  status.continue_token = "next";
  EXPECT_EQ(parse_status(to_json(status)).value(), status);
  EXPECT_EQ(to_error(status), (Error{ErrorCode::kTooManyRequests, "slow down", {}}));
}

TEST(StatusDocument, SuccessRoundTrips) {
  const Status status = deleted_status({"", "configmaps"}, "c", "u-1");
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(parse_status(to_json(status)).value(), status);
}

TEST(StatusDocument, ForeignDocumentsAreRefused) {
  for (const std::string_view text : {R"({})", R"({"kind":"Pod","apiVersion":"v1"})", R"([])",
                                      R"({"kind":"Status","apiVersion":"v1","status":"Perhaps"})"}) {
    const Result<Status> status = parse_status(parse(text));
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().code, ErrorCode::kBadRequest);
  }
}

TEST(StatusDocument, MissingCodeFollowsFromTheReason) {
  const Json document = parse(R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired"})");
  EXPECT_EQ(parse_status(document)->code, 410);
  EXPECT_EQ(to_error(*parse_status(document)), (Error{ErrorCode::kExpired, "Expired", {}}));
}

StatusResult<int> half(int n) {
  if (n % 2 != 0) return make_error(ErrorCode::kBadRequest, "{} is odd", n);
  return n / 2;
}

Result<int> positive(int n) {
  if (n <= 0) return invalid("n", "must be positive");
  return n;
}

StatusResult<int> quarter(int n) {
  SPILLWAY_TRY(checked, positive(n));
  SPILLWAY_TRY(first, half(checked));
  SPILLWAY_TRY(second, half(first));
  return second;
}

TEST(StatusResultType, PassesErrorsAndStatusesOn) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message, "3 is odd");
  EXPECT_EQ(quarter(-1).error().code, 422);
  EXPECT_EQ(quarter(-1).error().message, "n: must be positive");
}

TEST(FieldErrorBounds, FullAfterSoManyAndTheAnswerStaysSmall) {
  FieldErrors errors;
  std::size_t added = 0;
  for (std::size_t i = 0; i < 1'000'000 && !errors.full(); ++i, ++added) {
    errors.required(index_path("spec.containers", i) + ".name");
  }
  EXPECT_EQ(added, kCausesMax);
  errors.required("more");
  EXPECT_EQ(errors.errors().size(), kCausesMax);
  const Status status = invalid_status({"", "Pod"}, "p", errors);
  EXPECT_EQ(status.details->causes.size(), kCausesMax);
  EXPECT_TRUE(status.message.ends_with("and maybe more: the checks stopped after 64]")) << status.message;
  EXPECT_LT(to_text(to_json(status)).size(), 16U << 10U);
}

TEST(FieldErrorBounds, LargeValuesAndFieldsAreCut) {
  const std::string large(3U << 20U, 'x');
  FieldErrors errors;
  errors.invalid("a", large, "must be short");
  errors.invalid("b", Json(Json::Array(100'000, Json(large.substr(0, 100)))), "must be short");
  errors.invalid(large, Json(), "must be short");
  for (const FieldError& error : errors.errors()) {
    EXPECT_LE(error.message.size(), kCauseTextMax + 3);
    EXPECT_LE(error.field.size(), kCauseTextMax + 3);
  }
  while (!errors.full()) errors.invalid(large, large, large);
  EXPECT_LT(errors.errors().size(), 16U);
  EXPECT_LT(to_text(to_json(invalid_status({"", "Pod"}, "p", errors))).size(), 64U << 10U);
}

TEST(FieldErrorBounds, ACutFallsBetweenTwoCharacters) {
  std::string text = "x";
  while (text.size() < 2 * kCauseTextMax) text += "\u00e4";
  FieldErrors errors;
  errors.invalid(text, text, "must be short");
  const Json document = to_json(invalid_status({"", "Pod"}, "p", errors));
  EXPECT_TRUE(parse_json(to_text(document)));
}

}  // namespace
}  // namespace spillway::api
