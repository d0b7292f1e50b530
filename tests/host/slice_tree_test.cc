// A node whose cgroups are systemd's slices: their names, the lock of the tree, and what is no pod.
#include "host/cgroup/node_slice.h"
#include "support/fake_cgroup.h"

#include <gtest/gtest.h>

namespace spillway::host {
namespace {

using api::QosClass;
using support::FakeCgroup;

class SliceTree : public ::testing::TestWithParam<CgroupVersion> {
 protected:
  /// Opens the tree with the cgroups that systemd has made.
  Result<NodeSlice> open(const cgroups::CgroupName& kubepods = {"kubepods"}) {
    for (std::size_t steps = 1; steps <= kubepods.size(); ++steps)
      add({kubepods.begin(), kubepods.begin() + static_cast<std::ptrdiff_t>(steps)});
    for (const QosClass qos : {QosClass::kBurstable, QosClass::kBestEffort}) add(cgroups::class_name(kubepods, qos));
    return NodeSlice::open_slices(fake_.root(), "n", kubepods, {});
  }

  void add(const cgroups::CgroupName& name) { fake_.add(cgroups::systemd_path(name).value().substr(1)); }

  FakeCgroup fake_{GetParam()};
};

TEST_P(SliceTree, IsAtTheRootOfTheHierarchy) {
  const auto slice = open();
  ASSERT_TRUE(slice) << slice.error().text();
  EXPECT_EQ(slice->kubepods().path(), "/kubepods.slice");
  EXPECT_EQ(slice->parent_of(QosClass::kGuaranteed).path(), "/kubepods.slice");
  EXPECT_EQ(slice->parent_of(QosClass::kBurstable).path(), "/kubepods.slice/kubepods-burstable.slice");
  EXPECT_EQ(slice->parent_of(QosClass::kBestEffort).path(), "/kubepods.slice/kubepods-besteffort.slice");
  EXPECT_TRUE(slice->is_host());
  EXPECT_EQ(slice->options().leftovers, Leftovers::kKeep);
}

TEST_P(SliceTree, PodsAreSlices) {
  const auto slice = open({"edge", "kubepods"});
  ASSERT_TRUE(slice) << slice.error().text();
  EXPECT_EQ(slice->pod_unit(QosClass::kBurstable, "a-b").value(),
            (cgroups::SliceUnit{"edge-kubepods-burstable-poda_b.slice", "edge-kubepods-burstable.slice"}));
  const std::string child = slice->pod_child(QosClass::kGuaranteed, "a-b").value();
  EXPECT_EQ(child, "edge-kubepods-poda_b.slice");
  EXPECT_EQ(slice->uid_of_child(QosClass::kGuaranteed, child), "a-b");
  EXPECT_EQ(slice->uid_of_child(QosClass::kGuaranteed, "edge-kubepods-burstable.slice"), std::nullopt);
  EXPECT_FALSE(slice->pod_child(QosClass::kGuaranteed, "../../system.slice"));
}

TEST_P(SliceTree, TwoProcessesCannotHaveIt) {
  auto first = open();
  ASSERT_TRUE(first) << first.error().text();
  const auto second = open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
}

TEST_P(SliceTree, IsNotRemovedWithTheNode) {
  auto slice = open();
  ASSERT_TRUE(slice) << slice.error().text();
  EXPECT_TRUE(slice->remove());
  EXPECT_TRUE(fake_.root().open_child("kubepods.slice")) << "systemd's slices are not this program's to remove";
}

INSTANTIATE_TEST_SUITE_P(BothVersions, SliceTree, ::testing::Values(CgroupVersion::kV1, CgroupVersion::kV2));

}  // namespace
}  // namespace spillway::host
