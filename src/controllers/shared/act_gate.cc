#include "controllers/shared/act_gate.h"

#include <utility>

namespace spillway::controllers {

std::optional<Instant> ActGate::ask(const lifecycle::Act& act, const std::string& subject, Now now) {
  lifecycle::Brakes::Answer answer = brakes_.ask(act, now);
  if (!answer.held) {
    release(subject);
    return std::nullopt;
  }
  hold(act.kind, subject, *answer.held, answer.ask_again, now);
  return answer.ask_again;
}

void ActGate::hold(lifecycle::ActKind act, const std::string& subject, const policy::Reason& reason, Instant ask_again,
                   Now now) {
  const auto [entry, fresh] = held_.try_emplace(subject, Held{reason, now.mono, ask_again});
  if (fresh || entry->second.reason.code != reason.code) {
    log_.warning("act held",
                 {{"act", lifecycle::to_string(act)}, {"subject", subject}, {"reason", policy::render(reason)}});
    metrics_
        .counter("spillway_lifecycle_held_acts_total", "Acts that a brake held back, counted once per brake",
                 {{"act", lifecycle::to_string(act)}, {"brake", policy::to_string(reason.code)}})
        .add();
  }
  entry->second.reason = reason;
  entry->second.ask_again = ask_again;
}

void ActGate::release(const std::string& subject) {
  if (held_.empty()) return;
  if (const auto it = held_.find(subject); it != held_.end()) held_.erase(it);
}

void ActGate::set_manual_hold(lifecycle::ManualHold hold) {
  const lifecycle::ManualHold& before = brakes_.manual_hold();
  if (hold == before) return;
  if (hold.everything && !before.everything) log_.warning("held by hand", {{"why", *hold.everything}});
  if (!hold.everything && before.everything) log_.warning("resumed by hand");
  for (const auto& [zone, why] : hold.zones) {
    if (!before.zones.contains(zone)) log_.warning("zone held by hand", {{"zone", zone}, {"why", why}});
  }
  for (const auto& [zone, why] : before.zones) {
    if (!hold.zones.contains(zone)) log_.warning("zone resumed by hand", {{"zone", zone}});
  }
  brakes_.set_manual_hold(std::move(hold));
}

const ActGate::Held* ActGate::find(const std::string& subject) const {
  const auto it = held_.find(subject);
  return it == held_.end() ? nullptr : &it->second;
}

}  // namespace spillway::controllers
