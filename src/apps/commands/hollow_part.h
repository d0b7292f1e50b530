// Hollow nodes as a part of a process: moves the clock of the fleet by the real one, and reports its progress. Thread:
// loop.
#pragma once

#include "apps/process/process.h"
#include "apps/view/remote.h"
#include "base/time.h"
#include "runtime/loop.h"
#include "sim/hollow/hollow_fleet.h"
#include "sim/scenario/actions.h"
#include "sim/time/virtual_time.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apps {

struct HollowPartOptions {
  sim::HollowOptions fleet;  // without connect and arrival
  std::vector<sim::TimelineEvent> timeline;
  std::vector<sim::MachineSpec> names;              // the machines as the timeline names them
  Duration timeline_delay{};                        // from the last registration to the beginning of the timeline
  bool delete_nodes = false;                        // at the end
  std::function<void(const Error&)> on_nodes_left;  // called if some objects could not be deleted
};

class HollowPart final : public Part {
 public:
  /// `server`: the way to the API server, which all nodes share.
  HollowPart(Process& process, HollowPartOptions options, Remote server);
  ~HollowPart() override;
  HollowPart(const HollowPart&) = delete;
  HollowPart& operator=(const HollowPart&) = delete;

  void start();
  void stop(runtime::Loop::Task done) override;

 private:
  class SharedTransport;

  void set_clock();
  /// Runs events that are due, for as long as a turn of the loop may take.
  void pace();
  /// Runs the next events, at their time.
  void arm();
  /// Arms the timer for `due`; a timer that is due earlier stays.
  void arm(Instant due);
  void on_registered();
  void begin_timeline();
  void show_progress();
  double seconds_since_start() const;

  Process& process_;
  HollowPartOptions options_;
  Remote server_;
  Instant began_;
  Duration wall_ahead_{};  // last lead of the fleet's wall clock over its monotonic one
  sim::VirtualTime time_;
  std::unique_ptr<sim::HollowFleet> fleet_;

  struct Timer {
    runtime::Loop::TimerId id = 0;
    Instant due;
  };

  std::optional<Timer> timer_;
  bool stopped_ = false;
  std::optional<runtime::Loop::TimerId> progress_timer_;
  std::string shown_;
  std::uint64_t requests_shown_ = 0;
};

}  // namespace spillway::apps
