#include "client/api_client.h"

#include <array>

namespace spillway::client {
namespace {

struct ReasonRow {
  std::string_view reason;
  int http_status;
  ErrorCode code;
};

// Of rows with the same HTTP status the first stands for an answer without a reason.
constexpr std::array kReasons = {
    ReasonRow{"BadRequest", 400, ErrorCode::kBadRequest},
    ReasonRow{"Unauthorized", 401, ErrorCode::kUnauthorized},
    ReasonRow{"Forbidden", 403, ErrorCode::kForbidden},
    ReasonRow{"NotFound", 404, ErrorCode::kNotFound},
    ReasonRow{"MethodNotAllowed", 405, ErrorCode::kMethodNotAllowed},
    ReasonRow{"NotAcceptable", 406, ErrorCode::kNotAcceptable},
    ReasonRow{"Conflict", 409, ErrorCode::kConflict},
    ReasonRow{"AlreadyExists", 409, ErrorCode::kAlreadyExists},
    ReasonRow{"Expired", 410, ErrorCode::kExpired},
    ReasonRow{"Gone", 410, ErrorCode::kExpired},
    ReasonRow{"RequestEntityTooLarge", 413, ErrorCode::kRequestEntityTooLarge},
    ReasonRow{"UnsupportedMediaType", 415, ErrorCode::kUnsupportedMediaType},
    ReasonRow{"Invalid", 422, ErrorCode::kInvalid},
    ReasonRow{"TooManyRequests", 429, ErrorCode::kTooManyRequests},
    ReasonRow{"InternalError", 500, ErrorCode::kInternalError},
    ReasonRow{"ServiceUnavailable", 503, ErrorCode::kServiceUnavailable},
    ReasonRow{"Timeout", 504, ErrorCode::kTimeout},
    ReasonRow{"ServerTimeout", 500, ErrorCode::kTimeout},
};

ErrorCode code_of(std::string_view reason, int http_status) {
  for (const ReasonRow& row : kReasons) {
    if (row.reason == reason) return row.code;
  }
  for (const ReasonRow& row : kReasons) {
    if (row.http_status == http_status) return row.code;
  }
  return http_status < 500 ? ErrorCode::kBadRequest : ErrorCode::kInternalError;
}

}  // namespace

std::string object_path(std::string_view api_version, std::string_view plural, std::string_view ns,
                        std::string_view name, std::string_view subresource) {
  std::string path = api_version.find('/') == std::string_view::npos ? "/api/" : "/apis/";
  path += api_version;
  if (!ns.empty()) {
    path += "/namespaces/";
    path += api::percent_encode(ns);
  }
  path += '/';
  path += plural;
  if (!name.empty()) {
    path += '/';
    path += api::percent_encode(name);
  }
  if (!subresource.empty()) {
    path += '/';
    path += subresource;
  }
  return path;
}

Error error_of_answer(int http_status, std::string_view body) {
  const auto status = api::parse_json(body);
  if (!status || status->string_at({"kind"}) != "Status") {
    return make_error(code_of({}, http_status), "HTTP status {}: {}", http_status, body.substr(0, 200));
  }
  const std::string_view message = status->string_at({"message"});
  return {code_of(status->string_at({"reason"}), http_status), std::string(message), {}};
}

}  // namespace spillway::client
