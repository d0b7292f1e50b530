// The sandboxes of pods in a container runtime: configured, made when the agent requests one (the steps are those of
// CriSandboxStart), and found lost when the runtime does not show them as ready. Thread: loop. Bounds: a deadline on
// every call. Source: spec "Pod lifecycle", 6; Kubernetes docs, "Container Runtime Interface (CRI)".
#pragma once

#include "agent/contract/ports.h"
#include "agent/cri/sandbox_config.h"
#include "api/json/json.h"
#include "base/alive.h"
#include "base/error.h"
#include "base/time.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_pod_cgroups.h"
#include "host/containers/cri_pods.h"
#include "host/containers/cri_status_feed.h"

#include <functional>
#include <string>
#include <vector>

namespace spillway::host {

class CriContainerEnds;
class CriPodEnds;
class CriSandboxStart;

/// The request about a sandbox that exists.
api::Json sandbox_request(const std::string& id);
/// The pod's addresses in a sandbox status.
std::vector<std::string> sandbox_addresses(const api::Json& status);

class CriSandboxes {
 public:
  /// Classes of the runtime that know its state, or act when a sandbox is lost or late. All outlive this object.
  struct Means {
    const CriStatusFeed& status;
    CriPodCgroups& cgroups;
    CriContainerEnds& container_ends;
    CriPodEnds& pod_ends;
  };

  /// All outlive this object.
  CriSandboxes(const CriHost& host, CriPods& pods, Means means) : host_(host), pods_(pods), means_(means) {}

  CriSandboxes(const CriSandboxes&) = delete;
  CriSandboxes& operator=(const CriSandboxes&) = delete;
  ~CriSandboxes() = default;

  /// Makes a sandbox and reports it, or why there is none.
  void start(const agent::RunSandbox& command);
  /// Systemd has started the slice of a pod, or failed: a sandbox that waits for it is made, or refused.
  void on_slice(const std::string& uid);

  /// Writes the configuration of the pod's sandbox from its definition.
  Result<std::vector<agent::DnsWarning>> configure(CriPod& pod) const;
  /// Takes the definition that comes with a container.
  Outcome follow(CriPod& pod, const agent::StartContainer& command) const;

  /// Asks the runtime about sandboxes that a list does not show as ready. `listed`: when the list began.
  void doubt(const api::Json& sandboxes, Instant listed);
  /// Asks about the sandbox of a pod before something is reported that its loss would explain; then calls `then`.
  void check(const CriPod& pod, std::move_only_function<void()> then);

 private:
  friend CriSandboxStart;

  void on_checked(const std::string& uid, const std::string& id, const Result<api::Json>& status,
                  std::move_only_function<void()> then);
  void on_status(const std::string& uid, const std::string& id, const Result<api::Json>& status);
  void lose(CriPod& pod);

  const CriHost& host_;
  CriPods& pods_;
  Means means_;
  Alive alive_;
};

}  // namespace spillway::host
