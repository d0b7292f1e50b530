// The one gate that every act of the lifecycle controllers passes: checks the brakes, keeps the held acts with their
// reasons, logs the begin and the end of a hold, and counts them.
// Thread: loop. Bounds: one entry per node and pod that is held.
// Metric: spillway_lifecycle_held_acts_total{act,brake}.
#pragma once

#include "policy/lifecycle/brakes.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <map>
#include <optional>
#include <string>

namespace spillway::controllers {

class ActGate {
 public:
  struct Held {
    policy::Reason reason;
    Instant since;
    Instant ask_again;
  };

  ActGate(lifecycle::BrakeConfig config, const telemetry::Log& log, telemetry::Registry& metrics)
      : brakes_(std::move(config)), log_(log), metrics_(metrics) {}

  /// nullopt: the act may be carried out. Else the time to ask again; the caller validates the act anew before.
  /// `subject`: "node/n1", "pod/shop/cart".
  std::optional<Instant> ask(const lifecycle::Act& act, const std::string& subject, Now now);
  /// Holds an act for a reason of the caller's own, which the brakes do not have: recorded in the same way.
  void hold(lifecycle::ActKind act, const std::string& subject, const policy::Reason& reason, Instant ask_again,
            Now now);
  /// Forgets an act that is no longer wanted, or was carried out.
  void release(const std::string& subject);

  /// Logs the holds that begin and end.
  void set_manual_hold(lifecycle::ManualHold hold);

  const Held* find(const std::string& subject) const;

  const std::map<std::string, Held, std::less<>>& held() const { return held_; }

  lifecycle::Brakes& brakes() { return brakes_; }

  const lifecycle::Brakes& brakes() const { return brakes_; }

 private:
  lifecycle::Brakes brakes_;
  const telemetry::Log& log_;
  telemetry::Registry& metrics_;
  std::map<std::string, Held, std::less<>> held_;
};

}  // namespace spillway::controllers
