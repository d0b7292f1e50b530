// Deaths of processes in a simulated cluster: which command a process does not live to execute, and how long it is
// away. Pure but for the timer that ends a process. Thread: loop.
#pragma once

#include "base/rng.h"
#include "base/time.h"
#include "sim/time/virtual_time.h"

#include <cstdint>
#include <functional>

namespace spillway::sim {

class ProcessDeaths {
 public:
  /// Chances in a million: that a process ends before a command, that an agent ends after it has written a line of the
  /// journal that begins an eviction.
  struct Rates {
    std::uint32_t before_command = 0;
    std::uint32_t with_machine = 0;
    std::uint32_t alone = 0;
  };

  enum class AgentDeath : std::uint8_t { kNone, kWithMachine, kAlone };

  ProcessDeaths(VirtualTime& time, const Rng& rng, Rates rates) : time_(time), rng_(rng), rates_(rates) {}

  /// From now until end() processes may die; otherwise no random numbers are drawn.
  void begin() { began_ = true; }

  void end() { began_ = false; }

  /// Decides, before a command is executed, if its process lives on. `on_death` runs once it does not.
  bool lives_on(const std::function<void()>& on_death);
  /// Decides if an agent ends with the line that it has written.
  AgentDeath draw_agent_death();
  Duration draw_absence();

 private:
  VirtualTime& time_;
  Rng rng_;
  Rates rates_;
  bool began_ = false;
};

}  // namespace spillway::sim
