// Pods that earlier processes of this node left on the machine, until a worker takes them over. Those that no source of
// pods knows are orphans, and are ended.
// Thread: loop. Bounds: the pods found at the start; none is added later. Source: spec "Pod lifecycle", 10.1, 10.2.
#pragma once

#include "agent/contract/context.h"
#include "agent/contract/ports.h"

#include <map>
#include <optional>
#include <string>

namespace spillway::agent {

class FoundPods {
 public:
  explicit FoundPods(AgentContext& context) : context_(context) {}

  void add(const PodsFound& found);

  bool contains(const std::string& uid) const { return pods_.contains(uid); }

  /// The pod leaves the table; nullopt: it was not found, or has been taken.
  std::optional<FoundPod> take(const std::string& uid);
  /// A container of a found pod ended before a worker took the pod over.
  void on_exited(const ContainerExited& event);
  void on_sandbox_lost(const std::string& uid);
  /// Ends and removes all that are left.
  void end_orphans();

 private:
  AgentContext& context_;
  std::map<std::string, FoundPod> pods_;  // by uid
};

}  // namespace spillway::agent
