// The scheduler's reports about pods that wait for a node.
#include "controllers/scheduling/scheduler_parts.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::controllers {

namespace {

using State = scheduling::PodQueue::State;

std::string_view queue_name(State state) {
  switch (state) {
    case State::kActive:
      return "active";
    case State::kTried:
      return "being tried";
    case State::kBackingOff:
      return "backoff";
    case State::kRefused:
      return "unschedulable";
  }
  return {};
}

api::Json plugin_names(scheduling::FilterSet filters) {
  api::Json names = api::Json::array();
  for (const scheduling::Filter filter : scheduling::kFilters) {
    if (filters.contains(filter)) names.if_array()->push_back(std::string(scheduling::to_string(filter)));
  }
  return names;
}

}  // namespace

std::optional<api::Json> Scheduler::waiting_pod_document(const client::ObjectKey& key, Now now) const {
  const std::size_t slash = std::min(key.find('/'), key.size());
  api::Json pod =
      api::Json::object({{"namespace", key.substr(0, slash)}, {"name", key.substr(std::min(slash + 1, key.size()))}});
  if (gated_.contains(key)) {
    pod["queue"] = "gated";
    return pod;
  }
  const auto waiting = queue_.find(key);
  if (!waiting) return std::nullopt;
  pod["queue"] = queue_name(waiting->state);
  pod["attempts"] = waiting->course.attempts;
  pod["waits_seconds"] = in_seconds(now.mono - waiting->course.waits_since);
  if (waiting->until > now.mono && waiting->state != State::kActive && waiting->state != State::kTried) {
    pod["backoff_left_seconds"] = in_seconds(waiting->until - now.mono);
  }
  if (waiting->refused_by != scheduling::FilterSet()) pod["refused_by"] = plugin_names(waiting->refused_by);
  const std::string* message = parts_->refused.find_message(key);
  if (message != nullptr && !message->empty()) pod["message"] = *message;
  return pod;
}

api::Json Scheduler::waiting_document(Now now) const {
  std::vector<client::ObjectKey> keys = queue_.keys();
  keys.insert(keys.end(), gated_.begin(), gated_.end());
  std::ranges::sort(keys);
  const std::size_t shown = std::min(keys.size(), kPodsShownMax);
  api::Json pods = api::Json::array();
  for (std::size_t i = 0; i < shown; ++i) {
    if (auto pod = waiting_pod_document(keys[i], now)) pods.if_array()->push_back(*std::move(pod));
  }
  return api::Json::object({{"active", static_cast<std::int64_t>(queue_.active())},
                            {"backoff", static_cast<std::int64_t>(queue_.backing_off())},
                            {"unschedulable", static_cast<std::int64_t>(queue_.refused())},
                            {"gated", static_cast<std::int64_t>(gated_.size())},
                            {"not_shown", static_cast<std::int64_t>(keys.size() - shown)},
                            {"pods", std::move(pods)}});
}

}  // namespace spillway::controllers
