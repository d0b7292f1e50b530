// Disk figures of pods in a container runtime: measured by the runtime and here, put into summaries, and read anew when
// space was freed. Thread: loop. Bounds: kDiskReadMax for a new reading. Source: spec "Node agent", 9; Kubernetes docs,
// "Node-pressure Eviction".
#pragma once

#include "agent/companion/foreign_storage.h"
#include "agent/contract/ports.h"
#include "agent/garbage/image_gc.h"
#include "api/object/summary.h"
#include "base/alive.h"
#include "base/error.h"
#include "base/time.h"
#include "host/companion/storage_feed.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_pods.h"
#include "host/observation/observer.h"

#include <cstdint>
#include <functional>
#include <optional>

namespace spillway::host {

class CriStorage {
 public:
  /// All outlive this object.
  CriStorage(const CriHost& host, const CriPods& pods, Observer& observer);

  CriStorage(const CriStorage&) = delete;
  CriStorage& operator=(const CriStorage&) = delete;
  ~CriStorage() = default;

  void observe(const agent::Observe& command);
  Result<api::Summary> observe_now();

  /// The last known state of the file system that holds images; without a capacity: unknown.
  agent::ImageFileSystem image_file_system() const;

  /// Calls `then` once the disks have been read since, and there is more room for images than `floor`, or that takes
  /// too long: a decision by an older reading evicts a pod for nothing. `floor`: containerd frees the layer of a
  /// container some time after it has answered that the container is removed; nullopt: nothing is expected.
  void when_disks_read(Instant since, std::function<void()> then, std::optional<std::int64_t> floor = std::nullopt);

 private:
  const CriHost& host_;
  const CriPods& pods_;
  Observer& observer_;
  StorageFeed feed_;
  Alive alive_;
};

}  // namespace spillway::host
