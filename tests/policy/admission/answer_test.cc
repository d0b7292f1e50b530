// The outcome of a refused pod: its status, and the label it is counted under.
#include "policy/admission/answer.h"

#include <gtest/gtest.h>

namespace spillway::admission {
namespace {

TEST(RefusedStatus, KeepsNothingButTheRefusal) {
  api::Pod pod;
  pod.status.phase = "Running";
  pod.status.pod_ip = "10.0.0.1";
  const api::PodStatus status = refused_status(pod, {"OutOfcpu", "no 100% luck"});
  EXPECT_EQ(status.phase, "Failed");
  EXPECT_EQ(status.reason, "OutOfcpu");
  EXPECT_EQ(status.message, "Pod was rejected: no 100% luck");
  EXPECT_EQ(status.qos_class, "BestEffort");
  EXPECT_TRUE(status.pod_ip.empty());
}

TEST(RejectionLabel, KnowsItsListAndNothingElse) {
  EXPECT_EQ(rejection_label("OutOfmemory"), "OutOfmemory");
  EXPECT_EQ(rejection_label("OutOfephemeral-storage"), "OutOfephemeral-storage");
  EXPECT_EQ(rejection_label("OutOfnvidia.com/gpu"), "OutOfExtendedResources");
  EXPECT_EQ(rejection_label("TaintToleration"), "Other");
  EXPECT_EQ(rejection_label("NodeAffinity"), "Other");
  EXPECT_EQ(rejection_label("SysctlForbidden"), "SysctlForbidden");
}

TEST(MarkEnded, NamesTheDisruptionOnce) {
  api::PodStatus status;
  status.qos_class = "Guaranteed";
  mark_ended(status, preempted());
  mark_ended(status, preempted());
  EXPECT_EQ(status.qos_class, "Guaranteed");
  EXPECT_EQ(status.reason, "Preempting");
  ASSERT_EQ(status.conditions.size(), 1U);
  EXPECT_EQ(status.conditions[0].type, "DisruptionTarget");
  EXPECT_EQ(status.conditions[0].reason, "TerminationByKubelet");
}

}  // namespace
}  // namespace spillway::admission
