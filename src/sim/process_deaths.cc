#include "sim/process_deaths.h"

namespace spillway::sim {

bool ProcessDeaths::lives_on(const std::function<void()>& on_death) {
  if (!began_ || rates_.before_command == 0 || !rng_.chance_ppm(rates_.before_command)) return true;
  time_.after(Duration::zero(), on_death);
  return false;
}

ProcessDeaths::AgentDeath ProcessDeaths::draw_agent_death() {
  if (!began_) return AgentDeath::kNone;
  if (rates_.with_machine > 0 && rng_.chance_ppm(rates_.with_machine)) return AgentDeath::kWithMachine;
  if (rates_.alone > 0 && rng_.chance_ppm(rates_.alone)) return AgentDeath::kAlone;
  return AgentDeath::kNone;
}

Duration ProcessDeaths::draw_absence() {
  return milliseconds(100 + static_cast<std::int64_t>(rng_.below(8'000)));
}

}  // namespace spillway::sim
