// The fingerprint of a run: every committed write with its time. Two runs of one seed must agree.
// Thread: one.
#pragma once

#include "base/rng.h"
#include "base/time.h"
#include "store/store.h"

#include <cstdint>
#include <string>

namespace spillway::sim {

class TraceHash {
 public:
  void add(const store::Change& change, Instant at);

  std::uint64_t value() const { return hash_; }

  std::uint64_t writes() const { return writes_; }

  /// Sixteen hexadecimal digits.
  std::string text() const;

 private:
  std::uint64_t hash_ = fnv1a64("");
  std::uint64_t writes_ = 0;
};

}  // namespace spillway::sim
