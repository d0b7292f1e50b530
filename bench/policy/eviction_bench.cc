// One eviction decision and the memory ranking alone, on the input on which upstream's costs were measured.
// Source of input and of the peer's numbers: spec "Eviction manager", 18. Only ratios from one machine mean anything.
#include "policy/eviction/decide.h"
#include "policy/eviction/reference_load.h"
#include "policy/eviction/threshold_parse.h"

#include <benchmark/benchmark.h>

namespace spillway::eviction {
namespace {

PassConfig reference_config() {
  return {.thresholds = parse_thresholds({.hard = {{"memory.available", "1Gi"},
                                                   {"nodefs.available", "10%"},
                                                   {"nodefs.inodesFree", "5%"},
                                                   {"imagefs.available", "15%"},
                                                   {"imagefs.inodesFree", "5%"}}})
                            .value()};
}

void one_pass(benchmark::State& state) {
  const ReferenceLoad load(static_cast<int>(state.range(0)));
  const PassConfig config = reference_config();
  PassState kept;
  adopt_layout(config, {}, kept);
  const Now now{Instant(hours(1)), WallTime(seconds(1'700'000'000))};
  std::size_t evicted = 0;
  for (auto _ : state) {
    PassResult result = decide_eviction(config, std::move(kept), load.summary, load.active, now);
    evicted += result.actions.size();
    kept = std::move(result.state);
  }
  if (evicted != static_cast<std::size_t>(state.iterations()))
    state.SkipWithError("every pass must evict exactly one pod");
}

/// Joining statistics by uid is left out, as in the peer's measurement.
void memory_ranking(benchmark::State& state) {
  const ReferenceLoad load(static_cast<int>(state.range(0)));
  const std::vector<MeasuredPod> measured = join_stats(load.active, load.summary.pods);
  for (auto _ : state) benchmark::DoNotOptimize(rank_for_memory(measured));
}

BENCHMARK(one_pass)->Arg(110)->Arg(250)->Arg(500)->Unit(benchmark::kMicrosecond);
BENCHMARK(memory_ranking)->Arg(110)->Arg(500)->Arg(5000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace spillway::eviction
