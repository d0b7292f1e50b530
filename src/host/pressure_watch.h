// Wakes the agent when the node's memory moves: adaptive polling of memory.available is the base, PSI triggers, inotify
// on memory.events (version 2) and usage thresholds (version 1) shorten the sleep. A wake says "look now", never
// "kill". Thread: loop. Sources that the kernel does not offer are named states, not errors. Source: spec "Wake-up
// sources".
#pragma once

#include "agent/ports.h"
#include "base/bytes.h"
#include "base/time.h"
#include "host/memory_gauge.h"
#include "host/node_slice.h"
#include "host/psi.h"
#include "host/unique_fd.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

/// How long polling may sleep with that much memory above the nearest threshold, and how fast it has been falling: half
/// the time it takes at the greater of 4 GB/s and twice the steepest fall; from 1 ms to 1 s. Pure.
Duration poll_interval_of(Bytes headroom, Bytes steepest_fall_per_second);

/// The steepest fall of available memory over the last ten seconds. Pure: time is given.
class FallMeter {
 public:
  void add(Bytes available, Instant at);
  /// Bytes per second; zero while nothing falls.
  Bytes steepest(Instant now) const;

 private:
  struct Fall {
    Instant at;
    Bytes per_second;
  };

  std::optional<std::pair<Instant, Bytes>> last_;
  std::deque<Fall> falls_;  // steepness decreasing, so that the front is the steepest
};

class PressureWatch {
 public:
  /// Which sources work here.
  struct Sources {
    PsiWindow psi = PsiWindow::kNone;
    bool memory_events = false;
    bool usage_threshold = false;
  };

  static Result<std::unique_ptr<PressureWatch>> create(runtime::Loop& loop, const NodeSlice& slice,
                                                       agent::Host::Receiver& receiver, telemetry::Log log);
  ~PressureWatch();
  PressureWatch(const PressureWatch&) = delete;
  PressureWatch& operator=(const PressureWatch&) = delete;

  /// From now on wakes when memory.available falls below one of these, and every half second while it stays below the
  /// lowest that was passed. Empty: polling rests, the other sources go on.
  void set_thresholds(std::vector<Bytes> available);

  const Sources& sources() const { return sources_; }

  /// How long the last look allowed to sleep.
  Duration poll_interval() const { return interval_; }

 private:
  PressureWatch(runtime::Loop& loop, const NodeSlice& slice, agent::Host::Receiver& receiver, telemetry::Log log,
                MemoryGauge gauge);

  void open_psi();
  void open_memory_events();
  void on_psi();
  void poll();
  void arm_usage_threshold(const MemoryReading& reading, Instant now);
  std::optional<Bytes> next_threshold(Bytes available) const;
  void wake(std::string_view source);

  runtime::Loop& loop_;
  const NodeSlice& slice_;
  agent::Host::Receiver& receiver_;
  telemetry::Log log_;
  MemoryGauge gauge_;
  Sources sources_;
  std::vector<Bytes> thresholds_;  // descending
  std::size_t passed_ = 0;         // how many of them available memory is below
  FallMeter falls_;
  Duration interval_ = seconds(1);
  std::optional<Instant> last_wake_;
  std::optional<Instant> last_exact_;
  std::optional<runtime::Loop::TimerId> timer_;
  UniqueFd psi_;
  UniqueFd inotify_;
  UniqueFd usage_event_;
  std::optional<Bytes> armed_usage_;
  Instant armed_at_;
  bool failed_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace spillway::host
