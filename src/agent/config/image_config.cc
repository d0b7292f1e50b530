#include "agent/config/image_config.h"

#include "api/text/duration.h"

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
  policy.max_age = age_of(effective, "imageMaximumGCAge", policy.max_age);
  SPILLWAY_TRY_VOID(check_policy(policy));
  return policy;
}

}  // namespace spillway::agent
