// The storage of another kubelet's pods, read in rounds on a thread of its own: the container runtime first, then the
// file systems it names, then the pods' logs. Volumes are walked on another thread, a few files at a time. Readers get
// the last figures and never wait. Thread: loop. Bounds: a round at a time, at least kRoundInterval apart,
// CriClient::kRoundTimeout for the runtime, no more than kFileSystemsMax file systems; figures older than kAgeMax are
// dropped. Source: spec "Node agent", 10, 11; agent/companion/foreign_storage.h.
#pragma once

#include "agent/companion/foreign_storage.h"
#include "base/error.h"
#include "host/companion/pod_files.h"
#include "host/cri/cri_client.h"
#include "host/disk/disk_usage.h"
#include "host/kernel/blocking_thread.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

class StorageFeed {
 public:
  static constexpr Duration kRoundInterval = seconds(1);
  static constexpr Duration kAgeMax = seconds(30);
  static constexpr std::size_t kFileSystemsMax = 64;

  struct Options {
    std::string socket;             // the container runtime's
    std::string node_directory;     // the kubelet's directory; nodefs is its file system
    std::string image_socket = {};  // the image service; empty: the socket of the runtime
  };

  /// `on_reading` is called after every round that was answered.
  StorageFeed(runtime::Loop& loop, Options options, telemetry::Log log, std::function<void()> on_reading);
  ~StorageFeed();
  StorageFeed(const StorageFeed&) = delete;
  StorageFeed& operator=(const StorageFeed&) = delete;

  /// Begins a round of measurements unless one is under way or has just ended.
  void refresh(std::vector<PodFolder> pods);

  /// Null: the runtime has not answered, or not for too long.
  const agent::StorageReading* latest(Instant now) const;

  /// Volumes of the pod that were walked, on the node's file system.
  std::vector<api::VolumeStats> volumes(const PodFolder& pod, const std::optional<api::FsStats>& node_fs) const;

  /// The reason for missing figures; empty: no requested figure is missing.
  const std::string& problem() const { return problem_; }

 private:
  void take(Result<agent::StorageReading> reading);

  runtime::Loop& loop_;
  Options options_;
  telemetry::Log log_;
  std::function<void()> on_reading_;
  std::shared_ptr<CriClient> client_;  // the thread may outlive this object
  std::optional<agent::StorageReading> reading_;
  std::optional<Instant> ended_;  // the last round
  std::string problem_ = "not asked yet";
  DiskUsage volumes_;
  BlockingThread thread_;  // last: its results use the other members
};

}  // namespace spillway::host
