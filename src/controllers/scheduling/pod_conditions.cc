#include "controllers/scheduling/pod_conditions.h"

#include "api/text/time_text.h"
#include "controllers/shared/paths.h"

#include <utility>

namespace spillway::controllers {

namespace {

/// Writes of one message: the first and its repetitions. A refused write is rare, and the next refusal of the pod,
/// after five minutes at the latest, writes the condition again.
constexpr int kWritesMax = 4;
/// Wait between two writes of one message.
constexpr Duration kWriteWait = seconds(1);

}  // namespace

api::Json unscheduled_condition(const api::Pod& pod, const std::string& message, std::string_view reason, Now now) {
  const api::PodCondition* condition = api::find_condition(pod.status.conditions, "PodScheduled");
  const bool was_false = condition != nullptr && condition->status == "False";
  api::Json report =
      api::Json::object({{"type", "PodScheduled"}, {"status", "False"}, {"reason", reason}, {"message", message}});
  if (!was_false) report["lastTransitionTime"] = api::format_time(now.wall);
  if (pod.metadata.generation != 0) report["observedGeneration"] = pod.metadata.generation;
  return report;
}

void PodConditions::report(const PodPtr& pod, const std::string& message, std::optional<std::string> promise, Now now,
                           std::string_view reason) {
  std::string& known = parts_.refused.message_of(pod->key().text());
  const bool says_anything = known != message;
  known = message;
  if (says_anything) {
    hooks_.events_of(*pod).record(client::reference_to(*pod), client::EventType::kWarning, "FailedScheduling", message,
                                  now);
  }
  const bool is_promised = promise && !promise->empty();
  if (is_promised || (!says_anything && !promise)) return;  // a promise is written with its condition
  api::Json status =
      api::Json::object({{"conditions", api::Json::array({unscheduled_condition(*pod, message, reason, now)})}});
  if (promise) {
    status["nominatedNodeName"] = api::Json();
    hooks_.on_promise_lost(pod);
  }
  const api::Json patch =
      api::Json::object({{"metadata", api::Json::object({{"uid", pod->metadata.uid}})}, {"status", std::move(status)}});
  write(pod, message, patch, kWritesMax);
}

void PodConditions::write(const PodPtr& pod, const std::string& message, const api::Json& patch, int tries) {
  parts_.client.patch(pod_path(*pod, "status"), client::PatchType::kStrategicMerge, patch,
                      [this, pod, message, patch, tries](const Result<api::Json>& outcome, Now now) {
                        on_written(pod, message, patch, tries, outcome, now);
                      });
}

void PodConditions::on_written(const PodPtr& pod, const std::string& message, const api::Json& patch, int tries,
                               const Result<api::Json>& outcome, Now now) {
  if (outcome || outcome.error().code == ErrorCode::kNotFound) return;
  parts_.log.warning("the condition of a pod was not written",
                     {{"pod", pod->key().text()}, {"error", outcome.error().text()}});
  if (!still_waits(*pod, message)) return;
  if (tries <= 1) return parts_.refused.message_of(pod->key().text()).clear();
  parts_.client.at(now.mono + kWriteWait, [this, pod, message, patch, tries](Now) {
    if (still_waits(*pod, message)) write(pod, message, patch, tries - 1);
  });
}

bool PodConditions::still_waits(const api::Pod& pod, const std::string& message) const {
  const client::ObjectKey key = pod.key().text();
  const PodPtr known = parts_.pods.cache().find(key);
  const std::string* reported = parts_.refused.find_message(key);
  return known && known->metadata.uid == pod.metadata.uid && reported != nullptr && *reported == message &&
         !hooks_.is_preempting(pod.metadata.uid);
}

}  // namespace spillway::controllers
