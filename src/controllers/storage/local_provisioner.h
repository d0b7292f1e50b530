// Makes volumes for claims of the class local-path on the nodes of this process, and removes those that are released:
// the directory first, then its object, so that a process that ends in between leaves no directory without an object.
// The class itself is created once at the start, if there is none of its name. Thread: loop.
// Bounds: 16 volumes being made or removed, one task for each claim and volume; retries back off to 60 s.
// Source: Kubernetes docs, "Persistent Volumes", Dynamic; the events of upstream's library for external provisioners.
#pragma once

#include "client/engine.h"
#include "client/event_recorder.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/storage_cache.h"
#include "controllers/storage/local_directories.h"
#include "policy/storage/local_path.h"
#include "telemetry/log.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

class LocalProvisioner final : public client::ApiEngine {
 public:
  /// `directories` must outlive the provisioner.
  LocalProvisioner(storage::LocalFolders folders, LocalDirectories& directories, Rng rng, telemetry::Log log);

  std::string_view name() const override { return "local-path-provisioner"; }

  void start(Now now) override;
  void on_api_event(const client::ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

 private:
  using ClaimPtr = StorageCache::ClaimPtr;

  /// State of one volume: read the class, make the directory, create the volume.
  struct Making {
    ClaimPtr claim;
    std::string node;
    api::Json storage_class;  // null until the class was read
    bool has_directory = false;
  };

  void create_class();
  void on_class_created(const Result<api::Json>& made, Now now);
  void touch(std::string_view kind, const std::string& key, Now now);
  void run(Now now);
  void sync_claim(const std::string& work, const client::ObjectKey& key, Now now);
  /// The next step of a volume that is being made.
  void advance(const std::string& work);
  void on_class_read(const std::string& work, const Result<api::Json>& read, Now now);
  void on_directory_made(const std::string& work, const Outcome& made, Now now);
  void on_volume_created(const std::string& work, const Result<api::Json>& made, Now now);
  /// The end of a volume's making, with an event.
  void finish(const std::string& work, const Outcome& outcome, Now now);
  void sync_volume(const std::string& work, const std::string& name, Now now);
  void on_directory_removed(const std::string& work, const storage::VolumePtr& volume, const Outcome& removed, Now now);
  void on_volume_deleted(const std::string& work, const Result<api::Json>& gone, Now now);
  void report(const std::string& work, const Making& making, const Outcome& outcome, Now now);
  void end(const std::string& work, const Outcome& outcome, Now now);

  storage::LocalFolders folders_;
  LocalDirectories& directories_;
  telemetry::Log log_;
  client::ApiClient client_;
  StorageCache storage_;
  client::EventRecorder events_;
  client::WorkQueue queue_;  // "claim/NS/NAME", "volume/NAME"
  client::WakeUp wake_up_;
  std::map<std::string, Making> makings_;       // by work
  std::map<std::string, std::string> refused_;  // by work: the reason that was reported last
  std::size_t tasks_ = 0;
  bool synced_ = false;
};

}  // namespace spillway::controllers
