// One eviction decision and the memory ranking alone, on the input on which upstream's costs were measured. The column
// times_go says how many times faster than the Go code that is once both are divided by the calibration loop of their
// machine (64-bit FNV-1a over 4,096 bytes: 4,475 ns beside the Go code).
// Source of input and of the peer's numbers: spec "Eviction manager", 18; spec "Pod admission", reference costs.
#include "base/rng.h"
#include "policy/eviction/decide.h"
#include "policy/eviction/reference_load.h"
#include "policy/eviction/threshold_parse.h"
#include "policy/eviction/whole_pass.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

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

constexpr double kGoCalibrationNanos = 4475;
const std::map<std::int64_t, double> kGoPassNanos{{110, 434'797}, {250, 1'183'014}, {500, 2'758'980}};
const std::map<std::int64_t, double> kGoRankingNanos{{110, 323'293}, {500, 2'264'282}, {5000, 48'397'310}};

std::string calibration_bytes() {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i % 256);
  return bytes;
}

void calibration(benchmark::State& state) {
  const std::string bytes = calibration_bytes();
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes.data());
    benchmark::DoNotOptimize(fnv1a64(bytes));
  }
}

/// One round of the calibration loop on this machine: the best of a hundred, which other work did not disturb.
double calibration_nanos() {
  static const double nanos = [] {
    const std::string bytes = calibration_bytes();
    double best = 1e9;
    for (int i = 0; i < 100; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      benchmark::DoNotOptimize(bytes.data());
      benchmark::DoNotOptimize(fnv1a64(bytes));
      best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
  }();
  return nanos;
}

void compare_with_go(benchmark::State& state, const std::map<std::int64_t, double>& go_nanos) {
  const double here = go_nanos.at(state.range(0)) / kGoCalibrationNanos * calibration_nanos();
  state.counters["go_ns"] = go_nanos.at(state.range(0));
  state.counters["times_go"] = benchmark::Counter(here * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void one_pass(benchmark::State& state) {
  const ReferenceLoad load(static_cast<int>(state.range(0)));
  const PassConfig config = reference_config();
  PassState kept;
  adopt_layout(config, {}, kept);
  const Now now{Instant(hours(1)), WallTime(seconds(1'700'000'000))};
  std::size_t evicted = 0;
  for (auto _ : state) {
    PassResult result = run_whole_pass(config, std::move(kept), load.summary, load.active, now);
    evicted += result.actions.size();
    kept = std::move(result.state);
  }
  if (evicted != static_cast<std::size_t>(state.iterations()))
    state.SkipWithError("every pass must evict exactly one pod");
  compare_with_go(state, kGoPassNanos);
}

/// Joining statistics by uid is left out, as in the peer's measurement.
void memory_ranking(benchmark::State& state) {
  const ReferenceLoad load(static_cast<int>(state.range(0)));
  const std::vector<MeasuredPod> measured = join_stats(load.active, load.summary.pods);
  for (auto _ : state) benchmark::DoNotOptimize(rank_for_memory(measured));
  compare_with_go(state, kGoRankingNanos);
}

BENCHMARK(calibration);
BENCHMARK(one_pass)->Arg(110)->Arg(250)->Arg(500)->Unit(benchmark::kMicrosecond);
BENCHMARK(memory_ranking)->Arg(110)->Arg(500)->Arg(5000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace spillway::eviction
