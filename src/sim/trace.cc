#include "sim/trace.h"

#include <fmt/format.h>

namespace spillway::sim {

void TraceHash::add(const store::Change& change, Instant at) {
  ++writes_;
  hash_ =
      fnv1a64(fmt::format("{} {} {}\n", at.time_since_epoch().count(), change.revision.number(), change.key), hash_);
  if (change.value) hash_ = fnv1a64(*change.value, hash_);
}

std::string TraceHash::text() const {
  return fmt::format("{:016x}", hash_);
}

}  // namespace spillway::sim
