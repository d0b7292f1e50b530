// One API server of a simulated cluster, as its process puts it together: its way to the store, the engine, and, where
// other servers have the same store, the lease of the one that acts. Destroyed at any moment: that is a crash.
// Thread: one.
#pragma once

#include "apiserver/server.h"
#include "base/alive.h"
#include "sim/time/virtual_time.h"
#include "store/server_lease.h"
#include "store/store.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace spillway::sim {

class SimServer {
 public:
  struct Options {
    std::string name;
    std::uint64_t seed = 0;
    /// A store that belongs to this server and ends with it; null: `store` outlives it.
    std::unique_ptr<store::Store> own_store;
    store::Store* store = nullptr;
    /// Called when the server becomes the active one of its store.
    std::function<void()> on_acting = [] {};
  };

  SimServer(VirtualTime& time, telemetry::Registry& metrics, const telemetry::Log& log, Options options);
  ~SimServer();
  SimServer(const SimServer&) = delete;
  SimServer& operator=(const SimServer&) = delete;

  /// `ready`, called once: the server serves, or its store cannot be served.
  void start(std::function<void(const Outcome&)> ready);
  /// Stops serving; answers that the store still owes arrive.
  void stop();

  const std::string& name() const { return options_.name; }

  apiserver::ApiServer& engine() { return *engine_; }

  bool is_acting() const { return lease_ && lease_->is_held(); }

  /// Sets the timer anew after anything that may have moved the next wakeup.
  void arm();

 private:
  void take_part();

  VirtualTime& time_;
  telemetry::Log log_;
  Options options_;
  Alive alive_;
  std::unique_ptr<store::ServerLease> lease_;
  std::unique_ptr<apiserver::ApiServer> engine_;
  std::optional<VirtualTime::EventId> wakeup_;
  bool stopped_ = false;
};

}  // namespace spillway::sim
