// Frees disk space of pods in a container runtime when the agent requests it: images that no container uses, containers
// that have ended, replaced sandboxes, logs without a container. The steps of one request are those of
// CriReclaimRequest. Thread: loop; files are removed on a thread of their own. Source: spec "Node agent", 9.
#pragma once

#include "agent/contract/ports.h"
#include "base/alive.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_pods.h"
#include "host/containers/cri_remains.h"
#include "host/containers/cri_storage.h"
#include "host/containers/image_collector.h"
#include "host/disk/dead_containers.h"
#include "host/kernel/blocking_thread.h"

#include <vector>

namespace spillway::host {

class CriReclaimRequest;

class CriReclaim {
 public:
  /// All outlive this object.
  CriReclaim(const CriHost& host, const CriPods& pods, CriStorage& storage, CriRemains& remains,
             ImageCollector& image_collector, BlockingThread& files)
      : host_(host),
        pods_(pods),
        storage_(storage),
        remains_(remains),
        image_collector_(image_collector),
        files_(files) {}

  CriReclaim(const CriReclaim&) = delete;
  CriReclaim& operator=(const CriReclaim&) = delete;
  ~CriReclaim() = default;

  /// Emits Reclaimed once the disks have been read after the removals.
  void start(const agent::ReclaimNode& command);

 private:
  friend CriReclaimRequest;

  std::vector<PodLogs> logs_of_pods() const;

  const CriHost& host_;
  const CriPods& pods_;
  CriStorage& storage_;
  CriRemains& remains_;
  ImageCollector& image_collector_;
  BlockingThread& files_;
  Alive alive_;
};

}  // namespace spillway::host
