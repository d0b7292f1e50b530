// The attachments of pods to the node's network: the sandbox of a pod that is a process group is its network namespace.
// Thread: loop. Never waits. Source: agent/contract/ports.h, RunSandbox; docs "Network Plugins".
#pragma once

#include "agent/contract/ports.h"
#include "base/alive.h"
#include "host/network/pod_networks.h"
#include "host/process/process_options.h"
#include "host/process/process_pods.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace spillway::host {

class PodMaker;

class PodAttachments {
 public:
  /// All outlive this object. `on_detached`: called when nothing is left of the attachment of a known pod.
  PodAttachments(const ProcessHost& host, ProcessPods& pods, PodMaker& maker,
                 std::function<void(const std::string& uid)> on_detached)
      : host_(host), pods_(pods), maker_(maker), on_detached_(std::move(on_detached)) {}

  PodAttachments(const PodAttachments&) = delete;
  PodAttachments& operator=(const PodAttachments&) = delete;
  ~PodAttachments() = default;

  /// From now on pods are attached to this network.
  void use(std::unique_ptr<PodNetworks> networks) { networks_ = std::move(networks); }

  /// Attaches the pod and reports its addresses, or why there are none.
  void run_sandbox(const agent::RunSandbox& command);
  /// Ends the attachment of a pod that runs no container any more. Nothing on the way to PodStopped waits for it.
  void detach(ProcessPod& pod);

  /// Takes over the attachment of a pod of an earlier process, or reports that the pod has no sandbox.
  void keep(ProcessPod& pod, agent::FoundPod& found);
  /// Ends the attachments of an earlier process that were not kept.
  void remove_leftovers();

  /// The process ends: after the first failure the rest is left to the next start.
  void end();

 private:
  void attach(ProcessPod& pod);
  void on_attached(const std::string& uid, Result<std::vector<std::string>> ips);
  void report_failure(const std::string& uid, const std::string& why);

  const ProcessHost& host_;
  ProcessPods& pods_;
  PodMaker& maker_;
  std::function<void(const std::string& uid)> on_detached_;
  std::unique_ptr<PodNetworks> networks_;  // null: there is no network for pods
  Alive alive_;
};

}  // namespace spillway::host
