// Goal: a start of a container or a sandbox, and the removal of a pod, end what they began themselves, and nothing of
// another one: neither of the same container nor of a later pod that has the same uid. Method: the runtime's calls are
// answered by hand.
#include "host/containers/cri_runtime.h"
#include "support/fake_cgroup.h"
#include "support/patience.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

/// Keeps calls until the test answers them.
class CallsByHand final : public RuntimeCalls {
 public:
  struct Call {
    std::string method;
    api::Json request;
    Answer answer;
  };

  explicit CallsByHand(std::deque<Call>& calls) : calls_(calls) {}

  void call(std::string_view method, api::Json request, Duration /*deadline*/, Answer answer) override {
    calls_.push_back({std::string(method), std::move(request), std::move(answer)});
  }

 private:
  std::deque<Call>& calls_;
};

class CriStarts : public ::testing::Test, protected agent::Host::Receiver {
 protected:
  CriStarts() : state_(std::filesystem::temp_directory_path() / ("spillway-cri-starts-" + std::to_string(::getpid()))) {
    for (const std::string& path :
         std::vector<std::string>{"kubepods.slice", "kubepods.slice/kubepods-burstable.slice",
                                  "kubepods.slice/kubepods-besteffort.slice", "kubepods.slice/kubepods-podu1.slice"})
      cgroups_.add(path);
    auto slice = NodeSlice::open_slices(cgroups_.root(), "n1", {"kubepods"}, {});
    if (!slice) throw std::runtime_error(slice.error().text());
    slice_ = *std::move(slice);
    auto runtime = CriRuntime::create(loop_, *slice_, std::make_unique<CallsByHand>(calls_), *this, telemetry::Log(),
                                      {.state_dir = state_.string(), .runtime_name = "containerd"});
    if (!runtime) throw std::runtime_error(runtime.error().text());
    runtime_ = *std::move(runtime);
    pod_->metadata.name = "web";
    pod_->metadata.ns = "default";
    pod_->metadata.uid = "u1";
    pod_->spec.host_network = true;
    pod_->spec.containers.emplace_back();
    pod_->spec.containers.back().name = "c";
    pod_->spec.containers.back().image = "registry.example/app:1";
  }

  ~CriStarts() override {
    runtime_.reset();
    std::filesystem::remove_all(state_);
  }

  void on_host_event(agent::HostEvent event) override { events_.push_back(std::move(event)); }

  void create_pod() {
    runtime_->execute(agent::CreatePod{.uid = "u1",
                                       .pod = {"default", "web"},
                                       .qos = api::QosClass::kGuaranteed,
                                       .host_network = true,
                                       .definition = pod_});
  }

  void start(std::int32_t attempt = 0) {
    runtime_->execute(agent::StartContainer{.uid = "u1", .name = "c", .attempt = attempt, .definition = pod_});
  }

  /// Number of calls of a method that wait for an answer.
  std::size_t waiting(std::string_view method) const {
    return static_cast<std::size_t>(std::ranges::count(calls_, method, &CallsByHand::Call::method));
  }

  /// Answers the oldest call of that method, and runs what follows.
  void answer(std::string_view method, Result<api::Json> with) {
    const auto found = std::ranges::find(calls_, method, &CallsByHand::Call::method);
    ASSERT_NE(found, calls_.end()) << method;
    CallsByHand::Call call = std::move(*found);
    calls_.erase(found);
    call.answer(std::move(with));
    run_turn();
  }

  /// Runs the loop until so many calls of the method wait; fails if that takes too long.
  void run_until_waiting(std::string_view method, std::size_t calls) {
    const Instant end = loop_.now().mono + support::kPatience;
    while (waiting(method) != calls && loop_.now().mono < end) {
      loop_.at(loop_.now().mono + milliseconds(1), [this] { loop_.stop(); });
      loop_.run({});
    }
    ASSERT_EQ(waiting(method), calls) << method;
  }

  void run_turn() {
    loop_.post([this] { loop_.stop(); });
    loop_.run({});
  }

  std::vector<std::string> failures() const {
    std::vector<std::string> messages;
    for (const agent::HostEvent& event : events_)
      if (const auto* failed = std::get_if<agent::ContainerStartFailed>(&event)) messages.push_back(failed->message);
    return messages;
  }

  std::size_t sandboxes_reported() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        events_, [](const agent::HostEvent& event) { return std::holds_alternative<agent::SandboxRan>(event); }));
  }

  static api::Json present_image() { return api::Json::object({{"image", api::Json::object({{"id", "sha256:1"}})}}); }

  runtime::Loop loop_;
  support::FakeCgroup cgroups_{CgroupVersion::kV2};
  std::filesystem::path state_;
  std::optional<NodeSlice> slice_;
  std::deque<CallsByHand::Call> calls_;
  std::deque<agent::HostEvent> events_;
  std::shared_ptr<api::Pod> pod_ = std::make_shared<api::Pod>();
  std::unique_ptr<CriRuntime> runtime_;
};

