// Goal: the estimators' figures are read of cgroups of both versions, and the brake is written where there is one.
#include "host/reaction/memory_gauge.h"

#include "host/reaction/memory_brake.h"
#include "support/fake_cgroup.h"

#include <gtest/gtest.h>

#include <thread>

namespace spillway::host {
namespace {

using eviction::MemoryEstimator;
using support::FakeCgroup;

constexpr Bytes kLimit = Bytes{1000};

CgroupDir pods_of(const FakeCgroup& fake) {
  Result<CgroupDir> child = fake.root().open_child("pods");
  EXPECT_TRUE(child) << child.error().text();
  return *std::move(child);
}

MemoryReading read_everything(const FakeCgroup& fake) {
  const Result<MemoryGauge> gauge = MemoryGauge::open(pods_of(fake), kLimit);
  EXPECT_TRUE(gauge) << gauge.error().text();
  const Result<MemoryReading> reading = gauge->read(Figures::kEverything);
  EXPECT_TRUE(reading) << reading.error().text();
  return *reading;
}

TEST(MemoryGaugeV2, ReadsWhatEveryEstimatorTakes) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.add("pods");
  fake.put(Controller::kMemory, "pods", "memory.current", "800\n");
  fake.put(Controller::kMemory, "pods", "memory.stat",
           "anon 300\nfile 400\nslab_reclaimable 50\ninactive_file 100\nactive_file 300\n");
  fake.put(Controller::kMemory, "pods", "memory.swap.max", "0\n");
  fake.put(Controller::kMemory, "pods", "memory.swap.current", "0\n");
  const MemoryReading reading = read_everything(fake);
  EXPECT_EQ(reading.left_by(MemoryEstimator::kWorkingSet), Bytes{300});
  EXPECT_EQ(reading.left_by(MemoryEstimator::kAvailable), Bytes{200 + 100 + 300 + 50});
  EXPECT_EQ(reading.left_by(MemoryEstimator::kWorkingSetAndSwap), Bytes{300}) << "it may not swap";
}

TEST(MemoryGaugeV2, TheWorkingSetAloneReadsNothingMore) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.add("pods");
  fake.put(Controller::kMemory, "pods", "memory.current", "800\n");
  fake.put(Controller::kMemory, "pods", "memory.stat", "inactive_file 100\nactive_file 300\n");
  const Result<MemoryGauge> gauge = MemoryGauge::open(pods_of(fake), kLimit);
  ASSERT_TRUE(gauge);
  const Result<MemoryReading> reading = gauge->read();
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->available, Bytes{300});
  EXPECT_EQ(reading->left_by(MemoryEstimator::kAvailable), std::nullopt);
  EXPECT_EQ(reading->left_by(MemoryEstimator::kWorkingSetAndSwap), std::nullopt);
}

TEST(MemoryGaugeV1, SwapSharesALimitWithMemory) {
  FakeCgroup fake(CgroupVersion::kV1);
  fake.add("pods");
  fake.put(Controller::kMemory, "pods", "memory.usage_in_bytes", "800\n");
  fake.put(Controller::kMemory, "pods", "memory.memsw.limit_in_bytes", "1000\n");
  fake.put(Controller::kMemory, "pods", "memory.stat",
           "total_inactive_file 100\ntotal_active_file 300\ntotal_swap 60\n");
  const MemoryReading reading = read_everything(fake);
  EXPECT_EQ(reading.left_by(MemoryEstimator::kWorkingSet), Bytes{300});
  EXPECT_EQ(reading.left_by(MemoryEstimator::kAvailable), Bytes{200 + 100 + 300});
  EXPECT_EQ(reading.left_by(MemoryEstimator::kWorkingSetAndSwap), Bytes{240}) << "what is swapped out is used";
}

TEST(MemoryGaugeV2, FollowsALimitThatIsSetAnew) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.add("pods");
  fake.put(Controller::kMemory, "pods", "memory.current", "300\n");
  const Result<MemoryGauge> gauge = MemoryGauge::open_with_own_limit(pods_of(fake), kLimit);
  ASSERT_TRUE(gauge) << gauge.error().text();
  EXPECT_EQ(gauge->read()->available, Bytes{700}) << "\"max\" is no limit of its own";
  fake.put(Controller::kMemory, "pods", "memory.max", "600\n");
  EXPECT_EQ(gauge->read()->available, Bytes{300});
  EXPECT_EQ(gauge->read()->limit, Bytes{600});
  fake.put(Controller::kMemory, "pods", "memory.max", "9000\n");
  EXPECT_EQ(gauge->read()->available, Bytes{700}) << "no more than the node has";
}

TEST(EstimateFromMeminfo, TakesMemAvailableAndSwapWhereTheKernelHasThem) {
  const std::string needed =
      "MemTotal: 1000 kB\nBuffers: 1 kB\nCached: 100 kB\nSwapCached: 0 kB\nInactive(file): 50 kB\nAnonPages: 300 kB\n";
  const auto old = estimate_from_meminfo(needed);
  ASSERT_TRUE(old);
  EXPECT_EQ(old->left_by(MemoryEstimator::kAvailable), std::nullopt);
  const auto reading = estimate_from_meminfo(needed + "MemAvailable: 400 kB\nSwapTotal: 90 kB\nSwapFree: 80 kB\n");
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->left_by(MemoryEstimator::kAvailable), kibibytes(400));
  EXPECT_EQ(reading->left_by(MemoryEstimator::kWorkingSetAndSwap), kibibytes(649 + 80));
}

TEST(MemoryBrake, IsMaxAtTheStartAndAtTheEnd) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.add("pods");
  fake.put(Controller::kMemory, "pods", "memory.high", "123456789\n");
  const auto text = [&] { return fake.get(Controller::kMemory, "pods", "memory.high"); };
  {
    const auto brake = MemoryBrake::create(pods_of(fake));
    ASSERT_TRUE(brake) << brake.error().text();
    EXPECT_TRUE(text().starts_with("max")) << "whatever a dead agent left";
    EXPECT_FALSE((*brake)->limit());
    (*brake)->set(mebibytes(700));
    EXPECT_EQ((*brake)->limit(), mebibytes(700));
    while (!text().starts_with("734003200")) std::this_thread::yield();
    (*brake)->set(mebibytes(700) + Bytes{4096});  // a move too small to write
    (*brake)->set(mebibytes(800));
    while (!text().starts_with("838860800")) std::this_thread::yield();
  }
  EXPECT_TRUE(text().starts_with("max"));
}

TEST(MemoryBrake, VersionOneHasNone) {
  FakeCgroup fake(CgroupVersion::kV1);
  fake.add("pods");
  const auto brake = MemoryBrake::create(pods_of(fake));
  ASSERT_FALSE(brake);
  EXPECT_EQ(brake.error().text(), "cgroup version 1 has no memory.high");
}

}  // namespace
}  // namespace spillway::host
