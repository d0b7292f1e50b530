// Goal: metrics show the figures of all memory estimators, and how often another one would have decided otherwise.
#include "agent/eviction/eviction_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

using eviction::MemoryEstimator;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(EvictionMetrics, ShowEveryEstimateAndCountDisagreements) {
  telemetry::Registry registry;
  EvictionMetrics metrics(&registry);
  const std::vector<eviction::MemoryEstimate> estimates{
      {.by = MemoryEstimator::kWorkingSet, .available_bytes = 90, .pressure = true},
      {.by = MemoryEstimator::kAvailable, .available_bytes = 400, .pressure = false}};
  metrics.set_estimates(estimates, MemoryEstimator::kWorkingSet);
  metrics.set_estimates(estimates, MemoryEstimator::kWorkingSet);
  const std::string text = registry.text();
  EXPECT_THAT(text, HasSubstr("spillway_memory_estimate_bytes{estimator=\"workingset\"} 90\n"));
  EXPECT_THAT(text, HasSubstr("spillway_memory_estimate_bytes{estimator=\"available\"} 400\n"));
  EXPECT_THAT(text, HasSubstr("spillway_memory_estimate_difference_bytes{estimator=\"available\"} 310\n"));
  EXPECT_THAT(text, HasSubstr("spillway_memory_estimate_disagreements_total{estimator=\"available\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("workingset+swap"))) << "it has no answer here";
}

TEST(EvictionMetrics, AgreementIsNoDisagreement) {
  telemetry::Registry registry;
  EvictionMetrics metrics(&registry);
  metrics.set_estimates({{.by = MemoryEstimator::kWorkingSet, .available_bytes = 90, .pressure = true},
                         {.by = MemoryEstimator::kAvailable, .available_bytes = 80, .pressure = true}},
                        MemoryEstimator::kWorkingSet);
  EXPECT_THAT(registry.text(), HasSubstr("spillway_memory_estimate_disagreements_total{estimator=\"available\"} 0\n"));
}

}  // namespace
}  // namespace spillway::agent
