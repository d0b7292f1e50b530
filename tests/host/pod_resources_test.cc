// Goal: clients of the pod-resources API get what the node says, in the messages of the protocol, and no more calls
// than they may make.
#include "host/devices/pod_resources.h"

#include "host/devices/pod_resources.grpc.pb.h"
#include "host/devices/pod_resources_v1alpha1.grpc.pb.h"
#include "support/patience.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr int kAtOnce = 3;

class PodResourcesTest : public ::testing::Test {
 protected:
  PodResourcesTest() {
    std::string pattern = (fs::temp_directory_path() / "spillway-parts-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    auto made = PodResources::create(loop_, folder_ + "/pod-resources",
                                     {.held = [this] { return held_; }, .allocatable = [this] { return all_; }},
                                     {.calls_per_second = 0.0001F, .calls_at_once = kAtOnce}, telemetry::Log());
    EXPECT_TRUE(made) << made.error().text();
    node_ = std::move(*made);
    const auto channel =
        grpc::CreateChannel("unix:" + folder_ + "/pod-resources/kubelet.sock", grpc::InsecureChannelCredentials());
    client_ = v1::PodResourcesLister::NewStub(channel);
    old_client_ = v1alpha1::PodResourcesLister::NewStub(channel);
  }

  ~PodResourcesTest() override { fs::remove_all(folder_); }

  /// The status of one call, which is made on a thread of its own while the loop runs.
  template <typename Call>
  grpc::Status ask(Call call) {
    auto status = std::async(std::launch::async, [&] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() +
                           std::chrono::duration_cast<std::chrono::seconds>(support::kPatience));
      const grpc::Status answered = call(&context);
      loop_.post([this] { loop_.stop(); });
      return answered;
    });
    loop_.run({});
    return status.get();
  }

  std::string folder_;
  runtime::Loop loop_;
  std::vector<agent::PodParts> held_;
  agent::HeldParts all_;
  std::unique_ptr<PodResources> node_;
  std::unique_ptr<v1::PodResourcesLister::Stub> client_;
  std::unique_ptr<v1alpha1::PodResourcesLister::Stub> old_client_;
};

TEST_F(PodResourcesTest, NameWhatContainersHold) {
  held_ = {{.ns = "shop",
            .name = "train",
            .containers = {{"main",
                            {.devices = {{"example.com/gpu", "gpu0", {0, 1}}, {"example.com/gpu", "gpu1", {}}},
                             .cpus = {2, 3},
                             .memory = {{"hugepages-2Mi", 4 << 20, {1}}}}}}}};
  v1::ListPodResourcesResponse list;
  ASSERT_TRUE(ask([&](auto* context) { return client_->List(context, {}, &list); }).ok());
  ASSERT_EQ(list.pod_resources_size(), 1);
  const v1::PodResources& pod = list.pod_resources(0);
  EXPECT_EQ(pod.namespace_() + "/" + pod.name(), "shop/train");
  ASSERT_EQ(pod.containers_size(), 1);
  const v1::ContainerResources& container = pod.containers(0);
  ASSERT_EQ(container.devices_size(), 3) << "a device of two nodes is named for each";
  EXPECT_EQ(container.devices(1).device_ids(0), "gpu0");
  EXPECT_EQ(container.devices(1).topology().nodes(0).id(), 1);
  EXPECT_FALSE(container.devices(2).has_topology());
  EXPECT_EQ(container.cpu_ids(1), 3);
  EXPECT_EQ(container.memory(0).size(), 4U << 20);
  EXPECT_EQ(container.memory(0).topology().nodes(0).id(), 1);
}

TEST_F(PodResourcesTest, OfOldClientsAreDevicesAlone) {
  held_ = {{.ns = "shop",
            .name = "train",
            .containers = {{"main",
                            {.devices = {{"example.com/gpu", "gpu0", {0, 1}}, {"example.com/gpu", "gpu1", {}}},
                             .cpus = {2, 3},
                             .memory = {}}}}}};
  v1alpha1::ListPodResourcesResponse list;
  ASSERT_TRUE(ask([&](auto* context) { return old_client_->List(context, {}, &list); }).ok());
  ASSERT_EQ(list.pod_resources_size(), 1);
  EXPECT_EQ(list.pod_resources(0).namespace_() + "/" + list.pod_resources(0).name(), "shop/train");
  ASSERT_EQ(list.pod_resources(0).containers_size(), 1);
  const v1alpha1::ContainerResources& container = list.pod_resources(0).containers(0);
  ASSERT_EQ(container.devices_size(), 3) << "a device of two nodes is named for each";
  EXPECT_EQ(container.devices(1).resource_name() + " " + container.devices(1).device_ids(0), "example.com/gpu gpu0");
  EXPECT_EQ(container.devices(2).device_ids(0), "gpu1");
}

TEST_F(PodResourcesTest, NameWhatContainersCanHold) {
  all_ = {.devices = {{"example.com/gpu", "gpu0", {}}}, .cpus = {1}, .memory = {}};
  v1::AllocatableResourcesResponse all;
  ASSERT_TRUE(ask([&](auto* context) { return client_->GetAllocatableResources(context, {}, &all); }).ok());
  EXPECT_EQ(all.devices(0).resource_name(), "example.com/gpu");
  EXPECT_EQ(all.cpu_ids(0), 1);
}

TEST_F(PodResourcesTest, OfOnePodAreBehindAGateThatIsOff) {
  v1::GetPodResourcesResponse pod;
  const grpc::Status status = ask([&](auto* context) { return client_->Get(context, {}, &pod); });
  EXPECT_EQ(status.error_message(), "PodResources API Get method disabled");
}

TEST_F(PodResourcesTest, AnswerNoMoreThanTheirPace) {
  const grpc::Status last = ask([&](auto* context) {
    v1::ListPodResourcesResponse list;
    for (int i = 0; i < kAtOnce; ++i) {
      grpc::ClientContext one;
      EXPECT_TRUE(client_->List(&one, {}, &list).ok());
    }
    return client_->List(context, {}, &list);
  });
  EXPECT_EQ(last.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(last.error_message(), "rejected by rate limit");
}

TEST_F(PodResourcesTest, OfANodeThatStopsAreRefused) {
  v1::ListPodResourcesResponse list;
  ASSERT_TRUE(ask([&](auto* context) { return client_->List(context, {}, &list); }).ok());
  auto status = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    return client_->List(&context, {}, &list);  // the loop does not run: the question waits
  });
  node_.reset();
  EXPECT_FALSE(status.get().ok());
}

}  // namespace
}  // namespace spillway::host
