#include "policy/lifecycle/finished_record.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>

namespace spillway::lifecycle {
namespace {

class FinishedRecords : public ::testing::Test {
 protected:
  api::Pod& add(const std::string& name, const std::string& owner, std::string_view reason) {
    api::Pod& pod = pods_.emplace_back();
    pod.metadata.ns = "shop";
    pod.metadata.name = name;
    pod.metadata.uid = name + "-uid";
    pod.metadata.creation_timestamp = WallTime(seconds(static_cast<std::int64_t>(pods_.size())));
    if (!owner.empty()) pod.metadata.owner_references = {{"apps/v1", "ReplicaSet", owner, owner + "-uid", true, true}};
    pod.spec.node_name = "n1";
    pod.status.phase = "Failed";
    pod.status.reason = reason;
    return pod;
  }

  std::vector<FinishedRecord> records() const {
    std::vector<const api::Pod*> all;
    for (const api::Pod& pod : pods_) all.push_back(&pod);
    return records_of(all);
  }

 private:
  std::deque<api::Pod> pods_;
};

TEST_F(FinishedRecords, SayHowManyWhyAndWhoseTheyWere) {
  add("web-a", "web", "Evicted");
  add("lonely", "", "");
  api::Pod& killed = add("web-b", "web", "");
  killed.status.container_statuses.resize(2);
  killed.status.container_statuses[0].state.terminated = {.exit_code = 137, .reason = "OOMKilled"};
  killed.status.container_statuses[1].state.terminated = {.exit_code = 0, .reason = "Completed"};
  add("web-c", "web", "Evicted").status.message = "The node was low on resource: memory.";
  const auto all = records();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].about, (api::ObjectReference{.kind = "Pod",
                                                .api_version = "v1",
                                                .ns = "shop",
                                                .name = "lonely",
                                                .uid = "lonely-uid",
                                                .resource_version = {},
                                                .field_path = {}}));
  EXPECT_EQ(all[0].text, "1 finished pod was collected: 1 Failed. The last was lonely on node n1");
  EXPECT_EQ(all[1].about, (api::ObjectReference{.kind = "ReplicaSet",
                                                .api_version = "apps/v1",
                                                .ns = "shop",
                                                .name = "web",
                                                .uid = "web-uid",
                                                .resource_version = {},
                                                .field_path = {}}));
  EXPECT_EQ(
      all[1].text,
      "3 finished pods were collected: 2 Evicted, 1 OOMKilled. The last was web-c on node n1: The node was low on "
      "resource: memory.");
}

TEST_F(FinishedRecords, AreBoundedWhateverANodeReports) {
  for (int pod = 0; pod < 9; ++pod)
    add(fmt::format("p{}", pod), "web", fmt::format("{}{}", pod, std::string(5000, 'x')));
  add("last", "web", "Evicted").status.message = std::string(5000, 'y');
  const auto all = records();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_NE(all[0].text.find(", 5 others. The last was last"), std::string::npos) << all[0].text;
  EXPECT_LT(all[0].text.size(), 1000U);
}

}  // namespace
}  // namespace spillway::lifecycle
