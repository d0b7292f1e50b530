#include "agent/config/image_config.h"

#include "api/text/duration.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace spillway::agent {
namespace {

std::int64_t number_of(const api::Json& effective, std::string_view key, std::int64_t fallback) {
  const api::Json* found = effective.find(key);
  return found == nullptr ? fallback : found->if_int64().value_or(fallback);
}

Duration age_of(const api::Json& effective, std::string_view key, Duration fallback) {
  const auto given = api::parse_duration(effective.string_at({key}));
  return given ? *given : fallback;
}

}  // namespace

Outcome check_policy(const ImageGcPolicy& policy) {
  for (const auto& [name, percent] : {std::pair("HighThresholdPercent", policy.high_threshold_percent),
                                      std::pair("LowThresholdPercent", policy.low_threshold_percent)}) {
    if (percent < 0 || percent > 100) return invalid({}, "invalid {} {}, must be in range [0-100]", name, percent);
  }
  if (policy.low_threshold_percent > policy.high_threshold_percent) {
    return invalid({}, "LowThresholdPercent {} can not be higher than HighThresholdPercent {}",
                   policy.low_threshold_percent, policy.high_threshold_percent);
  }
  return {};
}

Result<ImageGcPolicy> image_gc_of(const api::Json& effective) {
  ImageGcPolicy policy;
  policy.high_threshold_percent = number_of(effective, "imageGCHighThresholdPercent", policy.high_threshold_percent);
  policy.low_threshold_percent = number_of(effective, "imageGCLowThresholdPercent", policy.low_threshold_percent);
  policy.min_age = age_of(effective, "imageMinimumGCAge", policy.min_age);
  if (policy.min_age < Duration{}) {
    return invalid("imageMinimumGCAge", "imageMinimumGCAge {} must not be negative",
                   api::format_duration(policy.min_age));
  }
  policy.max_age = age_of(effective, "imageMaximumGCAge", policy.max_age);
  SPILLWAY_TRY_VOID(check_policy(policy));
  return policy;
}

Result<PullPace> pull_pace_of(const api::Json& effective) {
  PullPace pace;
  pace.per_second = number_of(effective, "registryPullQPS", pace.per_second);
  const std::int64_t burst = number_of(effective, "registryBurst", pace.burst);
  if (pace.per_second < 0) {
    return invalid("registryPullQPS", "registryPullQPS (--registry-qps) {} must not be a negative number",
                   pace.per_second);
  }
  if (burst < 0)
    return invalid("registryBurst", "registryBurst (--registry-burst) {} must not be a negative number", burst);
  if (burst > 0) pace.burst = burst;  // zero is the default, as with every number of the file that cannot be absent
  return pace;
}

Result<std::size_t> parallel_pulls_of(const api::Json& effective) {
  constexpr std::size_t kUnbounded = 1'000;  // the pulls that may wait
  const api::Json* most = effective.find("maxParallelImagePulls");
  const std::optional<std::int64_t> given = most == nullptr ? std::nullopt : most->if_int64();
  if (given && *given < 1)
    return invalid("maxParallelImagePulls", "maxParallelImagePulls {} must be a positive number", *given);
  const api::Json* serial = effective.find("serializeImagePulls");
  const bool one_by_one = serial == nullptr ? given.value_or(1) < 2 : serial->if_bool().value_or(true);
  if (one_by_one && given.value_or(1) > 1) {
    return invalid("maxParallelImagePulls",
                   "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls "
                   "(--serialize-image-pulls) is set to false");
  }
  if (one_by_one) return std::size_t{1};
  return given ? std::min(static_cast<std::size_t>(*given), kUnbounded) : kUnbounded;
}

}  // namespace spillway::agent
