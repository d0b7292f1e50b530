#include "sim/properties/object_facts.h"

#include "api/object/taint.h"
#include "policy/lifecycle/condition_taints.h"
#include "policy/lifecycle/node_health.h"

namespace spillway::sim {

bool is_ready(const api::Node& node) {
  return lifecycle::readiness_of(node) == lifecycle::Readiness::kTrue;
}

bool has_silence_taint(const api::Node& node) {
  return lifecycle::has_taint(node.spec.taints, api::kTaintNodeUnreachable, api::kNoExecute) ||
         lifecycle::has_taint(node.spec.taints, api::kTaintNodeNotReady, api::kNoExecute);
}

std::string zone_of(const api::Node& node) {
  const auto label = node.metadata.labels.find("topology.kubernetes.io/zone");
  return label == node.metadata.labels.end() ? std::string() : label->second;
}

}  // namespace spillway::sim
