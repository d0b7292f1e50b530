// Children of the parents of pods, as pods of which uid, and roots that are given as slices.
#include "policy/cgroups/cgroup_name.h"

#include <gtest/gtest.h>

namespace spillway::cgroups {
namespace {

TEST(CgroupName, ChildrenThatArePods) {
  const CgroupName all{"kubepods"};
  const CgroupName burstable{"kubepods", "burstable"};
  EXPECT_EQ(uid_of_child(CgroupDriver::kCgroupfs, burstable, "poda-b"), "a-b");
  EXPECT_EQ(uid_of_child(CgroupDriver::kSystemd, burstable, "kubepods-burstable-poda_b.slice"), "a-b");
  EXPECT_EQ(uid_of_child(CgroupDriver::kSystemd, all, "kubepods-poda_b.slice"), "a-b");
}

TEST(CgroupName, ChildrenThatAreNone) {
  const CgroupName all{"kubepods"};
  EXPECT_EQ(uid_of_child(CgroupDriver::kCgroupfs, all, "burstable"), std::nullopt);
  EXPECT_EQ(uid_of_child(CgroupDriver::kCgroupfs, all, "pod"), std::nullopt);
  for (const char* name : {"kubepods-burstable.slice", "kubepods-burstable-poda.slice", "other-poda.slice", "poda",
                           "kubepods-poda.scope", "kubepods-pod.slice", ""}) {
    EXPECT_EQ(uid_of_child(CgroupDriver::kSystemd, all, name), std::nullopt) << name;
  }
}

TEST(CgroupName, ARootMayBeGivenAsTheSliceItIs) {
  EXPECT_EQ(kubepods_name(CgroupDriver::kSystemd, "/edge.slice"), (CgroupName{"edge", "kubepods"}));
  EXPECT_EQ(kubepods_name(CgroupDriver::kSystemd, "/edge.slice/edge-one.slice"),
            (CgroupName{"edge", "one", "kubepods"}));
  EXPECT_EQ(kubepods_name(CgroupDriver::kCgroupfs, "/edge.slice/"), (CgroupName{"edge.slice", "kubepods"}));
}

TEST(CgroupName, AUidThatWouldLeadElsewhereIsRefused) {
  EXPECT_FALSE(pod_name({"kubepods"}, api::QosClass::kGuaranteed, "a/../b"));
  EXPECT_FALSE(pod_name({"kubepods"}, api::QosClass::kGuaranteed, "a_b"));
}

}  // namespace
}  // namespace spillway::cgroups
