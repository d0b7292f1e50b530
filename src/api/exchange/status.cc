#include "api/exchange/status.h"

#include "base/check.h"
#include "base/json_string.h"
#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace spillway::api {
namespace {

struct CodeRow {
  ErrorCode code;
  int http;
  std::string_view reason;
};

constexpr std::array kCodes = {
    CodeRow{ErrorCode::kBadRequest, 400, "BadRequest"},
    CodeRow{ErrorCode::kUnauthorized, 401, "Unauthorized"},
    CodeRow{ErrorCode::kForbidden, 403, "Forbidden"},
    CodeRow{ErrorCode::kNotFound, 404, "NotFound"},
    CodeRow{ErrorCode::kMethodNotAllowed, 405, "MethodNotAllowed"},
    CodeRow{ErrorCode::kNotAcceptable, 406, "NotAcceptable"},
    CodeRow{ErrorCode::kConflict, 409, "Conflict"},
    CodeRow{ErrorCode::kAlreadyExists, 409, "AlreadyExists"},
    CodeRow{ErrorCode::kExpired, 410, "Expired"},
    CodeRow{ErrorCode::kRequestEntityTooLarge, 413, "RequestEntityTooLarge"},
    CodeRow{ErrorCode::kUnsupportedMediaType, 415, "UnsupportedMediaType"},
    CodeRow{ErrorCode::kInvalid, 422, "Invalid"},
    CodeRow{ErrorCode::kTooManyRequests, 429, "TooManyRequests"},
    CodeRow{ErrorCode::kInternalError, 500, "InternalError"},
    CodeRow{ErrorCode::kServiceUnavailable, 503, "ServiceUnavailable"},
    CodeRow{ErrorCode::kTimeout, 504, "Timeout"},
};

const CodeRow& row_of(ErrorCode code) {
  const auto row = std::find_if(kCodes.begin(), kCodes.end(), [&](const CodeRow& r) { return r.code == code; });
  SPILLWAY_CHECK(row != kCodes.end());
  return *row;
}

Status failure(ErrorCode code, std::string message) {
  return Status(Error{code, std::move(message), {}});
}

Status failure(ErrorCode code, std::string message, StatusDetails details) {
  Status status = failure(code, std::move(message));
  status.details = std::move(details);
  return status;
}

StatusDetails details_of(const GroupResource& resource, std::string_view name) {
  return StatusDetails{.name = std::string(name), .group = resource.group, .kind = resource.resource};
}

void put(Json& object, std::string_view key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

Json to_json(const StatusDetails& details) {
  Json out = Json::object();
  put(out, "name", details.name);
  put(out, "group", details.group);
  put(out, "kind", details.kind);
  put(out, "uid", details.uid);
  if (!details.causes.empty()) {
    Json::Array causes;
    for (const StatusCause& cause : details.causes) {
      Json one = Json::object();
      put(one, "reason", cause.reason);
      put(one, "message", cause.message);
      put(one, "field", cause.field);
      causes.push_back(std::move(one));
    }
    out["causes"] = Json(std::move(causes));
  }
  if (details.retry_after_seconds) out["retryAfterSeconds"] = *details.retry_after_seconds;
  return out;
}

std::optional<std::int32_t> int32_at(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  const std::optional<std::int64_t> number = found != nullptr ? found->if_int64() : std::nullopt;
  if (!number || *number < std::numeric_limits<std::int32_t>::min() ||
      *number > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(*number);
}

StatusDetails parse_details(const Json& document) {
  StatusDetails details;
  details.name = document.string_at({"name"});
  details.group = document.string_at({"group"});
  details.kind = document.string_at({"kind"});
  details.uid = document.string_at({"uid"});
  details.retry_after_seconds = int32_at(document, "retryAfterSeconds");
  const Json* causes = document.find("causes");
  if (causes != nullptr && causes->is_array()) {
    for (const Json& cause : *causes->if_array()) {
      details.causes.push_back({std::string(cause.string_at({"reason"})), std::string(cause.string_at({"message"})),
                                std::string(cause.string_at({"field"}))});
    }
  }
  return details;
}

/// Appends the beginning of the value's text; the rest of a large value is not read.
void append_beginning(const Json& value, std::string& out) {
  if (out.size() > kCauseTextMax) return;
  if (const std::string* text = value.if_string()) {
    append_json_string(shortened(*text, kCauseTextMax), out);
  } else if (const Json::Array* list = value.if_array()) {
    out += '[';
    for (std::size_t i = 0; i < list->size() && out.size() <= kCauseTextMax; ++i) {
      if (i != 0) out += ',';
      append_beginning((*list)[i], out);
    }
    out += ']';
  } else if (const Json::Object* object = value.if_object()) {
    out += '{';
    std::string_view separator;
    for (const auto& [key, member] : *object) {
      if (out.size() > kCauseTextMax) break;
      out += separator;
      append_json_string(shortened(key, kCauseTextMax), out);
      out += ':';
      append_beginning(member, out);
      separator = ",";
    }
    out += '}';
  } else {
    append_text(value, out);
  }
}

std::string beginning(const Json& value) {
  std::string out;
  append_beginning(value, out);
  return out;
}

}  // namespace

int http_code(ErrorCode code) {
  return row_of(code).http;
}

std::string_view reason_text(ErrorCode code) {
  return row_of(code).reason;
}

ErrorCode error_code_of(std::string_view reason, int http_code) {
  if (reason == "Gone") return ErrorCode::kExpired;
  if (reason == "ServerTimeout") return ErrorCode::kTimeout;
  for (const CodeRow& row : kCodes) {
    if (row.reason == reason) return row.code;
  }
  for (const CodeRow& row : kCodes) {
    if (row.http == http_code) return row.code;
  }
  if (http_code >= 400 && http_code < 500) return ErrorCode::kBadRequest;
  return ErrorCode::kInternalError;
}

std::string_view to_string(FieldReason reason) {
  switch (reason) {
    case FieldReason::kRequired:
      return "FieldValueRequired";
    case FieldReason::kInvalid:
      return "FieldValueInvalid";
    case FieldReason::kNotSupported:
      return "FieldValueNotSupported";
    case FieldReason::kDuplicate:
      return "FieldValueDuplicate";
    case FieldReason::kForbidden:
      return "FieldValueForbidden";
    case FieldReason::kNotFound:
      return "FieldValueNotFound";
    case FieldReason::kTooLong:
      return "FieldValueTooLong";
    case FieldReason::kTooMany:
      return "FieldValueTooMany";
    case FieldReason::kTypeInvalid:
      return "FieldValueTypeInvalid";
    case FieldReason::kInternal:
      return "InternalError";
  }
  return "";
}

void FieldErrors::required(std::string_view field, std::string_view detail) {
  if (full()) return;
  std::string message = "Required value";
  if (!detail.empty()) message += fmt::format(": {}", detail);
  add({FieldReason::kRequired, std::move(message), std::string(field)});
}

void FieldErrors::invalid(std::string_view field, const Json& value, std::string_view detail) {
  if (full()) return;
  add({FieldReason::kInvalid, fmt::format("Invalid value: {}: {}", beginning(value), detail), std::string(field)});
}

void FieldErrors::not_supported(std::string_view field, const Json& value,
                                std::span<const std::string_view> supported) {
  if (full()) return;
  std::string message = fmt::format("Unsupported value: {}: supported values: ", beginning(value));
  std::string_view separator;
  for (const std::string_view one : supported) {
    message += separator;
    append_json_string(one, message);
    separator = ", ";
  }
  add({FieldReason::kNotSupported, std::move(message), std::string(field)});
}

void FieldErrors::duplicate(std::string_view field, const Json& value) {
  if (full()) return;
  add({FieldReason::kDuplicate, fmt::format("Duplicate value: {}", beginning(value)), std::string(field)});
}

void FieldErrors::forbidden(std::string_view field, std::string_view detail) {
  if (full()) return;
  add({FieldReason::kForbidden, fmt::format("Forbidden: {}", detail), std::string(field)});
}

void FieldErrors::not_found(std::string_view field, const Json& value) {
  if (full()) return;
  add({FieldReason::kNotFound, fmt::format("Not found: {}", beginning(value)), std::string(field)});
}

void FieldErrors::too_long(std::string_view field, std::size_t bytes_max) {
  if (full()) return;
  add({FieldReason::kTooLong,
       fmt::format("Too long: may not be more than {} byte{}", bytes_max, bytes_max == 1 ? "" : "s"),
       std::string(field)});
}

void FieldErrors::too_many(std::string_view field, std::size_t count, std::size_t count_max) {
  if (full()) return;
  add({FieldReason::kTooMany,
       fmt::format("Too many: {}: must have at most {} item{}", count, count_max, count_max == 1 ? "" : "s"),
       std::string(field)});
}

void FieldErrors::type_invalid(std::string_view field, const Json& value, std::string_view detail) {
  if (full()) return;
  add({FieldReason::kTypeInvalid, fmt::format("Invalid value: {}: {}", beginning(value), detail), std::string(field)});
}

void FieldErrors::add(FieldError error) {
  if (full()) return;
  error.message = shortened(error.message, kCauseTextMax);
  error.field = shortened(error.field, kCauseTextMax);
  bytes_ += error.message.size() + error.field.size();
  errors_.push_back(std::move(error));
}

void FieldErrors::add(FieldErrors other) {
  for (FieldError& error : other.errors_) add(std::move(error));
}

std::string index_path(std::string_view path, std::size_t index) {
  return fmt::format("{}[{}]", path, index);
}

std::string key_path(std::string_view path, std::string_view key) {
  return fmt::format("{}[{}]", path, key);
}

Status::Status(const Error& error)
    : code(http_code(error.code)), reason(reason_text(error.code)), message(error.text()) {}

Status not_found_status(const GroupResource& resource, std::string_view name) {
  return failure(ErrorCode::kNotFound, fmt::format("{} \"{}\" not found", resource.text(), name),
                 details_of(resource, name));
}

Status unknown_resource_status() {
  return failure(ErrorCode::kNotFound, "the server could not find the requested resource", StatusDetails{});
}

Status method_not_allowed_status() {
  return failure(ErrorCode::kMethodNotAllowed, "the server does not allow this method on the requested resource",
                 StatusDetails{});
}

Status already_exists_status(const GroupResource& resource, std::string_view name) {
  return failure(ErrorCode::kAlreadyExists, fmt::format("{} \"{}\" already exists", resource.text(), name),
                 details_of(resource, name));
}

Status conflict_status(const GroupResource& resource, std::string_view name, std::string_view why) {
  return failure(ErrorCode::kConflict,
                 fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", resource.text(), name, why),
                 details_of(resource, name));
}

Status stale_version_status(const GroupResource& resource, std::string_view name) {
  return conflict_status(resource, name,
                         "the object has been modified; please apply your changes to the latest version and try again");
}

Status forbidden_status(const GroupResource& resource, std::string_view name, std::string_view why) {
  std::string message = resource.resource.empty() ? fmt::format("forbidden: {}", why)
                        : name.empty()            ? fmt::format("{} is forbidden: {}", resource.text(), why)
                                       : fmt::format("{} \"{}\" is forbidden: {}", resource.text(), name, why);
  return failure(ErrorCode::kForbidden, std::move(message), details_of(resource, name));
}

Status invalid_status(const GroupKind& kind, std::string_view name, const FieldErrors& errors) {
  SPILLWAY_CHECK(!errors.empty());
  StatusDetails details{.name = std::string(name), .group = kind.group, .kind = kind.kind};
  std::vector<std::string> texts;  // each different text once
  std::set<std::string> seen;
  for (const FieldError& error : errors.errors()) {
    details.causes.push_back({std::string(to_string(error.reason)), error.message, error.field});
    if (seen.insert(error.text()).second) texts.push_back(error.text());
  }
  if (errors.full()) {
    texts.push_back(fmt::format("and maybe more: the checks stopped after {}", errors.errors().size()));
  }
  const std::string all = texts.size() == 1 ? texts.front() : fmt::format("[{}]", fmt::join(texts, ", "));
  return failure(ErrorCode::kInvalid, fmt::format("{} \"{}\" is invalid: {}", kind.text(), name, all),
                 std::move(details));
}

Status retry_status(ErrorCode code, std::string_view message, std::int32_t retry_after_seconds) {
  StatusDetails details;
  details.retry_after_seconds = retry_after_seconds;
  return failure(code, std::string(message), std::move(details));
}

Status deleted_status(const GroupResource& resource, std::string_view name, std::string_view uid) {
  Status status;
  status.outcome = Status::Outcome::kSuccess;
  status.code = 200;
  status.details = details_of(resource, name);
  status.details->uid = uid;
  return status;
}

Json to_json(const Status& status) {
  Json out = Json::object({{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", Json::object()}});
  put(out["metadata"], "continue", status.continue_token);
  out["status"] = status.ok() ? "Success" : "Failure";
  put(out, "message", status.message);
  put(out, "reason", status.reason);
  if (status.details) out["details"] = to_json(*status.details);
  // Upstream leaves the code out of the body of plain successes.
  if (!status.ok() || status.code != 200) out["code"] = status.code;
  return out;
}

Result<Status> parse_status(const Json& document) {
  if (document.string_at({"kind"}) != "Status" || document.string_at({"apiVersion"}) != "v1") {
    return make_error(ErrorCode::kBadRequest, "not a v1 Status document");
  }
  const std::string_view outcome = document.string_at({"status"});
  if (outcome != "Success" && outcome != "Failure") {
    return make_error(ErrorCode::kBadRequest, "status: expected Success or Failure, got \"{}\"", outcome);
  }
  Status status;
  status.outcome = outcome == "Success" ? Status::Outcome::kSuccess : Status::Outcome::kFailure;
  status.reason = document.string_at({"reason"});
  status.message = document.string_at({"message"});
  status.continue_token = document.string_at({"metadata", "continue"});
  const std::optional<std::int32_t> code = int32_at(document, "code");
  status.code = code ? *code : (status.ok() ? 200 : http_code(error_code_of(status.reason, 500)));
  const Json* details = document.find("details");
  if (details != nullptr && details->is_object()) status.details = parse_details(*details);
  return status;
}

Error to_error(const Status& status) {
  std::string message = status.message;
  if (message.empty()) message = status.reason.empty() ? fmt::format("HTTP {}", status.code) : status.reason;
  return Error{error_code_of(status.reason, status.code), std::move(message), {}};
}

Json created_status() {
  return Json::object(
      {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", Json::object()}, {"status", "Success"}, {"code", 201}});
}

}  // namespace spillway::api
