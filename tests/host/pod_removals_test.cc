// Goal: the files of a pod that is made anew are not deleted with those of the earlier pod of its uid, and every
// command about it is answered. Method: the process runtime on a directory tree in place of cgroups; no container runs.
#include "host/pods/pod_removals.h"

#include "host/process/process_runtime.h"
#include "support/fake_cgroup.h"
#include "support/patience.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::host {
namespace {

class PodRemovalsTest : public ::testing::Test {
 protected:
  PodRemovalsTest() {
    removals_.connect({}, [this](agent::HostCommand command) { execute(std::move(command)); });
  }

  /// As a runtime does.
  void execute(agent::HostCommand command) {
    if (!removals_.hold_back(command)) executed_.push_back(command.index());
  }

  template <typename Command>
  static std::size_t index() {
    return agent::HostCommand(Command()).index();
  }

  PodRemovals removals_;
  std::vector<std::size_t> executed_;
};

TEST_F(PodRemovalsTest, CommandsAboutALaterPodAreExecutedInTheirOrder) {
  removals_.job_began("u1");
  execute(agent::CreatePod{.uid = "u1"});
  EXPECT_EQ(executed_.size(), 1U) << "no removal: the pod is made again";
  removals_.begin("u1");
  removals_.begin("u1");
  execute(agent::StartContainer{.uid = "u1"});
  EXPECT_EQ(executed_.size(), 2U) << "about the earlier pod";
  executed_.clear();
  execute(agent::CreatePod{.uid = "u1"});
  execute(agent::SetUpVolumes{.uid = "u1"});
  execute(agent::StartContainer{.uid = "u1"});
  execute(agent::CreatePod{.uid = "u2"});
  execute(agent::Observe{});
  EXPECT_EQ(executed_, (std::vector{index<agent::CreatePod>(), index<agent::Observe>()})) << "others do not wait";
  EXPECT_TRUE(removals_.has_later("u1"));
  executed_.clear();
  removals_.job_ended("u1");
  EXPECT_TRUE(executed_.empty()) << "one job is left";
  removals_.job_ended("u1");
  EXPECT_EQ(executed_,
            (std::vector{index<agent::CreatePod>(), index<agent::SetUpVolumes>(), index<agent::StartContainer>()}));
  EXPECT_FALSE(removals_.has_later("u1"));
}

TEST_F(PodRemovalsTest, TheEndOfALaterPodDoesNotWait) {
  removals_.begin("u1");
  execute(agent::CreatePod{.uid = "u1"});
  execute(agent::StartContainer{.uid = "u1"});
  execute(agent::StopPod{.uid = "u1"});
  EXPECT_EQ(executed_, (std::vector{index<agent::StartContainer>(), index<agent::StopPod>()}))
      << "the pod is not made, its commands are answered";
  execute(agent::RemovePod{.uid = "u1"});
  executed_.clear();
  execute(agent::CreatePod{.uid = "u1"});
  EXPECT_TRUE(executed_.empty()) << "the pod after that waits in its place";
  removals_.job_ended("u1");
  EXPECT_EQ(executed_, std::vector{index<agent::CreatePod>()});
}

class PodMadeAnew : public ::testing::Test, protected agent::Host::Receiver {
 protected:
  PodMadeAnew()
      : state_(std::filesystem::temp_directory_path() / ("spillway-pod-made-anew-" + std::to_string(::getpid()))) {
    for (const std::string& path : std::vector<std::string>{"kubepods.slice", "kubepods.slice/kubepods-burstable.slice",
                                                            "kubepods.slice/kubepods-besteffort.slice",
                                                            "kubepods.slice/podu1", "kubepods.slice/podu2"})
      cgroups_.add(path);
    auto slice = NodeSlice::open_slices(cgroups_.root(), "n1", {"kubepods"}, {});
    if (!slice) throw std::runtime_error(slice.error().text());
    slice_ = *std::move(slice);
    auto runtime = ProcessRuntime::create(loop_, *slice_, *this, telemetry::Log(), {.state_dir = state_.string()});
    if (!runtime) throw std::runtime_error(runtime.error().text());
    runtime_ = *std::move(runtime);
  }

  ~PodMadeAnew() override {
    runtime_.reset();
    std::filesystem::remove_all(state_);
  }

  void on_host_event(agent::HostEvent event) override {
    if (std::holds_alternative<agent::PodStopped>(event)) ++stopped_;
  }

  void create(const std::string& uid) {
    runtime_->execute(agent::CreatePod{.uid = uid, .pod = {"default", "web"}, .qos = api::QosClass::kGuaranteed});
  }

  std::filesystem::path folder(const std::string& uid) const {
    return state_ / "pods" / ("default_web_" + uid) / "_work";
  }

  /// False: the condition did not hold in time.
  bool run_until(const std::function<bool()>& holds) {
    const Instant end = loop_.now().mono + support::kPatience;
    while (!holds() && loop_.now().mono < end) {
      loop_.at(loop_.now().mono + milliseconds(1), [this] { loop_.stop(); });
      loop_.run({});
    }
    return holds();
  }

  runtime::Loop loop_;
  support::FakeCgroup cgroups_{CgroupVersion::kV2};
  std::filesystem::path state_;
  std::optional<NodeSlice> slice_;
  std::unique_ptr<ProcessRuntime> runtime_;
  int stopped_ = 0;
};

TEST_F(PodMadeAnew, HasADirectoryAfterTheRemovalOfTheEarlierPod) {
  create("u1");
  create("u2");
  ASSERT_TRUE(std::filesystem::create_directory(folder("u1") / "old"));
  runtime_->execute(agent::RemovePod{"u1"});
  create("u1");
  runtime_->execute(agent::RemovePod{"u2"});
  // Directories are removed one after the other: that of the earlier pod before the other one.
  ASSERT_TRUE(run_until([this] { return !std::filesystem::exists(folder("u2").parent_path()); }));
  ASSERT_TRUE(run_until([this] { return runtime_->pods().size() == 1; }));
  EXPECT_TRUE(std::filesystem::exists(folder("u1")));
  EXPECT_FALSE(std::filesystem::exists(folder("u1") / "old"));
}

TEST_F(PodMadeAnew, IsStoppedBeforeItIsMade) {
  create("u1");
  runtime_->execute(agent::RemovePod{"u1"});
  create("u1");
  runtime_->execute(agent::StopPod{.uid = "u1"});
  runtime_->execute(agent::RemovePod{"u1"});
  ASSERT_TRUE(run_until([this] { return !std::filesystem::exists(folder("u1").parent_path()); }));
  EXPECT_EQ(stopped_, 1);
  EXPECT_TRUE(runtime_->pods().empty());
}

}  // namespace
}  // namespace spillway::host
