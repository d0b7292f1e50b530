// Durations of parts of a scheduler's work, by the names of kube-scheduler. Work between two events is measured by the
// clock of the machine; work that waits for answers (Bind, PreBind) by that of the loop. Filters and scores are not
// measured here: their verdicts are kept from pod to pod, and the rest is one pass over nodes for all of them together
// (scheduler_scheduling_algorithm_duration_seconds). Thread: loop. Bounds: labels are names of this program and of
// profiles. Source: Kubernetes docs, "Kubernetes Metrics Reference".
// Metrics: scheduler_event_handling_duration_seconds{event},
// scheduler_framework_extension_point_duration_seconds{extension_point,status,profile},
// scheduler_plugin_execution_duration_seconds{plugin,extension_point,status},
// scheduler_queueing_hint_execution_duration_seconds{plugin,event,hint}.
#pragma once

#include "base/time.h"
#include "policy/scheduling/plugins.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace spillway::controllers {

class SchedulerTimings {
 public:
  /// Points with the only plug-in that runs there: DefaultPreemption, VolumeBinding, DefaultBinder.
  enum class Point : std::uint8_t { kPostFilter, kPreBind, kBind };
  enum class Status : std::uint8_t { kSuccess, kUnschedulable, kError };

  /// `stopwatch`: the clock of the machine; empty: nothing is measured.
  SchedulerTimings(telemetry::Registry& metrics, std::function<Instant()> stopwatch);
  SchedulerTimings(const SchedulerTimings&) = delete;
  SchedulerTimings& operator=(const SchedulerTimings&) = delete;

  bool measures() const { return static_cast<bool>(stopwatch_); }

  /// The machine's time; nullopt: there is no clock.
  std::optional<Instant> read() const;
  /// The time since `begin`; nullopt: there is no `begin`.
  std::optional<Duration> since(std::optional<Instant> begin) const;

  /// An attempt begins: whether plug-ins are measured in it. Every kSampled-th is, the first one too.
  bool next_is_sampled() { return attempts_++ % kSampled == 0; }

  /// Measures the calls of plug-ins' queueing hints about one pod after a change of the cluster.
  bool next_hints_are_sampled() { return hints_asked_++ % kSampled == 0; }

  static constexpr std::uint64_t kSampled = 10;

  /// `event`: as kube-scheduler calls it; a literal. Empty: not measured.
  void record_event(std::string_view event, std::optional<Instant> begin);
  void record_point(Point point, Status status, std::string_view profile, bool sampled, Duration took);
  void record_hint(scheduling::Filter plugin, std::string_view event, bool queues, Duration took);

 private:
  using Extension = std::tuple<Point, Status, std::string>;
  using Hint = std::tuple<scheduling::Filter, std::string_view, bool>;

  telemetry::Histogram& point_for(Point point, Status status, std::string_view profile);

  telemetry::Registry& metrics_;
  std::function<Instant()> stopwatch_;
  std::uint64_t attempts_ = 0;
  std::uint64_t hints_asked_ = 0;
  // Made when needed.
  std::map<std::string_view, telemetry::Histogram> events_;
  std::map<Extension, telemetry::Histogram, std::less<>> points_;
  std::map<std::pair<Point, Status>, telemetry::Histogram> plugins_;
  std::map<Hint, telemetry::Histogram> hints_;
};

/// Measures the handling of one event until it is destroyed.
class EventTiming {
 public:
  EventTiming(SchedulerTimings& timings, std::string_view event)
      : timings_(timings), event_(event), begin_(timings.read()) {}

  EventTiming(const EventTiming&) = delete;
  EventTiming& operator=(const EventTiming&) = delete;

  /// Sets the event, if it becomes known after the timing has begun.
  void name(std::string_view event) { event_ = event; }

  ~EventTiming() { timings_.record_event(event_, begin_); }

 private:
  SchedulerTimings& timings_;
  std::string_view event_;
  std::optional<Instant> begin_;
};

}  // namespace spillway::controllers
