// The link between one hollow node and the API server: passes calls and watches on, and can be cut, slow or lossy.
// Silence is the node's alone: a watch that was open when the link was cut carries nothing until it is whole again, and
// is then reported as broken, so that the agent resumes it. Thread: one.
#pragma once

#include "base/rng.h"
#include "client/engine.h"
#include "sim/network_faults.h"
#include "sim/time/timer_set.h"
#include "sim/time/virtual_time.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>

namespace spillway::sim {

class HollowLink final : public client::Transport, public client::Transport::Receiver {
 public:
  /// All links of a fleet share one.
  struct Common {
    /// The time at which an event arrives, on this clock, which may be behind; empty: the clock's own.
    std::function<Instant()> arrival;
    std::uint64_t requests = 0;  // calls and watches that were sent
  };

  HollowLink(VirtualTime& time, Common& common, Rng rng, std::unique_ptr<client::Transport> server);
  ~HollowLink() override;

  void execute(client::ApiCommand command, client::Transport::Receiver& receiver) override;
  void disconnect(client::Transport::Receiver& receiver) override;
  void on_api_event(client::ApiEvent event) override;

  void cut(Cut way);
  void heal();

  void set_link(const Link& link) { link_ = link; }

 private:
  bool is_cut(Cut way) const { return cut_ && (*cut_ == Cut::kBoth || *cut_ == way); }

  bool draw_loss() { return link_.lost_ppm > 0 && rng_.chance_ppm(link_.lost_ppm); }

  Duration draw_delay();
  void send(client::ApiCommand command);
  void deliver(client::ApiEvent event);

  VirtualTime& time_;
  TimerSet timers_;
  Common& common_;
  Rng rng_;
  std::unique_ptr<client::Transport> server_;
  client::Transport::Receiver* receiver_ = nullptr;
  std::optional<Cut> cut_;
  Link link_;
  std::set<client::CallId> watches_;  // watches that the agent has open
  Instant last_due_{};                // arrival of a watch's last event: later ones arrive behind it
};

}  // namespace spillway::sim
