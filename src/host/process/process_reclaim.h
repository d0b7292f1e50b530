// Removes files of the process runtime's pods when the disk is full: logs of dead containers, and what pods that were
// ended have written. Thread: loop; files are removed on a thread of their own. Source: spec "Node agent", 9.
#pragma once

#include "agent/contract/ports.h"
#include "base/alive.h"
#include "host/disk/dead_containers.h"
#include "host/kernel/blocking_thread.h"
#include "host/observation/observer.h"
#include "host/process/process_options.h"
#include "host/process/process_pods.h"

#include <vector>

namespace spillway::host {

class ProcessReclaim {
 public:
  /// All outlive this object. `receiver`: gets Reclaimed at once after the reading of the disk that belongs to it.
  ProcessReclaim(const ProcessHost& host, const ProcessPods& pods, agent::Host::Receiver& receiver, Observer& observer,
                 BlockingThread& files)
      : host_(host), pods_(pods), receiver_(receiver), observer_(observer), files_(files) {}

  ProcessReclaim(const ProcessReclaim&) = delete;
  ProcessReclaim& operator=(const ProcessReclaim&) = delete;
  ~ProcessReclaim() = default;

  void run(const agent::ReclaimNode& command);

 private:
  std::vector<PodLogs> logs_of_pods() const;
  void on_removed(agent::Reclaimed done);

  const ProcessHost& host_;
  const ProcessPods& pods_;
  agent::Host::Receiver& receiver_;
  Observer& observer_;
  BlockingThread& files_;
  Alive alive_;
};

}  // namespace spillway::host
