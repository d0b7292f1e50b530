// The end of containers in a container runtime: seen by their process or in a list, confirmed by the runtime, reported;
// or requested. Thread: loop. Bounds: a deadline on every call. Source: spec "Pod lifecycle", 6;
// agent/contract/ports.h, ContainerExited, StopContainer.
#pragma once

#include "agent/contract/ports.h"
#include "agent/cri/lifecycle_events.h"
#include "api/json/json.h"
#include "base/alive.h"
#include "base/time.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_pods.h"

#include <string>

namespace spillway::host {

class CriPodEnds;
class CriSandboxes;

class CriContainerEnds {
 public:
  /// All outlive this object. `records`: of lists of containers.
  CriContainerEnds(const CriHost& host, CriPods& pods, agent::LifecycleRecords& records, CriSandboxes& sandboxes,
                   CriPodEnds& pod_ends)
      : host_(host), pods_(pods), records_(records), sandboxes_(sandboxes), pod_ends_(pod_ends) {}

  CriContainerEnds(const CriContainerEnds&) = delete;
  CriContainerEnds& operator=(const CriContainerEnds&) = delete;
  ~CriContainerEnds();

  /// Waits for the end of a running container of a known pod.
  void watch(const std::string& uid, const std::string& name);
  void unwatch(CriContainer& container);
  /// Asks the runtime whether a container has ended; nothing if it is not there.
  void inspect(const std::string& uid, const std::string& name);
  /// The same of all containers of a pod.
  void inspect_all(const std::string& uid);

  void stop(const agent::StopContainer& command);
  /// Lets the runtime stop the running containers of a known pod.
  void stop_all(const std::string& uid, Duration grace);
  /// Reports ends that wait for the state of the sandbox.
  void report(CriPod& pod);

 private:
  void inspect_again(const std::string& uid, const std::string& name, Duration wait);
  void on_status(const std::string& uid, const std::string& name, const std::string& id, Duration wait,
                 const Result<api::Json>& answer);
  void on_ended(const std::string& uid, const std::string& name, const api::Json& status);
  agent::ContainerExited exit_of(const CriPod& pod, const std::string& name, const api::Json& status) const;
  void ask_to_stop(const std::string& uid, const std::string& name, const std::string& id, Duration grace);
  void kill_late(const std::string& uid, const std::string& name, const std::string& id);

  const CriHost& host_;
  CriPods& pods_;
  agent::LifecycleRecords& records_;
  CriSandboxes& sandboxes_;
  CriPodEnds& pod_ends_;
  Alive alive_;
};

}  // namespace spillway::host
