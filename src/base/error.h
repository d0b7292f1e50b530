// Result<T>: a value or an Error. The one error vocabulary of Spillway.
// ErrorCode mirrors the reasons of metav1.Status, so that the HTTP status of an error is one table
// (api/exchange/status.h). Thread: any. Source: Kubernetes API conventions, "Response Status Kind".
#pragma once

#include <fmt/format.h>

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace spillway {

enum class ErrorCode {
  kBadRequest,
  kUnauthorized,
  kForbidden,
  kNotFound,
  kMethodNotAllowed,
  kNotAcceptable,
  kAlreadyExists,
  kConflict,
  kExpired,
  kRequestEntityTooLarge,
  kUnsupportedMediaType,
  kInvalid,
  kTooManyRequests,
  kTimeout,
  kServiceUnavailable,
  kInternalError,
};

/// A failure: `message` is one line that names the operation, the place and the expectation. `at` is a field path, a
/// file or empty.
struct Error {
  ErrorCode code = ErrorCode::kInternalError;
  std::string message;
  std::string at;

  friend bool operator==(const Error&, const Error&) = default;

  /// "at: message", or the message alone.
  std::string text() const { return at.empty() ? message : at + ": " + message; }
};

template <typename T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  using Base = std::expected<T, Error>;

  Result(Base&& other) : Base(std::move(other)) {}  // NOLINT(google-explicit-constructor): it is the same thing

  Result(Error error) : Base(std::unexpect, std::move(error)) {}  // NOLINT(google-explicit-constructor)
};

template <>
class [[nodiscard]] Result<void> : public std::expected<void, Error> {
 public:
  using std::expected<void, Error>::expected;
  using Base = std::expected<void, Error>;

  Result(Base&& other) : Base(std::move(other)) {}  // NOLINT(google-explicit-constructor)

  Result(Error error) : Base(std::unexpect, std::move(error)) {}  // NOLINT(google-explicit-constructor)
};

/// Success without a value.
using Outcome = Result<void>;

template <typename... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...), {}};
}

/// The error for an invalid value; `at` names the field, flag or file.
template <typename... Args>
Error invalid(std::string_view at, fmt::format_string<Args...> format, Args&&... args) {
  return Error{ErrorCode::kInvalid, fmt::format(format, std::forward<Args>(args)...), std::string(at)};
}

/// An error that is deliberately not acted upon. `why` is for the reader.
template <typename T>
void ignored(const Result<T>& result, std::string_view why) {
  static_cast<void>(result);
  static_cast<void>(why);
}

}  // namespace spillway

#define SPILLWAY_CONCAT_(a, b) a##b
#define SPILLWAY_CONCAT(a, b) SPILLWAY_CONCAT_(a, b)

/// SPILLWAY_TRY(name, expression): declares `name` with the value, or returns the error from this function.
#define SPILLWAY_TRY(name, ...)                                                                           \
  auto SPILLWAY_CONCAT(try_##name##_, __LINE__) = (__VA_ARGS__);                                          \
  if (!SPILLWAY_CONCAT(try_##name##_, __LINE__)) return SPILLWAY_CONCAT(try_##name##_, __LINE__).error(); \
  auto name = *std::move(SPILLWAY_CONCAT(try_##name##_, __LINE__))

/// SPILLWAY_TRY_VOID(expression): returns the error from this function, if there is one.
#define SPILLWAY_TRY_VOID(...)                                                   \
  do {                                                                           \
    if (auto try_status = (__VA_ARGS__); !try_status) return try_status.error(); \
  } while (false)
