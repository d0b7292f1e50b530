// Programs that are run inside containers for an answer: a code, the beginning of their output, a time-out.
// Thread: loop. Never waits. Bounds: kCommandsMax at once, agent::kCommandOutputMax bytes kept of each.
#pragma once

#include "agent/contract/command_ports.h"
#include "base/error.h"
#include "host/spawn/entry_child.h"
#include "runtime/loop.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace spillway::host {

class ContainerCommands {
 public:
  using Answer = std::function<void(agent::RanInContainer)>;

  static constexpr std::size_t kCommandsMax = 512;

  ContainerCommands(runtime::Loop& loop, Answer answer);
  ~ContainerCommands();
  ContainerCommands(const ContainerCommands&) = delete;
  ContainerCommands& operator=(const ContainerCommands&) = delete;

  /// `entry`: how to get in; an error is the answer.
  void run(const agent::RunInContainer& command, Result<EntryPlan> entry);

 private:
  class Running;

  void forget(std::uint64_t key);

  runtime::Loop& loop_;
  Answer answer_;
  std::map<std::uint64_t, std::unique_ptr<Running>> running_;  // by a number of our own
  std::uint64_t last_key_ = 0;
};

}  // namespace spillway::host
