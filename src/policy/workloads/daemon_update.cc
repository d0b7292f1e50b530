#include "policy/workloads/daemon_update.h"

#include "policy/workloads/revision_history.h"

#include <algorithm>
#include <charconv>

namespace spillway::workloads {
namespace {

std::string generation_in(const api::StringMap& map, std::string_view key) {
  const auto found = map.find(std::string(key));
  return found == map.end() ? "1" : found->second;
}

/// "40%"; nullopt: anything else.
std::optional<std::int64_t> percent_of(const std::string& text) {
  std::int64_t percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool whole = error == std::errc{} && end + 1 == text.data() + text.size() && *end == '%';
  return whole && percent >= 0 && percent <= 100 ? std::optional(percent) : std::nullopt;
}

}  // namespace

bool is_updated(const api::DaemonSet& set, const api::Pod& pod, std::string_view hash) {
  if (!hash.empty() && revision_hash(pod.metadata) == hash) return true;
  return generation_in(set.metadata.annotations, kTemplateGenerationAnnotation) ==
         generation_in(pod.metadata.labels, kTemplateGenerationLabel);
}

std::int64_t unavailable_max(const api::Json& max_unavailable, std::int64_t desired) {
  std::int64_t most = max_unavailable.if_int64().value_or(1);
  if (const std::string* text = max_unavailable.if_string()) {
    const auto percent = percent_of(*text);
    if (percent) most = (desired * *percent + 99) / 100;
  }
  return std::max<std::int64_t>(most, 1);
}

std::vector<PodPtr> pods_to_update(const std::vector<DaemonPlace>& places, std::int64_t unavailable_max) {
  std::vector<PodPtr> now;
  std::vector<PodPtr> candidates;
  std::int64_t unavailable = 0;
  for (const DaemonPlace& place : places) {
    if (!place.pod || (place.updated && !place.available)) {
      ++unavailable;
    } else if (!place.updated) {
      (place.available ? candidates : now).push_back(place.pod);
    }
  }
  const auto room = static_cast<std::size_t>(std::max<std::int64_t>(unavailable_max - unavailable, 0));
  candidates.resize(std::min(candidates.size(), room));
  now.insert(now.end(), candidates.begin(), candidates.end());
  return now;
}

}  // namespace spillway::workloads
