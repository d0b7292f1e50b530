// The cgroups of a kubelet's pods in fake trees of both versions, under both drivers.
#include "host/companion/pod_finder.h"

#include "host/companion/foreign_runtime.h"
#include "support/fake_cgroup.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::host {
namespace {

using agent::CgroupDriver;
using support::FakeCgroup;

const std::string kId(64, 'a');
const std::string kOther(64, 'b');

agent::PodPlace place() {
  return {.uid = "api-uid",
          .pod = {"shop", "cart"},
          .qos = api::QosClass::kBurstable,
          .cgroup_uid = "1-2",
          .containers = {}};
}

class Finder : public ::testing::TestWithParam<CgroupVersion> {
 protected:
  FakeCgroup fake_{GetParam()};

  void add(const std::string& path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      fake_.add(path.substr(1, slash - 1));
    }
    fake_.add(path.substr(1));
  }
};

TEST_P(Finder, FindsContainerdUnderTheSystemdDriver) {
  const std::string pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice";
  add(pod + "/cri-containerd-" + kId + ".scope");
  const CgroupDir root = fake_.root();
  EXPECT_EQ(detect_driver(root, "", CgroupDriver::kCgroupfs).value(), CgroupDriver::kSystemd) << "the tree decides";
  PodFinder finder(root, CgroupDriver::kSystemd, "/");
  const Result<CgroupDir> found = finder.find(place(), {});
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->path(), pod);
  const auto containers = PodFinder::containers(*found, {});
  ASSERT_EQ(containers.size(), 1U);
  EXPECT_EQ(containers[0].id, kId);
  EXPECT_FALSE(containers[0].monitor);
}

TEST_P(Finder, FindsCriOBelowARootOfItsOwn) {
  const std::string pod = "/edge/kubepods/burstable/pod1-2";
  add(pod + "/crio-" + kId);
  add(pod + "/crio-conmon-" + kOther + ".scope");
  add(pod + "/something-else");
  const CgroupDir root = fake_.root();
  EXPECT_EQ(detect_driver(root, "/edge", CgroupDriver::kSystemd).value(), CgroupDriver::kCgroupfs);
  PodFinder finder(root, CgroupDriver::kCgroupfs, "/edge");
  const Result<CgroupDir> found = finder.find(place(), {});
  ASSERT_TRUE(found) << found.error().text();
  const auto containers = PodFinder::containers(*found, {});
  ASSERT_EQ(containers.size(), 2U);
  EXPECT_EQ(containers[0].id, kId);
  EXPECT_TRUE(containers[1].monitor) << "named, so that it is spared";
}

TEST_P(Finder, SaysWhatIsMissing) {
  const CgroupDir root = fake_.root();
  const auto driver = detect_driver(root, "", CgroupDriver::kSystemd);
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(driver.error().text().contains("/kubepods.slice nor /kubepods")) << driver.error().text();
  add("/kubepods/burstable");
  PodFinder finder(root, CgroupDriver::kCgroupfs, "");
  EXPECT_EQ(finder.find(place(), {}).error().code, ErrorCode::kNotFound) << "not started yet";
}

TEST_P(Finder, AnAttachedNodeIsMeasuredAndLeftAlone) {
  add("/edge/kubepods/burstable");
  Result<NodeSlice> slice = NodeSlice::attach(
      fake_.root(), {.node = "n1", .cgroup_root = "/edge", .kubepods = "/edge/kubepods", .memory = gibibytes(1)});
  ASSERT_TRUE(slice) << slice.error().text();
  EXPECT_EQ(slice->measured().path(), "/edge");
  EXPECT_EQ(slice->kubepods().path(), "/edge/kubepods");
  EXPECT_EQ(slice->memory(), gibibytes(1));
  EXPECT_TRUE(slice->remove());
  EXPECT_TRUE(fake_.root().open_path("/edge/kubepods/burstable")) << "nothing of it is ours";
  EXPECT_FALSE(NodeSlice::attach(fake_.root(), {.node = "n1", .cgroup_root = "", .kubepods = "/none", .memory = {}}));
}

INSTANTIATE_TEST_SUITE_P(Versions, Finder, ::testing::Values(CgroupVersion::kV1, CgroupVersion::kV2));

TEST(StartTicks, AreField22WhateverTheProcessIsCalled) {
  EXPECT_EQ(parse_start_ticks("7 (a b) c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0\n"), 4711U);
  EXPECT_FALSE(parse_start_ticks("7 (x) S 1 7"));
  EXPECT_FALSE(parse_start_ticks("nothing"));
}

}  // namespace
}  // namespace spillway::host
