// The controllers of the group batch, with the cache of Jobs that they share. Thread: loop.
#pragma once

#include "base/rng.h"
#include "controllers/shared/shared.h"
#include "telemetry/metrics.h"

#include <memory>

namespace spillway::controllers {

class BatchControllers {
 public:
  struct Enabled {
    bool job = true;
    bool cron_job = true;
    bool ttl_after_finished = true;

    bool any() const { return job || cron_job || ttl_after_finished; }
  };

  /// `shared` without an event recorder: each controller has its own.
  BatchControllers(Enabled enabled, const Shared& shared, const Rng& rng, telemetry::Registry& metrics);
  BatchControllers(const BatchControllers&) = delete;
  BatchControllers& operator=(const BatchControllers&) = delete;
  ~BatchControllers();

  /// Begins to sync. Called once the caches are filled.
  void start(Now now);
  /// Syncs the objects that are due; called at the end of every step.
  void run(Now now);

 private:
  struct Parts;

  std::unique_ptr<Parts> parts_;
};

}  // namespace spillway::controllers
