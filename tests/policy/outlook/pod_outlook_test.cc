// The outlook of a pod whose containers do not do their work.
#include "policy/outlook/pod_outlook.h"

#include "policy/outlook/outlook_facts.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace spillway::outlook {
namespace {

const WallTime kNow = at("2026-11-26T12:00:00Z");

class PodOutlooks : public ::testing::Test {
 protected:
  PodOutlooks() {
    pod.metadata.ns = "shop";
    pod.metadata.name = "web";
    pod.status.phase = "Running";
    api::Container container;
    container.name = "main";
    container.resources.limits = {{"memory", api::Quantity::of_bytes(mebibytes(64))}};
    pod.spec.containers = {container};
    pod.status.container_statuses = {{.name = "main", .state = {}, .last_state = {}, .image = "web:1"}};
  }

  api::ContainerStatus& main() { return pod.status.container_statuses.front(); }

  void wait(std::string reason) { main().state.waiting = {.reason = std::move(reason), .message = {}}; }

  static api::ContainerStateTerminated end(std::int32_t code, std::string reason) {
    api::ContainerStateTerminated ended;
    ended.exit_code = code;
    ended.reason = std::move(reason);
    return ended;
  }

  /// The code of the answer; nullopt: nothing is wrong.
  std::optional<Code> answer() const {
    const auto outlook = explain_containers(pod, kNow);
    return outlook ? std::optional(outlook->remarks.front().code) : std::nullopt;
  }

