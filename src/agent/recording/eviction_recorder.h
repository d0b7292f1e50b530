// Records the inputs and decisions of an eviction engine for a sink: in segments, each of which begins with everything
// that a replay needs.
// Thread: loop. Invariant: what follows a lost record is not written before a segment has begun anew.
// Bounds: the records of one input, and the pods as they were last written, are held in memory.
#pragma once

#include "agent/eviction/eviction_witness.h"
#include "agent/recording/record.h"

#include "recording/sink.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::agent {

class EvictionRecorder final : public EvictionWitness {
 public:
  EvictionRecorder(recording::Sink& sink, RecordedNode node) : sink_(sink), node_(std::move(node)) {}

  bool wants_snapshot() const override;
  void on_snapshot(const EvictionSnapshot& snapshot, std::span<const api::Pod* const> pods, Now now) override;
  void on_input(const EngineInputRef& input, Now now) override;
  void on_end() override;
  void on_pods(std::span<const api::Pod* const> pods) override;
  void on_claim(bool claimed) override;
  void on_decision(const JournalEntry& entry) override;
  void on_conditions(const eviction::ConditionSet& conditions) override;
  void on_ending() override;

 private:
  struct KnownPod {
    std::string version;  // resourceVersion; empty: it has none
    std::string bytes;    // as recorded
  };

  void write(const std::string& record);
  void lose();

  recording::Sink& sink_;
  RecordedNode node_;
  std::optional<std::uint64_t> run_;
  std::uint64_t next_segment_ = 0;
  bool open_ = false;       // a segment that takes records
  bool after_gap_ = false;  // records were lost since the last one
  std::size_t segment_bytes_ = 0;
  std::optional<Instant> retry_;  // not before
  Instant now_{};
  int depth_ = 0;
  std::string batch_;  // records of the input under way
  std::vector<std::string> order_;
  std::map<std::string, KnownPod, std::less<>> pods_;
};

}  // namespace spillway::agent
