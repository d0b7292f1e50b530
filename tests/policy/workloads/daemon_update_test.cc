// Which pods of a DaemonSet go first when its template has changed.
#include "policy/workloads/daemon_update.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::workloads {
namespace {

PodPtr pod(const std::string& name, const std::string& generation = {}) {
  api::Pod made;
  made.metadata.name = name;
  if (!generation.empty()) made.metadata.labels[std::string(kTemplateGenerationLabel)] = generation;
  return std::make_shared<const api::Pod>(std::move(made));
}

std::vector<std::string> names(const std::vector<PodPtr>& pods) {
  std::vector<std::string> all;
  for (const PodPtr& each : pods) all.push_back(each->metadata.name);
  return all;
}

using Names = std::vector<std::string>;

TEST(DaemonUpdate, TellsTemplatesApart) {
  api::DaemonSet set;
  EXPECT_TRUE(is_updated(set, *pod("made before templates were counted")));
  EXPECT_TRUE(is_updated(set, *pod("p", "1")));
  EXPECT_FALSE(is_updated(set, *pod("p", "2")));
  set.metadata.annotations[std::string(kTemplateGenerationAnnotation)] = "2";
  EXPECT_TRUE(is_updated(set, *pod("p", "2")));
  EXPECT_FALSE(is_updated(set, *pod("p", "1")));
  EXPECT_FALSE(is_updated(set, *pod("p")));
}

TEST(DaemonUpdate, MaxUnavailableIsANumberOrAShare) {
  EXPECT_EQ(unavailable_max({}, 10), 1);
  EXPECT_EQ(unavailable_max(3, 10), 3);
  EXPECT_EQ(unavailable_max("25%", 10), 3);
  EXPECT_EQ(unavailable_max("0%", 10), 1);
  EXPECT_EQ(unavailable_max(0, 10), 1);
  EXPECT_EQ(unavailable_max("many", 10), 1);
  EXPECT_EQ(unavailable_max("100%", 0), 1);
}

TEST(DaemonUpdate, TakesWhatIsNotAvailableAndAsManyMoreAsThereIsRoomFor) {
  const DaemonPlace old_a{pod("a"), false, true};
  const DaemonPlace old_b{pod("b"), false, true};
  const DaemonPlace broken{pod("c"), false, false};
  const DaemonPlace done{pod("d"), true, true};
  const DaemonPlace starting{pod("e"), true, false};
  const DaemonPlace nothing{};
  EXPECT_EQ(names(pods_to_update({old_a, old_b, done}, 1)), Names({"a"}));
  EXPECT_EQ(names(pods_to_update({old_a, old_b, done}, 5)), Names({"a", "b"}));
  EXPECT_EQ(names(pods_to_update({old_a, starting}, 1)), Names({}));
  EXPECT_EQ(names(pods_to_update({old_a, nothing}, 1)), Names({}));
  EXPECT_EQ(names(pods_to_update({old_a, old_b, nothing, starting}, 3)), Names({"a"}));
  EXPECT_EQ(names(pods_to_update({old_a, broken, nothing}, 1)), Names({"c"}));
  EXPECT_EQ(names(pods_to_update({done, starting}, 1)), Names({}));
}

}  // namespace
}  // namespace spillway::workloads
