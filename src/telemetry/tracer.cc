#include "telemetry/tracer.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace spillway::telemetry {

namespace {

Counter spans(Registry& metrics, std::string_view outcome) {
  return metrics.counter("spillway_trace_spans_total", "Spans that were sent to the collector, or dropped",
                         {{"outcome", outcome}});
}

}  // namespace

Tracer::Tracer(std::uint64_t seed, std::uint32_t requests_ppm, Registry& metrics)
    : rng_(seed), requests_ppm_(requests_ppm), sent_(spans(metrics, "sent")), dropped_(spans(metrics, "dropped")) {}

TraceId Tracer::new_trace() {
  return {rng_.next(), new_span()};
}

SpanId Tracer::new_span() {
  return std::max<SpanId>(rng_.next(), 1);
}

void Tracer::add(std::vector<Span> added) {
  if (waiting_.size() + added.size() > kWaitingMax) return lost(added.size());
  const bool wakes = waiting_.empty() && !added.empty();
  std::ranges::move(added, std::back_inserter(waiting_));
  if (wakes && wake_) wake_();
}

std::vector<Span> Tracer::take(std::size_t count) {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(count, waiting_.size()));
  std::vector<Span> taken(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return taken;
}

}  // namespace spillway::telemetry
