#include "client/watch_session.h"

#include <algorithm>
#include <utility>

namespace spillway::client {
namespace {

constexpr Duration kWaitMin = milliseconds(800);
constexpr Duration kWaitMax = seconds(30);
constexpr int kSilencesBeforeList = 2;

}  // namespace

void WatchSession::on_listed(std::string resource_version) {
  resource_version_ = std::move(resource_version);
}

void WatchSession::on_progress(std::string resource_version) {
  resource_version_ = std::move(resource_version);
  failures_ = 0;
}

WatchSession::Next WatchSession::on_end(const std::optional<Error>& error, Rng& rng) {
  const bool first = failures_ == 0;
  ++failures_;
  if (!error) return {resource_version_.empty(), first ? Duration::zero() : back_off(rng)};
  switch (error->code) {
    case ErrorCode::kExpired:
      resource_version_.clear();
      return {true, first ? Duration::zero() : back_off(rng)};
    case ErrorCode::kTimeout:
      if (failures_ >= kSilencesBeforeList) resource_version_.clear();
      break;
    case ErrorCode::kServiceUnavailable:
    case ErrorCode::kTooManyRequests:
    case ErrorCode::kInternalError:
    case ErrorCode::kUnauthorized:
    case ErrorCode::kForbidden:
      break;
    case ErrorCode::kBadRequest:
    case ErrorCode::kNotFound:
    case ErrorCode::kMethodNotAllowed:
    case ErrorCode::kNotAcceptable:
    case ErrorCode::kAlreadyExists:
    case ErrorCode::kConflict:
    case ErrorCode::kRequestEntityTooLarge:
    case ErrorCode::kUnsupportedMediaType:
    case ErrorCode::kInvalid:
      resource_version_.clear();
      break;
  }
  return {resource_version_.empty(), back_off(rng)};
}

/// A random time between half and all of 0.8 s · 2ⁿ, at most 30 s.
Duration WatchSession::back_off(Rng& rng) {
  const int doublings = std::clamp(failures_ - 1, 0, 6);
  const Duration ceiling = std::min(kWaitMin * (1 << doublings), kWaitMax);
  const auto half = static_cast<std::uint64_t>(ceiling.count() / 2);
  return Duration(static_cast<std::int64_t>(half + rng.below(half + 1)));
}

}  // namespace spillway::client
