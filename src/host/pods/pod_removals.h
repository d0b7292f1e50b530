// Removals of pods that are under way, and commands about later pods of the same uids. A static pod whose manifest
// returns has the uid, and so the directory, of the pod that is being removed: from CreatePod on its commands wait
// until the last job on the earlier pod's files has ended, and are executed in their order then. A command that ends
// the later pod does not wait: that pod is never made, and what waited is answered as for an unknown pod. Thread: loop.
// Bounds: the commands of one pod for each removal.
#pragma once

#include "agent/contract/ports.h"
#include "telemetry/log.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>

namespace spillway::host {

class PodRemovals {
 public:
  using Execute = std::function<void(agent::HostCommand command)>;

  /// `execute`: gets the commands that have waited.
  void connect(telemetry::Log log, Execute execute);

  /// The pod is being removed, until job_ended(); a second call has no effect.
  void begin(const std::string& uid);

  /// A job on files of the pod is handed to another thread, and has ended. It may begin before the removal.
  void job_began(const std::string& uid) { ++removals_[uid].jobs; }

  void job_ended(const std::string& uid);

  /// True: the command is kept, and is executed later.
  bool hold_back(agent::HostCommand& command);

  /// True if a later pod of this uid waits.
  bool has_later(const std::string& uid) const;

 private:
  struct Removal {
    std::size_t jobs = 0;
    bool begun = false;
    std::deque<agent::HostCommand> held;  // the first one is CreatePod
  };

  void drop_later(Removal& removal);

  telemetry::Log log_;
  Execute execute_;
  std::map<std::string, Removal> removals_;  // by uid
};

}  // namespace spillway::host
