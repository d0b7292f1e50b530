// The shapes that the vectors of vectors/eviction share, read from and written to JSON.
#pragma once

#include "api/json/json.h"
#include "api/object/pod.h"
#include "api/object/summary.h"
#include "policy/eviction/ranking.h"
#include "policy/eviction/threshold.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::eviction {

/// Zero if absent; wraps above the range of int64, as the vectors' unsigned numbers do.
std::int64_t integer(const api::Json& in, std::string_view key);
bool flag(const api::Json& in, std::string_view key);
const api::Json::Array& array(const api::Json& in, std::string_view key);

/// nullopt: an entry without operator, which never counts.
std::optional<Threshold> read_threshold(const api::Json& in);
std::vector<Threshold> read_thresholds(const api::Json& in, std::string_view key);
/// The fields in which two thresholds must agree to be the same, as one string.
std::string signature(const Threshold& threshold);

Observations read_observations(const api::Json& in, std::string_view key);
std::vector<std::size_t> read_indices(const api::Json& in, std::string_view key);
std::vector<Threshold> pick(const std::vector<Threshold>& all, const std::vector<std::size_t>& indices);
/// Positions of `some` in `all`, in the order of `some`.
api::Json indices_of(const std::vector<Threshold>& all, const std::vector<Threshold>& some);

/// "pods" and "podStats" of a row, joined.
struct Scene {
  std::vector<api::Pod> pods;
  api::Summary summary;
  std::vector<const api::Pod*> active;
  std::vector<MeasuredPod> measured;
};

Scene read_scene(const api::Json& in);
StorageLayout read_layout(const api::Json& in);

inline Instant at_seconds(std::int64_t unix_seconds) {
  return Instant(seconds(unix_seconds));
}

}  // namespace spillway::eviction