  api::Pod pod;
};

TEST_F(PodOutlooks, SaysNothingOfContainersThatDoTheirWork) {
  EXPECT_EQ(answer(), std::nullopt) << "nothing is known of it yet";
  main().state.running.emplace();
  main().ready = true;
  EXPECT_EQ(answer(), std::nullopt);
  main().last_state.terminated = end(1, "Error");
  main().restart_count = 1;
  EXPECT_EQ(answer(), std::nullopt) << "it is over";
  wait("ContainerCreating");
  main().state.running.reset();
  main().last_state.terminated.reset();
  EXPECT_EQ(answer(), std::nullopt);
  main().state = {};
  main().state.terminated = end(0, "Completed");
  EXPECT_EQ(answer(), std::nullopt);
}

TEST_F(PodOutlooks, OmitsWhatTheNodeEnded) {
  main().state.terminated = end(137, "Error");
  EXPECT_EQ(answer(), Code::kPodContainerFailed);
  pod.status.phase = "Failed";
  pod.status.reason = "Evicted";
  EXPECT_EQ(answer(), std::nullopt);
}

TEST_F(PodOutlooks, SeparatesImagesFromStarts) {
  for (const char* reason : {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}) {
    wait(reason);
    EXPECT_EQ(answer(), Code::kPodNoImage) << reason;
  }
  for (const char* reason : {"CreateContainerError", "CreateContainerConfigError", "RunContainerError"}) {
    wait(reason);
    EXPECT_EQ(answer(), Code::kPodNoStart) << reason;
  }
}

TEST_F(PodOutlooks, NamesThePodThatHasItsPort) {
  pod.metadata.uid = "web-uid";
  pod.spec.node_name = "n1";
  pod.spec.containers.front().ports = {{.name = {}, .container_port = 8080, .protocol = "TCP"}};
  pod.status.pod_ip = pod.status.host_ip = "192.0.2.1";
  api::Pod other = pod;
  other.metadata.name = "first";
  other.metadata.uid = "first-uid";
  other.status.container_statuses.front().ready = true;
  wait("CrashLoopBackOff");
  main().last_state.terminated = end(1, "Error");
  const auto remark = [&] {
    const std::vector<api::Pod> neighbours{pod, other};
    const auto outlook = explain_containers(pod, kNow, neighbours);
    return outlook && find_remark(*outlook, Code::kPodPortTaken) != nullptr
               ? fact_of(*outlook, Code::kPodPortTaken, "pod")
               : std::string("none");
  };
  EXPECT_EQ(remark(), "shop/first");
  other.status.container_statuses.front().ready = false;
  EXPECT_EQ(remark(), "none") << "it does not run either";
  other.status.container_statuses.front().ready = true;
  other.status.pod_ip = "10.244.0.2";
  EXPECT_EQ(remark(), "none") << "it has a network of its own";
  other.status.pod_ip = pod.status.pod_ip;
  other.spec.containers.front().ports.front().container_port = 8081;
  EXPECT_EQ(remark(), "none");
}

TEST_F(PodOutlooks, SaysHowItEndedTheLastTime) {
  wait("CrashLoopBackOff");
  EXPECT_EQ(answer(), std::nullopt) << "how it ended is not known";
  main().last_state.terminated = end(3, "Error");
  main().restart_count = 4;
  const auto outlook = explain_containers(pod, kNow);
  ASSERT_TRUE(outlook);
  EXPECT_EQ(outlook->verdict, policy::Verdict::kWaits);
  EXPECT_EQ(outlook->remarks.front().code, Code::kPodCrashes);
  EXPECT_EQ(fact_of(*outlook, Code::kPodCrashes, "exit_code"), "3");
  EXPECT_EQ(fact_of(*outlook, Code::kPodCrashes, "restarts"), "4");
  ASSERT_EQ(outlook->parts.size(), 1U);
  EXPECT_EQ(outlook->parts.front().rows.front().state, "waiting: CrashLoopBackOff");
  main().last_state.terminated = end(0, "Completed");
  EXPECT_EQ(answer(), Code::kPodCrashes) << "one that ends well again and again as well";
}

TEST_F(PodOutlooks, SaysThatTheKernelEndedIt) {
  wait("CrashLoopBackOff");
  main().last_state.terminated = end(137, "OOMKilled");
  EXPECT_EQ(answer(), Code::kPodOutOfMemory);
  EXPECT_EQ(fact_of(*explain_containers(pod, kNow), Code::kPodOutOfMemory, "limit_bytes"), "67108864");
  main().state = {};
  main().state.running.emplace();
  EXPECT_EQ(answer(), Code::kPodOutOfMemory) << "it runs again, and is not ready";
  main().ready = true;
  EXPECT_EQ(answer(), std::nullopt);
}

TEST_F(PodOutlooks, StaysFailedAsThePodDoes) {
  main().state.terminated = end(2, "Error");
  pod.status.phase = "Failed";
  EXPECT_EQ(explain_containers(pod, kNow)->verdict, policy::Verdict::kRefuses);
}

TEST_F(PodOutlooks, PutsInitContainersFirstAndBoundsTheRows) {
  wait("ImagePullBackOff");
  for (int i = 0; i < 12; ++i) {
    pod.status.init_container_statuses.push_back({.name = "init-" + std::to_string(i), .state = {}, .last_state = {}});
  }
  pod.status.init_container_statuses.front().state.waiting = {.reason = "RunContainerError", .message = "no such file"};
  const auto outlook = explain_containers(pod, kNow);
  ASSERT_TRUE(outlook);
  EXPECT_EQ(outlook->remarks.size(), 2U);
  EXPECT_EQ(outlook->remarks.front().code, Code::kPodNoStart);
  EXPECT_EQ(outlook->parts.front().rows.size(), kRowsMax);
  EXPECT_EQ(outlook->parts.front().total, 13);
}

TEST_F(PodOutlooks, AVolumeThatCannotBeMountedIsSaidByTheLastWarning) {
  api::Event event;
  event.reason = "FailedMount";
  event.message = "MountVolume.SetUp failed for volume \"c\" : configmap \"nope\" not found";
  EXPECT_EQ(explain_start(pod, event, kNow), std::nullopt) << "it runs";
  pod.status.phase = "Pending";
  EXPECT_EQ(explain_start(pod, event, kNow), std::nullopt) << "it has no node";
  pod.spec.node_name = "n1";
  const auto outlook = explain_start(pod, event, kNow);
  ASSERT_TRUE(outlook);
  ASSERT_EQ(outlook->remarks.size(), 1U);
  EXPECT_EQ(
      outlook->remarks.front(),
      (Remark{
          Code::kPodNoStart,
          {{"container", std::string("main")}, {"reason", std::string("FailedMount")}, {"message", event.message}}}));
  event.reason = "Unhealthy";
  EXPECT_EQ(explain_start(pod, event, kNow), std::nullopt);
}

}  // namespace
}  // namespace spillway::outlook
