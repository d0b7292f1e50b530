#include "host/pressure_watch.h"

#include "host/cgroup_kill.h"
#include "host/real_machine.h"

#include <algorithm>

namespace spillway::host {
namespace {

TEST(PollInterval, IsHalfTheTimeToTheThreshold) {
  EXPECT_EQ(poll_interval_of(gibibytes(100), Bytes{0}), seconds(1));
  EXPECT_EQ(poll_interval_of(Bytes{200'000'000}, Bytes{0}), milliseconds(25));
  EXPECT_EQ(poll_interval_of(Bytes{200'000'000}, Bytes{1'000'000'000}), milliseconds(25)) << "slower than the floor";
  EXPECT_EQ(poll_interval_of(Bytes{200'000'000}, Bytes{4'000'000'000}), Duration(12'500'000));
  EXPECT_EQ(poll_interval_of(Bytes{1000}, Bytes{0}), milliseconds(1));
  EXPECT_EQ(poll_interval_of(Bytes{0}, Bytes{0}), milliseconds(1));
  EXPECT_EQ(poll_interval_of(Bytes{-5}, Bytes{0}), milliseconds(1));
}

TEST(FallMeter, RemembersTheSteepestFallOfTenSeconds) {
  const auto at = [](int tenths) { return Instant(milliseconds(100) * tenths); };
  FallMeter meter;
  EXPECT_EQ(meter.steepest(at(0)), Bytes{0});
  meter.add(Bytes{1000}, at(0));
  meter.add(Bytes{900}, at(1));
  EXPECT_EQ(meter.steepest(at(1)), Bytes{1000});
  meter.add(Bytes{890}, at(2));
  EXPECT_EQ(meter.steepest(at(2)), Bytes{1000}) << "a gentler fall does not hide it";
  meter.add(Bytes{2000}, at(3));
  EXPECT_EQ(meter.steepest(at(3)), Bytes{1000}) << "nor does a rise";
  EXPECT_EQ(meter.steepest(at(102)), Bytes{100}) << "after ten seconds the gentler one is left";
  EXPECT_EQ(meter.steepest(at(103)), Bytes{0});
}

class PressureWatchTest : public RealMachine {
 protected:
  void SetUp() override {
    RealMachine::SetUp();
    if (!slice_) return;
    Result<std::unique_ptr<PressureWatch>> watch = PressureWatch::create(loop_, *slice_, *this, telemetry::Log());
    ASSERT_TRUE(watch) << watch.error().text();
    watch_ = *std::move(watch);
  }

  void TearDown() override {
    watch_.reset();
    RealMachine::TearDown();
  }

  bool woken_by(std::string_view source) const {
    return std::ranges::any_of(events_, [&](const agent::HostEvent& event) {
      const auto* wake = std::get_if<agent::PressureWake>(&event);
      return wake != nullptr && (source.empty() || wake->source == source);
    });
  }

  void start_hog() {
    create_pod("hog");
    start_shell("hog", "x=$(head -c 40000000 /dev/zero | tr '\\0' x); sleep 1000");
  }

  std::unique_ptr<PressureWatch> watch_;
};

TEST_F(PressureWatchTest, GaugeSaysWhatThePassSays) {
  Result<MemoryGauge> gauge = MemoryGauge::open(*slice_);
  ASSERT_TRUE(gauge) << gauge.error().text();
  const Result<MemoryReading> reading = gauge->read_exact();
  ASSERT_TRUE(reading) << reading.error().text();
  const api::Summary summary = observe();
  const auto seen = static_cast<std::int64_t>(*summary.node.memory->available_bytes);
  EXPECT_NEAR(static_cast<double>(reading->available.count()), static_cast<double>(seen), 1 << 20);
  EXPECT_EQ(gauge->read_quick()->available, reading->available);
}

TEST_F(PressureWatchTest, WakesWhenAvailableMemoryFallsBelowAThreshold) {
  watch_->set_thresholds({mebibytes(100), mebibytes(10)});
  EXPECT_FALSE(woken_by("poll"));
  EXPECT_LE(watch_->poll_interval(), seconds(1));
  start_hog();
  EXPECT_TRUE(run_until([&] { return woken_by("poll"); }));
}

TEST_F(PressureWatchTest, ThresholdAboveWhatThereIsWakesAtOnceAndAgain) {
  watch_->set_thresholds({gibibytes(1)});
  EXPECT_TRUE(run_until([&] { return count<agent::PressureWake>() >= 2; }));
}

TEST_F(PressureWatchTest, TheKernelTellsOnVersionOne) {
  if (!watch_->sources().usage_threshold) GTEST_SKIP() << "no usage thresholds in this kernel";
  watch_->set_thresholds({mebibytes(100)});
  start_hog();
  EXPECT_TRUE(run_until([&] { return woken_by("memcg-threshold"); }));
}

TEST_F(PressureWatchTest, WithoutThresholdsNothingPolls) {
  watch_->set_thresholds({mebibytes(100)});
  watch_->set_thresholds({});
  start_hog();
  ASSERT_TRUE(run_until([&] {
    const api::Summary summary = observe();
    return *summary.node.memory->available_bytes < static_cast<std::uint64_t>(mebibytes(95).count());
  }));
  EXPECT_FALSE(woken_by("poll"));
}

}  // namespace
}  // namespace spillway::host
