// A program that runs inside a container beside the container's own: from its start to its end. What it reads and
// writes is the caller's.
// Thread: loop. Never waits. Invariant: after a successful start(), on_entry_ended() is called once, and the object
// may be destroyed from then on; destroyed before, it kills the program and all of its process group.
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/kernel/pidfd.h"
#include "host/spawn/entry_child.h"
#include "runtime/loop.h"

#include <memory>

namespace spillway::host {

class ContainerEntry {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;

    /// The program runs; not called if it could not be started.
    virtual void on_entry_running() {}

    /// An error is the reason why the program could not be started.
    virtual void on_entry_ended(Result<ProcessEnd> end) = 0;
  };

  ContainerEntry(runtime::Loop& loop, Owner& owner, EntryPlan plan);
  ~ContainerEntry();
  ContainerEntry(const ContainerEntry&) = delete;
  ContainerEntry& operator=(const ContainerEntry&) = delete;

  /// `streams` are borrowed until it returns. An error: nothing is left of it and no call follows.
  Outcome start(const EntryStreams& streams);

  /// Sends SIGKILL to the program and its process group, once the program exists.
  void kill();

 private:
  void on_status();
  void on_helper_end();
  void on_program_end();
  void hold_program();
  void kill_program();
  void finish();

  runtime::Loop& loop_;
  Owner& owner_;
  EntryPlan plan_;
  EntryReports reports_;
  EntryChild child_;
  UniqueFd program_;
  bool program_ended_ = false;
  bool killed_ = false;
  ProcessEnd end_;
};

}  // namespace spillway::host
