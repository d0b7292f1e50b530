#include "host/containers/cri_checkpoints.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace spillway::host {
namespace {

using api::Json;

constexpr std::int64_t kSecondsMax = 24LL * 60 * 60;

}  // namespace

/// A wish for less time than calls have gets that of calls, as upstream.
void CriCheckpoints::take(const std::string& container_id, const CheckpointWish& wish, CheckpointTaken answer) {
  if (wish.timeout_seconds < 0)
    return answer(make_error(ErrorCode::kInvalid, "CheckpointContainer requires the timeout value to be > 0"));
  if (under_way_ == kTakenMax)
    return answer(make_error(ErrorCode::kServiceUnavailable, "{} checkpoints are being taken already", kTakenMax));
  const auto least = std::chrono::duration_cast<std::chrono::seconds>(longest_).count();
  const std::int64_t timeout = std::max<std::int64_t>(std::min(wish.timeout_seconds, kSecondsMax), least);
  ++under_way_;
  calls_.call("CheckpointContainer",
              Json::object({{"container_id", container_id}, {"location", wish.file}, {"timeout", timeout}}),
              seconds(timeout),
              [this, answer = std::move(answer)](const Result<Json>& taken) mutable { on_taken(taken, answer); });
}

void CriCheckpoints::on_taken(const Result<Json>& taken, CheckpointTaken& answer) {
  --under_way_;
  answer(taken ? Outcome() : make_error(taken.error().code, "{}", rpc_text(taken.error())));
}

}  // namespace spillway::host
