#include "apps/node/traced_journal.h"

#include "agent/contract/eviction_trace.h"

namespace spillway::apps {

/// The trace of evictions, without a journal behind it: the line has been written by then.
struct TracedJournal::Traces {
  struct Nothing final : agent::Journal {
    void append(const agent::JournalLine&) override {}
  };

  explicit Traces(telemetry::Tracer& tracer) : trace(nothing, tracer) {}

  Nothing nothing;
  agent::EvictionTrace trace;
};

TracedJournal::TracedJournal(agent::Journal& journal, runtime::Loop& tracers, telemetry::Tracer& tracer)
    : journal_(journal), tracers_(tracers), traces_(std::make_shared<Traces>(tracer)) {}

void TracedJournal::append(const agent::JournalLine& line) {
  journal_.append(line);
  tracers_.post([traces = traces_, line] { traces->trace.append(line); });
}

}  // namespace spillway::apps
