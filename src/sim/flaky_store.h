// A store under an API server that at times refuses a write, or completes it late: a wrapper of another store, which
// stays correct. Thread: one. All randomness is drawn from the given stream.
#pragma once

#include "base/rng.h"
#include "sim/time/virtual_time.h"
#include "store/store.h"

#include <cstdint>
#include <string>

namespace spillway::sim {

struct StoreFaults {
  std::uint32_t refused_ppm = 0;  // writes: not stored, kServiceUnavailable or kTooManyRequests
  std::uint32_t late_ppm = 0;     // completions that are up to late_max late
  Duration late_max = milliseconds(500);

  friend bool operator==(const StoreFaults&, const StoreFaults&) = default;
};

class FlakyStore final : public store::Store {
 public:
  FlakyStore(store::Store& inner, VirtualTime& time, Rng rng) : inner_(inner), time_(time), rng_(rng) {}

  void set_faults(const StoreFaults& faults) { faults_ = faults; }

  // Store
  void write(store::Write write, store::Completion<store::WriteResult> done) override;

  void range(store::Range range, store::Completion<store::RangeResult> done) override {
    inner_.range(std::move(range), std::move(done));
  }

  store::WatchId watch(std::string prefix, store::Revision after, store::Watcher& watcher) override {
    return inner_.watch(std::move(prefix), after, watcher);
  }

  void unwatch(store::WatchId id) override { inner_.unwatch(id); }

  void compact(store::Revision revision, store::Completion<store::Revision> done) override {
    inner_.compact(revision, std::move(done));
  }

  store::Revision revision() const override { return inner_.revision(); }

  store::Revision compacted() const override { return inner_.compacted(); }

 private:
  store::Store& inner_;
  VirtualTime& time_;
  Rng rng_;
  StoreFaults faults_;
  Instant last_due_{};
};

}  // namespace spillway::sim
