// Keeps claims that pods use and volumes that are bound from being deleted: their finalizer is removed when no object
// needs them any more. Before that of a claim is removed, its namespace's pods are read once more: a cache may be
// behind.
// Thread: loop. Bounds: 4 calls under way, one for each claim and volume, 256 syncs in a step; retries back off to 60
// s. Source: Kubernetes docs, "Persistent Volumes", Storage Object in Use Protection.
#pragma once

#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/storage_cache.h"
#include "controllers/storage/claim_users.h"
#include "telemetry/log.h"

#include <string>
#include <string_view>

namespace spillway::controllers {

class VolumeProtection {
 public:
  /// Every reference must outlive this object.
  struct Parts {
    client::ApiClient& client;
    const telemetry::Log& log;
    StorageCache& storage;
    ClaimUsers& users;
  };

  explicit VolumeProtection(Parts parts);
  VolumeProtection(const VolumeProtection&) = delete;
  VolumeProtection& operator=(const VolumeProtection&) = delete;

  void start(Now now);
  void run(Now now);

 private:
  static constexpr int kSyncsMax = 256;  // syncs in one step
  static constexpr std::size_t kCallsMax = 4;

  void touch(std::string_view kind, const std::string& key, Now now);
  void sync_claim(const client::ObjectKey& key);
  void sync_volume(const std::string& name);
  void ask_for_pods(const std::string& work, const StorageCache::ClaimPtr& claim);
  void on_pods_read(const std::string& work, const api::PersistentVolumeClaim& claim, const Result<api::Json>& pods,
                    Now now);
  /// Writes the object with its finalizer, or without it.
  void write(const std::string& work, const std::string& path, const api::ObjectMeta& meta, std::string_view finalizer,
             bool wanted);
  void end_call(const std::string& work, const Outcome& outcome, Now now);
  void finish(const std::string& work);
  void arm();

  Parts parts_;
  client::WorkQueue queue_;  // "claim/NS/NAME", "volume/NAME"
  client::WakeUp wake_up_;
  std::size_t calls_ = 0;
  bool started_ = false;
};

}  // namespace spillway::controllers
