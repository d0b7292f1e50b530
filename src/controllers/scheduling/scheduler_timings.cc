#include "controllers/scheduling/scheduler_timings.h"

#include "telemetry/histogram_bounds.h"

#include <utility>
#include <vector>

namespace spillway::controllers {

namespace {

using Point = SchedulerTimings::Point;
using Status = SchedulerTimings::Status;

/// Buckets from 0.1 ms to 0.2 s.
std::vector<double> coarse() {
  return telemetry::exponential_bounds(0.0001, 2, 12);
}

/// Buckets from 0.01 ms to 22 ms.
std::vector<double> fine() {
  return telemetry::exponential_bounds(0.00001, 1.5, 20);
}

std::string_view text_of(Point point) {
  switch (point) {
    case Point::kPostFilter:
      return "PostFilter";
    case Point::kPreBind:
      return "PreBind";
    case Point::kBind:
      return "Bind";
  }
  std::unreachable();
}

std::string_view plugin_at(Point point) {
  switch (point) {
    case Point::kPostFilter:
      return "DefaultPreemption";
    case Point::kPreBind:
      return "VolumeBinding";
    case Point::kBind:
      return "DefaultBinder";
  }
  std::unreachable();
}

std::string_view text_of(Status status) {
  switch (status) {
    case Status::kSuccess:
      return "Success";
    case Status::kUnschedulable:
      return "Unschedulable";
    case Status::kError:
      return "Error";
  }
  std::unreachable();
}

}  // namespace

SchedulerTimings::SchedulerTimings(telemetry::Registry& metrics, std::function<Instant()> stopwatch)
    : metrics_(metrics), stopwatch_(std::move(stopwatch)) {}

std::optional<Instant> SchedulerTimings::read() const {
  return stopwatch_ ? std::optional(stopwatch_()) : std::nullopt;
}

std::optional<Duration> SchedulerTimings::since(std::optional<Instant> begin) const {
  return begin && stopwatch_ ? std::optional(stopwatch_() - *begin) : std::nullopt;
}

void SchedulerTimings::record_event(std::string_view event, std::optional<Instant> begin) {
  if (event.empty()) return;
  const std::optional<Duration> took = since(begin);
  if (!took) return;
  auto known = events_.find(event);
  if (known == events_.end()) {
    known = events_
                .emplace(event, metrics_.histogram(
                                    "scheduler_event_handling_duration_seconds",
                                    "Duration of handling a change of the cluster before the next attempt, in seconds",
                                    coarse(), {{"event", event}}))
                .first;
  }
  known->second.observe(in_seconds(*took));
}

telemetry::Histogram& SchedulerTimings::point_for(Point point, Status status, std::string_view profile) {
  const auto known = points_.find(std::tuple(point, status, profile));
  if (known != points_.end()) return known->second;
  return points_
      .emplace(
          Extension(point, status, profile),
          metrics_.histogram("scheduler_framework_extension_point_duration_seconds",
                             "Duration of all plug-ins of an extension point, in seconds", coarse(),
                             {{"extension_point", text_of(point)}, {"status", text_of(status)}, {"profile", profile}}))
      .first->second;
}

void SchedulerTimings::record_point(Point point, Status status, std::string_view profile, bool sampled, Duration took) {
  point_for(point, status, profile).observe(in_seconds(took));
  if (!sampled) return;
  const auto [known, is_new] = plugins_.try_emplace(std::pair(point, status));
  if (is_new) {
    known->second = metrics_.histogram(
        "scheduler_plugin_execution_duration_seconds",
        "Duration of a plug-in at an extension point, in seconds, in every tenth attempt", fine(),
        {{"plugin", plugin_at(point)}, {"extension_point", text_of(point)}, {"status", text_of(status)}});
  }
  known->second.observe(in_seconds(took));
}

void SchedulerTimings::record_hint(scheduling::Filter plugin, std::string_view event, bool queues, Duration took) {
  if (plugin == scheduling::Filter::kExtender) return;  // no plug-in: kube-scheduler has no hint of it
  const auto [known, is_new] = hints_.try_emplace(Hint(plugin, event, queues));
  if (is_new) {
    known->second = metrics_.histogram(
        "scheduler_queueing_hint_execution_duration_seconds",
        "Duration of a plug-in's answer if a change makes a pod schedulable, in seconds, of every tenth pod that is "
        "asked "
        "about",
        fine(),
        {{"plugin", scheduling::to_string(plugin)}, {"event", event}, {"hint", queues ? "Queue" : "QueueSkip"}});
  }
  known->second.observe(in_seconds(took));
}

}  // namespace spillway::controllers
