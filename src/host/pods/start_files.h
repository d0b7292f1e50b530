// The files that the start of a container waits for, so that a process that follows a kill gives to no other container
// what this one alone has: its devices, its processors, its memory nodes. Thread: loop.
#pragma once

#include "agent/contract/ports.h"
#include "host/files/checkpoint_files.h"
#include "runtime/loop.h"

#include <functional>
#include <utility>

namespace spillway::host {

class StartFiles {
 public:
  /// Runs the task when the files saved so far are on the disk.
  using WhenSaved = std::function<void(runtime::Loop::Task then)>;

  /// `checkpoints`: has the assignments of processors and memory nodes. It must outlive this object.
  explicit StartFiles(CheckpointFiles& checkpoints) : checkpoints_(checkpoints) {}

  /// The checkpoint of devices, which another class writes.
  void set_devices(WhenSaved devices) { devices_ = std::move(devices); }

  /// Runs `start` when the files of the command are saved: at once if it needs none.
  void when_saved(const agent::StartContainer& command, runtime::Loop::Task start);

 private:
  CheckpointFiles& checkpoints_;
  WhenSaved devices_;
};

}  // namespace spillway::host
