#include "apiserver/flow/flow_metrics.h"

#include <algorithm>
#include <string>

namespace spillway::apiserver {

namespace {

const std::vector<double> kTimes{0.001, 0.005, 0.02, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30};
const std::vector<double> kSeats{1, 2, 4, 10, 20};
constexpr std::string_view kOtherSeries = "(other)";

}  // namespace

std::string_view to_string(FlowGate::Refusal refusal) {
  switch (refusal) {
    case FlowGate::Refusal::kQueueFull:
      return "queue-full";
    case FlowGate::Refusal::kConcurrencyLimit:
      return "concurrency-limit";
    case FlowGate::Refusal::kTimeOut:
      return "time-out";
  }
  return "";
}

FlowMetrics::FlowMetrics(const FlowGate& gate, telemetry::Registry& registry) : gate_(gate), registry_(registry) {}

void FlowMetrics::follow() {
  for (std::size_t schema = 0; schema < by_schema_.size(); ++schema) {
    std::optional<Instruments>& kept = by_schema_[schema];
    if (!kept || kept->names == names_of(schema)) continue;
    kept->waiting.set(0);
    kept->running.set(0);
    kept->seats.set(0);
    kept.reset();
  }
  const std::vector<flow::Level>& levels = gate_.configuration().levels;
  for (auto& [name, gauge] : levels_) {
    if (std::ranges::find(levels, name, &flow::Level::name) == levels.end()) gauge.set(0);
  }
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::string& name = levels[i].name;
    if (name.empty() || (!levels_.contains(name) && levels_.size() >= kSeriesMax)) continue;
    const auto known = levels_.find(name);
    telemetry::Gauge gauge = known != levels_.end()
                                 ? known->second
                                 : registry_.gauge("apiserver_flowcontrol_nominal_limit_seats",
                                                   "Seats that are a priority level's own", {{"priority_level", name}});
    gauge.set(gate_.seats().share(i).nominal);
    levels_.insert_or_assign(name, gauge);
  }
}

FlowMetrics::Names FlowMetrics::names_of(std::size_t schema) const {
  const flow::Schema& of = gate_.configuration().schemas[schema];
  return {of.level, of.name};
}

FlowMetrics::Names FlowMetrics::labels_of(const Names& names) {
  const std::pair series(names.level, names.schema);
  if (!series_.contains(series)) {
    if (series_.size() >= kSeriesMax) return {std::string(kOtherSeries), std::string(kOtherSeries)};
    series_.insert(series);
  }
  return names;
}

FlowMetrics::Instruments& FlowMetrics::of(std::size_t schema) {
  if (by_schema_.size() <= schema) by_schema_.resize(schema + 1);
  std::optional<Instruments>& found = by_schema_[schema];
  if (!found) {
    found.emplace();
    found->names = names_of(schema);
    const Names labels = labels_of(found->names);
    make_counters(labels, *found);
    make_times(labels, *found);
  }
  return *found;
}

void FlowMetrics::make_counters(const Names& labels, Instruments& made) {
  made.dispatched =
      registry_.counter("apiserver_flowcontrol_dispatched_requests_total", "Requests that flow control let run",
                        {{"priority_level", labels.level}, {"flow_schema", labels.schema}});
  const auto rejected = [&](std::string_view reason) {
    return registry_.counter("apiserver_flowcontrol_rejected_requests_total",
                             "Requests that flow control refused, or whose client disconnected",
                             {{"priority_level", labels.level}, {"flow_schema", labels.schema}, {"reason", reason}});
  };
  for (std::size_t i = 0; i < kRefusals; ++i) made.refused[i] = rejected(to_string(static_cast<FlowGate::Refusal>(i)));
  made.cancelled = rejected("cancelled");
  const auto gauge = [&](std::string_view name, std::string_view help) {
    return registry_.gauge(name, help, {{"priority_level", labels.level}, {"flow_schema", labels.schema}});
  };
  made.waiting = gauge("apiserver_flowcontrol_current_inqueue_requests", "Requests that wait for a seat");
  made.running = gauge("apiserver_flowcontrol_current_executing_requests", "Requests that hold seats");
  made.seats = gauge("apiserver_flowcontrol_current_executing_seats", "Seats that are held");
}

void FlowMetrics::make_times(const Names& labels, Instruments& made) {
  const auto wait = [&](std::string_view execute) {
    return registry_.histogram(
        "apiserver_flowcontrol_request_wait_duration_seconds", "Time requests waited for a seat", kTimes,
        {{"priority_level", labels.level}, {"flow_schema", labels.schema}, {"execute", execute}});
  };
  made.wait = wait("true");
  made.wait_in_vain = wait("false");
  made.run = registry_.histogram("apiserver_flowcontrol_request_execution_seconds", "Time requests held their seats",
                                 kTimes, {{"priority_level", labels.level}, {"flow_schema", labels.schema}});
  made.estimate = registry_.histogram("apiserver_flowcontrol_work_estimated_seats", "Seats that requests were given",
                                      kSeats, {{"priority_level", labels.level}, {"flow_schema", labels.schema}});
}

void FlowMetrics::arrived(const FlowGate::Ticket& ticket) {
  of(ticket.schema).estimate.observe(ticket.seats);
}

void FlowMetrics::began(const FlowGate::Ticket& ticket, Duration waited) {
  Instruments& to = of(ticket.schema);
  to.dispatched.add();
  to.wait.observe(in_seconds(waited));
}

void FlowMetrics::refused(std::size_t schema, FlowGate::Refusal refusal) {
  of(schema).refused[static_cast<std::size_t>(refusal)].add();
}

void FlowMetrics::cancelled(std::size_t schema) {
  of(schema).cancelled.add();
}

void FlowMetrics::waited_in_vain(std::size_t schema, Duration waited) {
  of(schema).wait_in_vain.observe(in_seconds(waited));
}

void FlowMetrics::ended(const FlowGate::Ticket& ticket, Duration ran) {
  of(ticket.schema).run.observe(in_seconds(ran));
}

void FlowMetrics::show() {
  for (std::size_t schema = 0; schema < by_schema_.size(); ++schema) {
    if (!by_schema_[schema]) continue;
    const FlowGate::Counts& counts = gate_.counts(schema);
    by_schema_[schema]->waiting.set(static_cast<double>(counts.waiting));
    by_schema_[schema]->running.set(static_cast<double>(counts.running));
    by_schema_[schema]->seats.set(counts.seats);
  }
}

}  // namespace spillway::apiserver