TEST_F(CriStarts, ARefusedStartLeavesTheNameToTheStartThatHasIt) {
  create_pod();
  start(0);
  ASSERT_EQ(waiting("ImageStatus"), 1U);
  start(1);
  start(2);
  run_turn();
  const std::string refusal = R"(container "c" is being started)";
  EXPECT_EQ(failures(), (std::vector<std::string>{refusal, refusal}));
  EXPECT_EQ(waiting("ImageStatus"), 1U) << "one start goes on";
  answer("ImageStatus", Error{ErrorCode::kInternalError, "no answer", "Unknown"});
  EXPECT_EQ(failures().size(), 3U);
  start(3);
  EXPECT_EQ(waiting("ImageStatus") + failures().size(), 4U) << "the name is free again";
}

TEST_F(CriStarts, AContainerIsNotMadeInALaterPodOfTheSameUid) {
  create_pod();
  start();
  runtime_->execute(agent::RemovePod{"u1"});
  create_pod();
  start();
  run_until_waiting("ImageStatus", 2);
  answer("ImageStatus", present_image());
  EXPECT_EQ(waiting("ImageStatus"), 1U) << "the first start has no pod any more";
  start();
  run_turn();
  EXPECT_EQ(failures(), std::vector<std::string>{R"(container "c" is being started)"})
      << "and has not freed the name that the second has";
  answer("ImageStatus", present_image());
  EXPECT_EQ(waiting("ImageStatus"), 1U) << "the second reads the image's user";
}

TEST_F(CriStarts, AContainerWaitsForTheCheckpointOfDevicesAndStartsInItsOwnPodAlone) {
  std::deque<runtime::Loop::Task> waiting_for_devices;
  runtime_->set_device_files([&](runtime::Loop::Task then) { waiting_for_devices.push_back(std::move(then)); });
  create_pod();
  start();
  run_turn();
  EXPECT_EQ(waiting("ImageStatus"), 0U) << "its devices are not on the disk";
  runtime_->execute(agent::RemovePod{"u1"});
  create_pod();
  runtime_->execute(agent::RunSandbox{.uid = "u1"});
  run_until_waiting("RunPodSandbox", 1);
  start(1);
  ASSERT_EQ(waiting_for_devices.size(), 2U);
  waiting_for_devices.front()();
  EXPECT_EQ(waiting("ImageStatus"), 0U) << "the earlier pod is gone";
  EXPECT_TRUE(failures().empty()) << "and the later one has not failed";
  waiting_for_devices.back()();
  EXPECT_EQ(waiting("ImageStatus"), 1U);
}

TEST_F(CriStarts, ASandboxOfAnEarlierPodIsRemoved) {
  create_pod();
  runtime_->execute(agent::RunSandbox{.uid = "u1"});
  ASSERT_EQ(waiting("RunPodSandbox"), 1U);
  runtime_->execute(agent::RemovePod{"u1"});
  create_pod();
  runtime_->execute(agent::RunSandbox{.uid = "u1"});
  run_until_waiting("RunPodSandbox", 2);
  answer("RunPodSandbox", api::Json::object({{"pod_sandbox_id", "s1"}}));
  ASSERT_EQ(waiting("StopPodSandbox"), 1U) << "the sandbox belongs to no pod";
  answer("StopPodSandbox", api::Json::object());
  EXPECT_EQ(waiting("RemovePodSandbox"), 1U);
  EXPECT_EQ(waiting("PodSandboxStatus"), 0U);
  EXPECT_EQ(sandboxes_reported(), 0U);
  answer("RunPodSandbox", api::Json::object({{"pod_sandbox_id", "s2"}}));
  EXPECT_EQ(waiting("PodSandboxStatus"), 1U) << "the later pod has its own";
}

TEST_F(CriStarts, ALaterPodIsMadeOnceTheEarlierOneIsRemoved) {
  create_pod();
  runtime_->execute(agent::RunSandbox{.uid = "u1"});
  answer("RunPodSandbox", api::Json::object({{"pod_sandbox_id", "s1"}}));
  answer("PodSandboxStatus", api::Json::object());
  runtime_->execute(agent::RemovePod{"u1"});
  create_pod();
  runtime_->execute(agent::RunSandbox{.uid = "u1"});
  run_turn();
  EXPECT_EQ(waiting("RunPodSandbox"), 0U) << "the earlier pod has its sandbox";
  while (waiting("StopPodSandbox") > 0) answer("StopPodSandbox", api::Json::object());
  answer("RemovePodSandbox", api::Json::object());
  run_until_waiting("RunPodSandbox", 1);
  EXPECT_TRUE(std::filesystem::exists(state_ / "pods" / "default_web_u1"));
}

TEST_F(CriStarts, AStopOfAPodThatIsBeingRemovedBeginsNoSecondRemoval) {
  create_pod();
  runtime_->execute(agent::RunSandbox{.uid = "u1"});
  answer("RunPodSandbox", api::Json::object({{"pod_sandbox_id", "s1"}}));
  runtime_->execute(agent::RemovePod{"u1"});
  run_turn();
  while (waiting("StopPodSandbox") > 0) answer("StopPodSandbox", api::Json::object());
  ASSERT_EQ(waiting("RemovePodSandbox"), 1U);
  events_.clear();
  runtime_->execute(agent::StopPod{.uid = "u1"});
  run_turn();
  EXPECT_EQ(events_.size(), 1U) << "no process is left";
  EXPECT_EQ(waiting("StopPodSandbox"), 0U);
  EXPECT_EQ(waiting("RemovePodSandbox"), 1U);
  answer("RemovePodSandbox", api::Json::object());
  EXPECT_TRUE(runtime_->pods().empty());
}

}  // namespace
}  // namespace spillway::host
