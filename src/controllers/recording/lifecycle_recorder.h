// Records the inputs and decisions of the node lifecycle for a sink: in segments, each of which begins with everything
// that a replay needs.
// Thread: loop. Invariant: what follows a lost record is not written before a segment has begun anew.
// Bounds: one entry for each node; kBundleMax heartbeats wait to be written, until the next pass.
#pragma once

#include "controllers/nodes/lifecycle_witness.h"
#include "controllers/recording/lifecycle_record.h"

#include "recording/sink.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace spillway::controllers {

class LifecycleRecorder final : public LifecycleWitness {
 public:
  static constexpr std::size_t kBundleMax = 512;

  LifecycleRecorder(recording::Sink& sink, RecordedController controller)
      : sink_(sink), controller_(std::move(controller)) {}

  void on_start(Now now) override;
  void on_pass(Now now) override;
  void on_node(const std::string& name, const api::Node* node, Now now) override;
  void on_lease(const std::string& node, const api::Lease& lease, Now now) override;
  void on_decision(const LifecycleDecision& decision, Now now) override;

 private:
  struct Known {
    NodeKnown node;
    std::string uid;
    std::optional<WallTime> heartbeat;  // the Ready condition's
    std::optional<WallTime> renewed;
    std::uint32_t number = 0;
    std::string last_decision;  // the last recorded decision about it
  };

  void begin_segment(Now now);
  bool is_calm() const;
  void record_sign(Known& known, bool lease, Now now);
  void flush();
  void write(const LifecycleRecord& record, Now now);
  void lose(Now now);

  recording::Sink& sink_;
  RecordedController controller_;
  std::optional<std::uint64_t> run_;
  std::uint64_t next_segment_ = 0;
  bool open_ = false;
  bool after_gap_ = false;
  std::size_t segment_bytes_ = 0;
  std::optional<Instant> not_before_;  // a segment begins
  std::map<std::string, Known, std::less<>> nodes_;
  std::map<std::string, std::string, std::less<>> zones_;  // the last decision
  std::uint32_t next_number_ = 0;
  SignsOfLife waiting_;
};

}  // namespace spillway::controllers
