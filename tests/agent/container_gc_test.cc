// Goal: once a minute the pods in a container runtime are checked; unneeded remains are removed, after a line in the
// log, and nothing is removed before the list of pods is known. The machine is scripted.
#include "agent/scripted_cluster.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace spillway::agent {
namespace {

class ContainerGarbage : public ::testing::Test {
 protected:
  ContainerGarbage() {
    cluster_.machine.runs_images = true;
    cluster_.put(pod_document({.name = "web"}));
    cluster_.start();
  }

  RemainingContainer container(std::string id, std::int32_t attempt, RuntimeState state, std::string pod = "web",
                               std::string sandbox = "s1") const {
    return {.id = std::move(id),
            .pod_uid = "uid-" + pod,
            .name = "c",
            .attempt = attempt,
            .sandbox = std::move(sandbox),
            .state = state,
            .created = cluster_.now().wall - minutes(10 - attempt)};
  }

  RemainingSandbox sandbox(std::string id, bool ready, std::string pod = "web", minutes age = minutes(10)) const {
    return {.id = std::move(id), .pod_uid = "uid-" + pod, .ready = ready, .created = cluster_.now().wall - age};
  }

  ScriptedCluster cluster_;
};

TEST_F(ContainerGarbage, IsSearchedForOnceAMinute) {
  cluster_.run(minutes(5) + seconds(1));
  EXPECT_EQ(cluster_.host.count<ListRemains>(), 5u);
  EXPECT_EQ(cluster_.host.count<RemoveRemains>(), 0u);
}

TEST_F(ContainerGarbage, DeadContainersAndIdleSandboxesGoAndItIsSaidBefore) {
  cluster_.run(seconds(10));
  cluster_.send(RemainsListed{
      .containers = {container("c3", 3, RuntimeState::kRunning, "web", "s2"),
                     container("c2", 2, RuntimeState::kExited, "web", "s2"), container("c1", 1, RuntimeState::kExited),
                     container("c0", 0, RuntimeState::kUnknown)},
      .sandboxes = {sandbox("s2", true, "web", minutes(2)), sandbox("s1", false)},
      .directories = {"shop_web_uid-web"}});
  cluster_.run(seconds(1));
  const auto* plan = cluster_.host.last<RemoveRemains>();
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->containers, (std::vector<ContainerRemoval>{{"c0", true}, {"c1", false}}));
  EXPECT_EQ(plan->sandboxes, std::vector<std::string>{"s1"}) << "it holds nothing once they are gone";
  EXPECT_TRUE(plan->directories.empty());
  const auto lines = cluster_.logged("garbage of pods is removed");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines.front().contains("c0, c1, s1")) << lines.front();
}

TEST_F(ContainerGarbage, ASandboxThatHoldsTheLastLogsStays) {
  cluster_.run(seconds(10));
  cluster_.send(RemainsListed{.containers = {container("c1", 1, RuntimeState::kRunning, "web", "s2"),
                                             container("c0", 0, RuntimeState::kExited)},
                              .sandboxes = {sandbox("s2", true, "web", minutes(2)), sandbox("s1", false)},
                              .directories = {}});
  cluster_.run(seconds(1));
  EXPECT_EQ(cluster_.host.count<RemoveRemains>(), 0u);
}

TEST_F(ContainerGarbage, OfAPodThatIsGoneEverythingGoes) {
  cluster_.run(seconds(10));
  cluster_.send(RemainsListed{.containers = {container("old", 0, RuntimeState::kExited, "gone", "s9")},
                              .sandboxes = {sandbox("s9", false, "gone")},
                              .directories = {"shop_gone_uid-gone", "shop_web_uid-web", "odd"}});
  cluster_.run(seconds(1));
  const auto* plan = cluster_.host.last<RemoveRemains>();
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->containers, (std::vector<ContainerRemoval>{{"old", false}}));
  EXPECT_EQ(plan->sandboxes, std::vector<std::string>{"s9"});
  EXPECT_EQ(plan->directories, std::vector<std::string>{"shop_gone_uid-gone"});
}

TEST_F(ContainerGarbage, NothingOfAPodGoesBeforeThePodsAreKnown) {
  cluster_.delay_answers([](const api::Request&) { return seconds(30); });
  cluster_.restart();
  cluster_.send(RemainsListed{.containers = {container("old", 0, RuntimeState::kExited, "gone", "s9")},
                              .sandboxes = {sandbox("s9", false, "gone")},
                              .directories = {"shop_gone_uid-gone"}});
  cluster_.run(seconds(1));
  EXPECT_EQ(cluster_.host.count<RemoveRemains>(), 0u);
}

TEST_F(ContainerGarbage, ProcessesAreNotListed) {
  cluster_.machine.runs_images = false;
  cluster_.restart();
  cluster_.host.take_commands();
  cluster_.run(minutes(3));
  EXPECT_EQ(cluster_.host.count<ListRemains>(), 0u);
}

}  // namespace
}  // namespace spillway::agent
