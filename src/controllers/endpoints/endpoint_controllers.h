// The controllers of endpoints, with the caches that only they read. Thread: loop.
#pragma once

#include "base/rng.h"
#include "controllers/shared/shared.h"
#include "telemetry/metrics.h"

#include <memory>

namespace spillway::controllers {

class EndpointControllers {
 public:
  struct Enabled {
    bool endpoints = true;
    bool endpoint_slices = true;
    bool slice_mirroring = true;

    bool any() const { return endpoints || endpoint_slices || slice_mirroring; }
  };

  EndpointControllers(Enabled enabled, const Shared& shared, const Rng& rng, telemetry::Registry& metrics);
  EndpointControllers(const EndpointControllers&) = delete;
  EndpointControllers& operator=(const EndpointControllers&) = delete;
  ~EndpointControllers();

  /// Begins to sync. Called once the caches are filled.
  void start(Now now);
  void run(Now now);

 private:
  struct Parts;

  std::unique_ptr<Parts> parts_;
};

}  // namespace spillway::controllers
