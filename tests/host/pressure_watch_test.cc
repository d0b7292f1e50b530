#include "host/reaction/pressure_watch.h"

#include "host/cgroup/cgroup.h"
#include "host/reaction/reaction_thread.h"
#include "host/real_machine.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <set>

namespace spillway::host {
namespace {

class PressureWatchTest : public RealMachine {
 protected:
  void SetUp() override {
    RealMachine::SetUp();
    if (!slice_) return;
    epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    Result<std::unique_ptr<PressureWatch>> watch =
        PressureWatch::create(loop_, *slice_, epoll_.get(), telemetry::Log());
    ASSERT_TRUE(watch) << watch.error().text();
    watch_ = *std::move(watch);
  }

  void TearDown() override {
    watch_.reset();
    RealMachine::TearDown();
  }

  /// The version of cgroups of this machine determines how the kernel notifies of memory: by thresholds or by events,
  /// never both. True: by thresholds.
  bool notifies_by_thresholds() const {
    const Result<CgroupMounts> mounts = read_cgroup_mounts();
    EXPECT_TRUE(mounts);
    const bool first = mounts && mounts->version == CgroupVersion::kV1;
    EXPECT_EQ(watch_->sources().usage_threshold, first);
    EXPECT_EQ(watch_->sources().memory_events, !first);
    return first;
  }

  bool woken_by(ReactionThread::Source source) {
    epoll_event event{};
    while (::epoll_wait(epoll_.get(), &event, 1, 0) == 1) seen_.insert(static_cast<std::uint32_t>(event.data.u64));
    return seen_.contains(static_cast<std::uint32_t>(source));
  }

  void start_hog() {
    create_pod("hog");
    start_shell("hog", "dd if=/dev/zero bs=40000000 count=1 2>/dev/null | sleep 1000");
  }

  UniqueFd epoll_;
  std::unique_ptr<PressureWatch> watch_;
  std::set<std::uint32_t> seen_;
};

TEST_F(PressureWatchTest, GaugeSaysWhatThePassSays) {
  const Result<MemoryGauge> gauge = MemoryGauge::open(slice_->measured(), slice_->memory());
  ASSERT_TRUE(gauge) << gauge.error().text();
  const Result<MemoryReading> reading = gauge->read();
  ASSERT_TRUE(reading) << reading.error().text();
  const auto whole = static_cast<std::int64_t>(*observe().node.memory->available_bytes);
  EXPECT_NEAR(static_cast<double>(reading->available.count()), static_cast<double>(whole), 1 << 20);
}

TEST_F(PressureWatchTest, TheKernelNotifiesOfThresholdsOnVersionOne) {
  if (!notifies_by_thresholds()) return;
  watch_->set_thresholds({.node = {mebibytes(10), mebibytes(100)}});
  start_hog();
  EXPECT_TRUE(run_until([&] { return woken_by(ReactionThread::Source::kUsageThreshold); }));
}

TEST_F(PressureWatchTest, TheKernelNotifiesOfThresholdsOfAllPodsTogether) {
  if (!notifies_by_thresholds()) return;
  watch_->set_thresholds({.pods = {mebibytes(10), mebibytes(100)}});
  start_hog();
  EXPECT_TRUE(run_until([&] { return woken_by(ReactionThread::Source::kUsageThreshold); }));
}

/// Usage that is no working set (files that were written) moves the usage at which a threshold is passed: it has to be
/// armed anew, or the kernel notifies too early, once, and then never.
TEST_F(PressureWatchTest, AThresholdFollowsWhatFilesTake) {
  if (!notifies_by_thresholds()) return;
  watch_->set_thresholds({.node = {mebibytes(60)}});
  create_pod("files");
  start_shell("files", "dd if=/dev/zero of=file bs=1000000 count=30 2>/dev/null; echo written; sleep 1000");
  ASSERT_TRUE(run_until([&] { return log_text("files", "c").contains("written"); }));
  const auto available = [this] { return *observe().node.memory->available_bytes; };
  ASSERT_GT(available(), static_cast<std::uint64_t>(mebibytes(60).count())) << "files are no working set";
  // Memory falls slowly, so that several readings are taken.
  create_pod("hog");
  start_shell("hog",
              "i=0; while [ $i -lt 25 ]; do dd if=/dev/zero bs=4000000 count=1 2>/dev/null | sleep 1000 & "
              "i=$((i+1)); sleep 0.2; done; wait");
  ASSERT_TRUE(run_until([&] {
    woken_by(ReactionThread::Source::kUsageThreshold);
    const std::uint64_t left = available();  // read after the wake-ups, as memory only falls
    if (left > static_cast<std::uint64_t>(mebibytes(64).count())) seen_.clear();  // all of them were too early
    return left < static_cast<std::uint64_t>(mebibytes(55).count());
  }));
  EXPECT_TRUE(woken_by(ReactionThread::Source::kUsageThreshold));
}

TEST_F(PressureWatchTest, ThresholdsThatWereTakenBackAreSilent) {
  watch_->set_thresholds({.node = {mebibytes(100)}, .pods = {mebibytes(100)}});
  watch_->set_thresholds({});
  start_hog();
  ASSERT_TRUE(run_until([&] {
    const api::Summary summary = observe();
    return *summary.node.memory->available_bytes < static_cast<std::uint64_t>(mebibytes(95).count());
  }));
  EXPECT_FALSE(woken_by(ReactionThread::Source::kUsageThreshold));
}

TEST_F(PressureWatchTest, MemoryEventsAreReceivedOnVersionTwo) {
  if (notifies_by_thresholds()) return;
  create_pod("small", api::QosClass::kGuaranteed, mebibytes(24));
  start("small", "c", {"tail", "/dev/zero"});
  EXPECT_TRUE(run_until([&] { return woken_by(ReactionThread::Source::kMemoryEvents); }));
}

TEST(PsiTrigger, IsNoneWhereThereIsNoFile) {
  const PsiTrigger trigger = open_psi_trigger(AT_FDCWD, "/proc/pressure/nothing");
  EXPECT_EQ(trigger.window, PsiWindow::kNone);
  EXPECT_FALSE(trigger.fd);
}

TEST(PsiTrigger, IsAsFineAsOurRightsAllow) {
  const PsiTrigger trigger = open_psi_trigger(AT_FDCWD, "/proc/pressure/memory");
  if (trigger.window == PsiWindow::kNone) GTEST_SKIP() << "this kernel gives us no PSI triggers";
  EXPECT_TRUE(trigger.fd);
  pollfd state{trigger.fd.get(), POLLPRI, 0};
  EXPECT_GE(::poll(&state, 1, 0), 0);
  EXPECT_EQ(state.revents & POLLNVAL, 0);
}

}  // namespace
}  // namespace spillway::host
