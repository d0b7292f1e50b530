#include "store/etcd/etcd_failure.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace spillway::store {
namespace {

// Status codes of gRPC. Source: its documentation, "Status codes".
constexpr int kDeadlineExceeded = 4;
constexpr int kPermissionDenied = 7;
constexpr int kResourceExhausted = 8;
constexpr int kUnavailable = 14;
constexpr int kDataLoss = 15;
constexpr int kUnauthenticated = 16;

struct Words {
  std::string_view text;
  EtcdVerdict verdict;
};

constexpr std::string_view kTokenGone = "invalid auth token";
constexpr std::string_view kTokenOld = "revision of auth store is old";
constexpr std::string_view kLeaseGone = "requested lease not found";

/// Codes are shared by different refusals: the words decide.
constexpr std::array kKnown = {
    Words{"required revision has been compacted", EtcdVerdict::kCompacted},
    Words{"required revision is a future revision", EtcdVerdict::kFuture},
    Words{"database space exceeded", EtcdVerdict::kNoSpace},
    Words{"etcdserver: too many requests", EtcdVerdict::kBusy},
    Words{"message larger than max", EtcdVerdict::kTooLarge},
    Words{"request is too large", EtcdVerdict::kTooLarge},
    Words{kTokenGone, EtcdVerdict::kNotDone},  // the next attempt has another one
    Words{kTokenOld, EtcdVerdict::kNotDone},
    Words{"authentication failed", EtcdVerdict::kDenied},
    Words{"corrupt cluster", EtcdVerdict::kCorrupt},
    Words{kLeaseGone, EtcdVerdict::kBusy},
};

/// Messages of kUnavailable that show that the request has reached no member that could carry it out.
constexpr std::array<std::string_view, 6> kNeverReached = {"no leader",          "not capable",
                                                           "server stopped",     "failed to connect",
                                                           "connection refused", "connections to all backends failing"};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

EtcdVerdict classify(const EtcdFailure& failure) {
  for (const Words& known : kKnown)
    if (has(failure.message, known.text)) return known.verdict;
  if (failure.code == kDataLoss) return EtcdVerdict::kCorrupt;
  if (failure.code == kPermissionDenied || failure.code == kUnauthenticated) return EtcdVerdict::kDenied;
  if (failure.code == kUnavailable &&
      std::ranges::any_of(kNeverReached, [&](std::string_view words) { return has(failure.message, words); }))
    return EtcdVerdict::kNotDone;
  return EtcdVerdict::kUnknown;
}

bool is_token_gone(const EtcdFailure& failure) {
  return has(failure.message, kTokenGone) || has(failure.message, kTokenOld);
}

bool is_lease_gone(const EtcdFailure& failure) {
  return has(failure.message, kLeaseGone);
}

Error error_of(const EtcdFailure& failure) {
  const auto code = [&] {
    switch (classify(failure)) {
      case EtcdVerdict::kCompacted:
        return ErrorCode::kExpired;
      case EtcdVerdict::kFuture:
        return ErrorCode::kTimeout;
      case EtcdVerdict::kBusy:
        return ErrorCode::kTooManyRequests;
      case EtcdVerdict::kTooLarge:
        return ErrorCode::kRequestEntityTooLarge;
      case EtcdVerdict::kNoSpace:
      case EtcdVerdict::kDenied:
      case EtcdVerdict::kCorrupt:
      case EtcdVerdict::kNotDone:
        return ErrorCode::kServiceUnavailable;
      case EtcdVerdict::kUnknown:
        break;
    }
    return failure.code == kDeadlineExceeded || failure.code == kUnavailable ? ErrorCode::kTimeout
                                                                             : ErrorCode::kServiceUnavailable;
  }();
  const bool named = failure.message.starts_with("etcdserver:");
  return {code, named ? failure.message : "etcd: " + failure.message, {}};
}

}  // namespace spillway::store
