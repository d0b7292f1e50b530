// The fit of a node for a DaemonSet: affinity, taints, a name in the template.
#include "policy/workloads/daemon_fit.h"

#include "api/object/taint.h"

#include <gtest/gtest.h>

namespace spillway::workloads {
namespace {

api::Node node(std::string_view effect = {}) {
  api::Node made;
  made.metadata.name = "n";
  made.metadata.labels["disk"] = "fast";
  if (!effect.empty()) made.spec.taints.push_back({.key = "k", .value = "v", .effect = std::string(effect)});
  return made;
}

DaemonFit fit(const api::Pod& pod, const api::Node& on) {
  return daemon_fit(pod, api::required_node_affinity(pod.spec), on);
}

TEST(DaemonFit, TaintsKeepAwayAndDriveOut) {
  const api::Pod pod;
  EXPECT_EQ(fit(pod, node()), (DaemonFit{true, true}));
  EXPECT_EQ(fit(pod, node(api::kPreferNoSchedule)), (DaemonFit{true, true}));
  EXPECT_EQ(fit(pod, node(api::kNoSchedule)), (DaemonFit{false, true}));
  EXPECT_EQ(fit(pod, node(api::kNoExecute)), (DaemonFit{false, false}));
  api::Pod tolerant;
  tolerant.spec.tolerations.push_back({.key = "k", .op = "Exists"});
  EXPECT_EQ(fit(tolerant, node(api::kNoExecute)), (DaemonFit{true, true}));
}

TEST(DaemonFit, TheTemplateMayNameItsNodes) {
  api::Pod pod;
  pod.spec.node_selector["disk"] = "fast";
  EXPECT_EQ(fit(pod, node()), (DaemonFit{true, true}));
  pod.spec.node_selector["disk"] = "slow";
  EXPECT_EQ(fit(pod, node()), (DaemonFit{}));
  api::Pod elsewhere;
  elsewhere.spec.node_name = "m";
  EXPECT_EQ(fit(elsewhere, node()), (DaemonFit{}));
}

}  // namespace
}  // namespace spillway::workloads
