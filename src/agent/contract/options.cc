#include "agent/contract/options.h"

#include "api/text/quantity.h"

#include <algorithm>

namespace spillway::agent {

eviction::SignalMap hard_thresholds_for(Bytes node_memory) {
  eviction::SignalMap thresholds = eviction::default_hard_thresholds();
  if (node_memory >= gibibytes(1)) return thresholds;
  const Bytes tenth = mebibytes(node_memory.count() / 10 / mebibytes(1).count());
  thresholds["memory.available"] = api::Quantity::of_bytes(std::max(mebibytes(16), tenth)).to_string();
  return thresholds;
}

}  // namespace spillway::agent
