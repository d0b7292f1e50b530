// Makes pods of the process runtime: directory, ids and namespaces, volumes, cgroup with its limits, and the record for
// the next process. Changes their resources. Thread: loop. Waits only for what PodIsolator waits for.
#pragma once

#include "agent/contract/ports.h"
#include "base/error.h"
#include "host/process/pod_isolator.h"
#include "host/process/process_options.h"
#include "host/process/process_pods.h"

#include <utility>

namespace spillway::host {

class PodMaker {
 public:
  /// Both outlive this object.
  PodMaker(const ProcessHost& host, ProcessPods& pods) : host_(host), pods_(pods) {}

  PodMaker(const PodMaker&) = delete;
  PodMaker& operator=(const PodMaker&) = delete;
  ~PodMaker() = default;

  /// From now on pods may be confined.
  void confine_by(PodIsolator isolator) { isolator_ = std::move(isolator); }

  /// Adds a pod to the table. A pod that cannot be made is there all the same, with its error.
  void create(agent::CreatePod command);
  /// Makes a pod again that an earlier process made, and of which no namespace is left. The error of a broken pod.
  Outcome ensure_made(ProcessPod& pod);
  /// Makes the volumes of a confined pod whose directory and ids exist.
  void make_volumes(ProcessPod& pod) const;
  /// Changes the resources of a pod that runs.
  Outcome resize(const agent::ResizePod& command);

  /// The ids of a pod that an earlier process made, if it has any.
  void keep_ids(const ProcessPod& pod);
  /// The ids of a pod that is removed, if it has any.
  void release_ids(const ProcessPod& pod);

 private:
  Outcome make(ProcessPod& pod);
  Outcome make_cgroup(ProcessPod& pod) const;
  Outcome record(const ProcessPod& pod) const;

  const ProcessHost& host_;
  ProcessPods& pods_;
  PodIsolator isolator_;
};

}  // namespace spillway::host
