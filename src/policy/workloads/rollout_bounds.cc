#include "policy/workloads/rollout_bounds.h"

#include <algorithm>
#include <charconv>

namespace spillway::workloads {

Result<std::int64_t> scaled_value(const api::Json& written, std::int64_t whole, Round round) {
  if (written.is_null()) return 0;
  if (const auto number = written.if_int64()) return *number;
  const std::string_view text = written.string_at({});
  if (!text.ends_with('%')) {
    return make_error(ErrorCode::kInvalid, "invalid value for IntOrString: invalid type: string is not a percentage");
  }
  const std::string_view digits = text.substr(0, text.size() - 1);
  std::int64_t percent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    return make_error(
        ErrorCode::kInvalid,
        "invalid value for IntOrString: invalid value \"{}\": strconv.Atoi: parsing \"{}\": invalid syntax", text,
        digits);
  }
  const std::int64_t hundredfold = percent * whole;
  return round == Round::kUp ? (hundredfold + 99) / 100 : hundredfold / 100;
}

Result<Fenceposts> fenceposts(const api::Json& max_surge, const api::Json& max_unavailable, std::int64_t replicas) {
  const auto surge = scaled_value(max_surge, replicas, Round::kUp);
  if (!surge) return surge.error();
  const auto unavailable = scaled_value(max_unavailable, replicas, Round::kDown);
  if (!unavailable) return unavailable.error();
  return Fenceposts{*surge, *surge == 0 && *unavailable == 0 ? 1 : *unavailable};
}

RolloutBounds rollout_bounds(const api::Deployment& deployment) {
  RolloutBounds bounds;
  const std::int64_t replicas = deployment.replicas;
  if (deployment.strategy == kRollingUpdate) {
    const auto posts = fenceposts(deployment.max_surge, deployment.max_unavailable, replicas);
    if (posts) bounds.surge_max = posts->surge;
    if (posts && replicas > 0) bounds.unavailable_max = std::min(posts->unavailable, replicas);
  }
  bounds.available_min = replicas - bounds.unavailable_max;
  return bounds;
}

}  // namespace spillway::workloads
