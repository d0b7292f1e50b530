// Passes the events of a machine to an engine that is made after the machine. Thread: loop.
#pragma once

#include "agent/contract/ports.h"

#include <functional>
#include <utility>

namespace spillway::apps {

class HostEvents final : public agent::Host::Receiver {
 public:
  /// Called before the loop runs: until then the machine reports nothing.
  void pass_to(std::function<void(agent::HostEvent)> engine) { engine_ = std::move(engine); }

  void on_host_event(agent::HostEvent event) override { engine_(std::move(event)); }

 private:
  std::function<void(agent::HostEvent)> engine_;
};

}  // namespace spillway::apps
