#include "telemetry/metrics.h"

#include "telemetry/histogram_bounds.h"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

namespace spillway::telemetry {
namespace {

using ::testing::HasSubstr;

TEST(HistogramBounds, AreEachAFactorLarger) {
  EXPECT_EQ(exponential_bounds(0.5, 2, 4), (std::vector<double>{0.5, 1, 2, 4}));
  EXPECT_EQ(exponential_bounds(3, 10, 1), std::vector<double>{3});
}

TEST(Metrics, TextIsWhatPrometheusReads) {
  Registry registry;
  registry.counter("spillway_evictions_total", "Pods evicted", {{"signal", "memory.available"}}).add(3);
  registry.gauge("spillway_nodes", "Nodes").set(2.5);
  Histogram latency = registry.histogram("spillway_commit_seconds", "Commits", {0.1, 1});
  latency.observe(0.05);
  latency.observe(0.5);
  latency.observe(5);
  const std::string text = registry.text();
  EXPECT_THAT(text, HasSubstr("# HELP spillway_evictions_total Pods evicted\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE spillway_evictions_total counter\n"));
  EXPECT_THAT(text, HasSubstr("spillway_evictions_total{signal=\"memory.available\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("spillway_nodes 2.5\n"));
  EXPECT_THAT(text, HasSubstr("spillway_commit_seconds_bucket{le=\"0.1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("spillway_commit_seconds_bucket{le=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("spillway_commit_seconds_bucket{le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("spillway_commit_seconds_count 3\n"));
}

TEST(Metrics, SameNameAndLabelsAreTheSameInstrument) {
  Registry registry;
  Counter one = registry.counter("c_total", "c", {{"zone", "a"}});
  Counter same = registry.counter("c_total", "c", {{"zone", "a"}});
  Counter other = registry.counter("c_total", "c", {{"zone", "b"}});
  one.add();
  same.add(2);
  EXPECT_EQ(one.value(), 3);
  EXPECT_EQ(other.value(), 0);
}

TEST(Metrics, EmptyHandlesCountNowhere) {
  Counter counter;
  counter.add();
  EXPECT_EQ(counter.value(), 0);
  Gauge gauge;
  gauge.set(1);
  EXPECT_EQ(gauge.value(), 0);
  Histogram().observe(1);
}

TEST(Metrics, CountsFromManyThreads) {
  Registry registry;
  Counter counter = registry.counter("c_total", "c");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 1'000; ++n) counter.add();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 4'000);
}

TEST(MetricsDeathTest, ANameHasOneKind) {
  Registry registry;
  registry.counter("c_total", "c");
  EXPECT_DEATH(registry.gauge("c_total", "c"), "metric c_total");
}

}  // namespace
}  // namespace spillway::telemetry
