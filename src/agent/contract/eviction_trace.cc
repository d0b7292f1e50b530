#include "agent/contract/eviction_trace.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace spillway::agent {

namespace {

/// The spans of one trace: the root span is sent last, because it ends last.
class Tree {
 public:
  explicit Tree(telemetry::Tracer& tracer) : tracer_(tracer), trace_(tracer.new_trace()), root_(tracer.new_span()) {}

  void add(std::string name, WallTime begin, WallTime end) {
    spans_.push_back({.trace = trace_,
                      .id = tracer_.new_span(),
                      .parent = root_,
                      .name = std::move(name),
                      .begin = begin,
                      .end = std::max(begin, end),
                      .attributes = {}});
  }

  void finish(std::string name, WallTime begin, WallTime end, std::vector<telemetry::Attribute> attributes) {
    spans_.insert(spans_.begin(), {.trace = trace_,
                                   .id = root_,
                                   .name = std::move(name),
                                   .begin = begin,
                                   .end = std::max(begin, end),
                                   .attributes = std::move(attributes)});
    tracer_.add(std::move(spans_));
  }

 private:
  telemetry::Tracer& tracer_;
  telemetry::TraceId trace_;
  telemetry::SpanId root_;
  std::vector<telemetry::Span> spans_;
};

}  // namespace

void EvictionTrace::append(const JournalLine& line) {
  journal_.append(line);
  if (const auto* entry = std::get_if<JournalEntry>(&line)) {
    if (!entry->eviction || entry->intent) return;
    if (open_.size() >= kOpenMax) open_.pop_front();
    open_.push_back(*entry);
    return;
  }
  const auto& aftermath = std::get<Aftermath>(line);
  if (policy::find_fact(aftermath.facts, kGoneAfterFact) == nullptr) return;
  const auto entry =
      std::ranges::find(open_, aftermath.uid, [](const JournalEntry& each) { return each.eviction->uid; });
  if (entry == open_.end()) return;
  record_trace(*entry, aftermath.at);
  open_.erase(entry);
}

void EvictionTrace::record_trace(const JournalEntry& entry, WallTime gone) {
  const eviction::EvictPod& action = *entry.eviction;
  const WallTime decided = entry.decision.at;
  WallTime begin = decided;  // unless the time of the measurement is known
  Tree tree(tracer_);
  if (entry.times && entry.times->reading_to_signal) {
    begin = entry.times->reading;
    const WallTime signalled = begin + std::chrono::duration_cast<microseconds>(*entry.times->reading_to_signal);
    tree.add("react", begin, signalled);
    tree.add("decide", signalled, decided);
    tree.add("stop", signalled, gone);
  } else {
    if (entry.times) {
      begin = entry.times->reading;
      tree.add("decide", begin, decided);
    }
    tree.add("stop", decided, gone);
  }
  tree.finish("eviction", begin, gone,
              {{"k8s.node.name", entry.decision.by},
               {"k8s.namespace.name", action.pod.ns},
               {"k8s.pod.name", action.pod.name},
               {"k8s.pod.uid", action.uid},
               {"spillway.eviction.signal", action.metric_label},
               {"spillway.eviction.emergency", entry.emergency},
               {"spillway.reasons", policy::render(entry.decision.reasons)}});
}

}  // namespace spillway::agent
