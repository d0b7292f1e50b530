// Binds claims and volumes to each other, releases volumes whose claims are gone, and reports for every waiting claim
// what it waits for. Each write is guarded by the version it was decided on; the next step is decided once the cache
// shows it. Thread: loop. Bounds: 64 calls under way, one for each claim and volume, 256 syncs in a step; retries back
// off to 60 s. Source: Kubernetes docs, "Persistent Volumes"; policy/storage.
#pragma once

#include "client/event_recorder.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/queue_metrics.h"
#include "controllers/shared/storage_cache.h"
#include "controllers/storage/claim_users.h"
#include "policy/storage/storage_write.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <map>
#include <string>

namespace spillway::controllers {

class VolumeBinder {
 public:
  /// Every reference must outlive the binder.
  struct Parts {
    client::ApiClient& client;
    client::EventRecorder& events;
    const telemetry::Log& log;
    StorageCache& storage;
    ClaimUsers& users;
  };

  VolumeBinder(Parts parts, telemetry::Registry& metrics);
  VolumeBinder(const VolumeBinder&) = delete;
  VolumeBinder& operator=(const VolumeBinder&) = delete;

  /// Begins to sync. Called once the caches are filled.
  void start(Now now);
  /// Syncs the claims and volumes that are due; called at the end of every step.
  void run(Now now);

 private:
  using ClaimPtr = StorageCache::ClaimPtr;
  using ClassPtr = StorageCache::ClassPtr;

  static constexpr int kSyncsMax = 256;  // syncs in one step
  static constexpr std::size_t kCallsMax = 64;

  void on_claim(const ClaimPtr& before, const ClaimPtr& after, Now now);
  void on_volume(const storage::VolumePtr& before, const storage::VolumePtr& after, Now now);
  void on_class(const ClassPtr& before, const ClassPtr& after, Now now);
  void sync_claim(const client::ObjectKey& key, Now now);
  void sync_volume(const std::string& name, Now now);
  void touch_claim(const client::ObjectKey& key, Now now);
  void touch_volume(const std::string& name, Now now);
  void touch_waiting(const std::string& storage_class, Now now);
  /// Records the event about a claim or volume, once until the event changes.
  void record_event(const std::string& work, const api::ObjectReference& about, const storage::StorageEvent& event,
                    Now now);
  void send(const std::string& work, const storage::StorageWrite& write);
  /// Reads a volume's claim that the cache does not show: it may exist all the same.
  void ask_for_claim(const std::string& work, const storage::VolumePtr& volume);
  void on_claim_read(const std::string& work, const api::PersistentVolume& volume, const Result<api::Json>& outcome,
                     Now now);
  void end_call(const std::string& work, const Outcome& outcome, Now now);
  void arm();

  Parts parts_;
  client::WorkQueue queue_;  // "claim/NS/NAME", "volume/NAME"
  QueueMetrics queue_metrics_;
  std::map<std::string, std::string> recorded_;  // by work: of a claim that waits
  client::WakeUp wake_up_;
  std::size_t calls_ = 0;
  bool started_ = false;
};

}  // namespace spillway::controllers
