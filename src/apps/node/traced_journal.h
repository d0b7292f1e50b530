// A node's journal whose evictions are traced as well. The tracer belongs to the loop of the process, which need not be
// the node's: lines go there in their order. Thread: the node's loop.
#pragma once

#include "agent/contract/journal.h"
#include "runtime/loop.h"
#include "telemetry/tracer.h"

#include <memory>

namespace spillway::apps {

class TracedJournal final : public agent::Journal {
 public:
  /// `tracer` belongs to `tracers`. All three outlive the journal, and the last two what it has posted.
  TracedJournal(agent::Journal& journal, runtime::Loop& tracers, telemetry::Tracer& tracer);

  void append(const agent::JournalLine& line) override;

 private:
  struct Traces;

  agent::Journal& journal_;
  runtime::Loop& tracers_;
  std::shared_ptr<Traces> traces_;  // used on tracers_
};

}  // namespace spillway::apps
