// The chain of questions a node asks of a pod that wants to start: pressure, sysctls, allocation of devices and CPUs,
// predicates with preemption, AppArmor, features of the node, shutdown. The first no ends it.
// Thread: any (pure but for the allocation, which the caller brings). Source: spec "Pod admission", 2; vectors
// admission/pod_additions.
#pragma once

#include "api/object/pod.h"
#include "policy/admission/answer.h"
#include "policy/admission/predicates.h"
#include "policy/admission/sysctls.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::admission {

/// The state of the node during admission.
struct NodeSituation {
  std::shared_ptr<const api::Node> node;  // null: the node object is not available, which refuses every pod
  std::string_view operating_system = "linux";
  std::vector<std::string_view> conditions;  // pressure conditions that hold: Memory, Disk, PID
  const SysctlAllowlist& sysctls;
  HostNamespaces shared_namespaces;
  bool network_on_request = false;   // a pod that requests its own network namespace gets one
  std::string_view app_armor_error;  // the reason why the host cannot enforce profiles; empty: it can
  bool shutting_down = false;
  bool preempts = true;  // a critical pod may end others to get their room
  PredicateFeatures features;
  // features that this node declares (policy/declared_features.h), sorted
  std::vector<std::string> declared_features = {};
  /// Assigns devices and CPUs to the pod, or refuses it. May be empty: nothing is to be allocated.
  std::function<Answer(const api::Pod&)> allocate;
  /// Devices handed out on the whole node if this pod holds some, else none. May be empty.
  std::function<std::map<std::string, std::int64_t, std::less<>>(const api::Pod&)> devices_in_use;
};

/// `active`: every active pod in namespace/name order; the newcomer may be among them and does not count as another.
Answer admit_pod(const NodeSituation& node, const api::Pod& pod, std::span<const api::Pod* const> active);

}  // namespace spillway::admission
