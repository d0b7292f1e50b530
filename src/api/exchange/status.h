// metav1.Status as a value: the body of every failed request and of some successful ones, the table between ErrorCode,
// HTTP code and reason, and the collected field errors of a validation.
// Thread: any (plain values). Source: Kubernetes API conventions, "Response Status Kind"; spec "API server contract",
// 12.8, 16.
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::api {

/// 400 … 504.
int http_code(ErrorCode code);
/// "BadRequest", "NotFound", …: the reason of metav1.Status.
std::string_view reason_text(ErrorCode code);
/// The code of a reason (also "Gone", "ServerTimeout"); for an unknown or empty reason, that of the HTTP code.
ErrorCode error_code_of(std::string_view reason, int http_code);

/// The kind of mistake that a cause of an Invalid status reports about a field.
enum class FieldReason : std::uint8_t {
  kRequired,
  kInvalid,
  kNotSupported,
  kDuplicate,
  kForbidden,
  kNotFound,
  kTooLong,
  kTooMany,
  kTypeInvalid,
  kInternal
};

/// "FieldValueRequired", …
std::string_view to_string(FieldReason reason);

/// One thing wrong with one field. `message` is complete: `Invalid value: "x": must be lower case`.
struct FieldError {
  FieldReason reason = FieldReason::kInvalid;
  std::string message;
  std::string field;  // "spec.containers[0].name"

  friend bool operator==(const FieldError&, const FieldError&) = default;

  std::string text() const { return field + ": " + message; }
};

/// The number of mistakes in one object that are reported; the checks stop there.
inline constexpr std::size_t kCausesMax = 64;
/// Bytes of their fields and messages together; the error that exceeds it is the last.
inline constexpr std::size_t kCauseBytesMax = 16U << 10U;
/// Bytes of one message, and of one field; a longer one is cut.
inline constexpr std::size_t kCauseTextMax = 2U << 10U;

/// Collects the mistakes in an object, in the order found, with upstream's wording, until it is full: an answer stays
/// small however large the object is. Loops that add to it end when it is full.
class FieldErrors {
 public:
  /// "Required value[: detail]".
  void required(std::string_view field, std::string_view detail = {});
  /// "Invalid value: VALUE: detail"; VALUE as JSON.
  void invalid(std::string_view field, const Json& value, std::string_view detail);
  /// "Unsupported value: VALUE: supported values: "a", "b"".
  void not_supported(std::string_view field, const Json& value, std::span<const std::string_view> supported);
  /// "Duplicate value: VALUE".
  void duplicate(std::string_view field, const Json& value);
  /// "Forbidden: detail".
  void forbidden(std::string_view field, std::string_view detail);
  /// "Not found: VALUE".
  void not_found(std::string_view field, const Json& value);
  /// "Too long: may not be more than N bytes".
  void too_long(std::string_view field, std::size_t bytes_max);
  /// "Too many: COUNT: must have at most MAX items".
  void too_many(std::string_view field, std::size_t count, std::size_t count_max);
  /// "Invalid value: VALUE: detail", reason FieldValueTypeInvalid.
  void type_invalid(std::string_view field, const Json& value, std::string_view detail);

  /// Ignored when full.
  void add(FieldError error);

  void add(FieldErrors other);

  bool empty() const { return errors_.empty(); }

  /// The collection is full: further errors are dropped.
  bool full() const { return errors_.size() >= kCausesMax || bytes_ >= kCauseBytesMax; }

  const std::vector<FieldError>& errors() const { return errors_; }

 private:
  std::vector<FieldError> errors_;
  std::size_t bytes_ = 0;
};

/// "spec.ports" + 2 → "spec.ports[2]".
std::string index_path(std::string_view path, std::size_t index);
/// "spec.limits" + "cpu" → "spec.limits[cpu]".
std::string key_path(std::string_view path, std::string_view key);

struct StatusCause {
  std::string reason;
  std::string message;
  std::string field;

  friend bool operator==(const StatusCause&, const StatusCause&) = default;
};

struct StatusDetails {
  std::string name;
  std::string group;
  std::string kind;  // for Invalid the kind, else mostly the resource ("pods")
  std::string uid;
  std::vector<StatusCause> causes;
  std::optional<std::int32_t> retry_after_seconds;

  friend bool operator==(const StatusDetails&, const StatusDetails&) = default;
};

/// A resource as errors name it: "pods", "deployments.apps".
struct GroupResource {
  std::string group;
  std::string resource;

  friend bool operator==(const GroupResource&, const GroupResource&) = default;

  std::string text() const { return group.empty() ? resource : resource + "." + group; }
};

/// A kind as errors name it: "Pod", "Deployment.apps".
struct GroupKind {
  std::string group;
  std::string kind;

  friend bool operator==(const GroupKind&, const GroupKind&) = default;

  std::string text() const { return group.empty() ? kind : kind + "." + group; }
};

struct Status {
  enum class Outcome : std::uint8_t { kSuccess, kFailure };

  Outcome outcome = Outcome::kFailure;
  int code = 500;
  std::string reason;  // empty: none
  std::string message;
  std::optional<StatusDetails> details;
  std::string continue_token;  // metadata.continue of 410 Expired answers to lists

  Status() = default;
  /// A failure without details; the message is error.text().
  Status(const Error& error);  // NOLINT(google-explicit-constructor): lets SPILLWAY_TRY pass errors on

  friend bool operator==(const Status&, const Status&) = default;

  bool ok() const { return outcome == Outcome::kSuccess; }

  StatusDetails& make_details() { return details ? *details : details.emplace(); }
};

/// A value or the Status that refuses it. SPILLWAY_TRY accepts it, and Result<T> inside functions that return it.
template <typename T>
class [[nodiscard]] StatusResult : public std::expected<T, Status> {
 public:
  using std::expected<T, Status>::expected;

  StatusResult(Status status)  // NOLINT(google-explicit-constructor)
      : std::expected<T, Status>(std::unexpect, std::move(status)) {}

  StatusResult(const Error& error)  // NOLINT(google-explicit-constructor)
      : std::expected<T, Status>(std::unexpect, error) {}
};

template <>
class [[nodiscard]] StatusResult<void> : public std::expected<void, Status> {
 public:
  using std::expected<void, Status>::expected;

  StatusResult(Status status)  // NOLINT(google-explicit-constructor)
      : std::expected<void, Status>(std::unexpect, std::move(status)) {}

  StatusResult(const Error& error)  // NOLINT(google-explicit-constructor)
      : std::expected<void, Status>(std::unexpect, error) {}
};

// The failures whose words clients know. Details are filled in.

/// 404 `pods "n" not found`.
Status not_found_status(const GroupResource& resource, std::string_view name);
/// 404 `the server could not find the requested resource`, details {}.
Status unknown_resource_status();
/// 405, details {}.
Status method_not_allowed_status();
/// 409 `pods "n" already exists`.
Status already_exists_status(const GroupResource& resource, std::string_view name);
/// 409 `Operation cannot be fulfilled on pods "n": WHY`.
Status conflict_status(const GroupResource& resource, std::string_view name, std::string_view why);
/// conflict_status with the words for a stale resourceVersion.
Status stale_version_status(const GroupResource& resource, std::string_view name);
/// 403 `pods "n" is forbidden: WHY`; without a name `pods is forbidden: WHY`.
Status forbidden_status(const GroupResource& resource, std::string_view name, std::string_view why);
/// 422 `Pod "n" is invalid: field: message` (several: `[a: b, c: d]`), one cause per error. `errors` must not be empty.
/// If they are full, the message says that the checks stopped.
Status invalid_status(const GroupKind& kind, std::string_view name, const FieldErrors& errors);
/// 429 or 503 or 504 with retryAfterSeconds.
Status retry_status(ErrorCode code, std::string_view message, std::int32_t retry_after_seconds);
/// {kind: Status, status: Success, code: 201}: the answer to bindings and evictions.
Json created_status();

/// Success with details {name, group, kind=resource, uid}: the answer to most deletes.
Status deleted_status(const GroupResource& resource, std::string_view name, std::string_view uid);

/// The v1 Status document. A status without details has none; `details: {}` is written if details are present but
/// empty.
Json to_json(const Status& status);
/// kBadRequest if it is no v1 Status document.
Result<Status> parse_status(const Json& document);
/// Converts a failure as a client does: the code by reason, else by HTTP code; the message.
Error to_error(const Status& status);

}  // namespace spillway::api
