// Evictions as spans: one trace from the reading to the end of the pod's last process. It wraps the journal and
// receives every entry. An eviction whose end is not seen (the agent ends first, or gives it up) leaves none. Thread:
// loop. Bounds: kOpenMax evictions that have not ended; beyond that, the oldest are forgotten.
#pragma once

#include "agent/contract/journal.h"
#include "telemetry/tracer.h"

#include <cstddef>
#include <deque>
#include <string>

namespace spillway::agent {

class EvictionTrace final : public Journal {
 public:
  static constexpr std::size_t kOpenMax = 64;

  /// Both references must outlive this object.
  EvictionTrace(Journal& journal, telemetry::Tracer& tracer) : journal_(journal), tracer_(tracer) {}

  void append(const JournalLine& line) override;

 private:
  void record_trace(const JournalEntry& entry, WallTime gone);

  Journal& journal_;
  telemetry::Tracer& tracer_;
  std::deque<JournalEntry> open_;
};

}  // namespace spillway::agent
