// Connections to ports of pods, for forwarding: made on a thread of its own, which enters the pod's network first. Of a
// pod that has no network of its own only what its own processes listen on can be reached, unless it was given the
// machine's network on purpose.
// Thread: loop. Bounds: kWaitingMax connections to be made. Source: spec "Pod lifecycle", 11.6; setns(2).
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/kernel/blocking_thread.h"
#include "runtime/loop.h"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace spillway::host {

/// The place of a port.
struct PortTarget {
  UniqueFd network;              // a namespace, in which all may be reached; empty: the machine's
  bool all_of_machine = false;   // counts without `network`; else only what `processes` listen on
  std::vector<pid_t> processes;  // the processes of `cgroup`
  std::string cgroup;            // the last part of its path
};

class PortConnector {
 public:
  static constexpr std::size_t kWaitingMax = 256;

  /// A socket that does not block; perhaps its connection is not there yet.
  using Answer = std::move_only_function<void(Result<UniqueFd>)>;

  explicit PortConnector(runtime::Loop& loop);

  /// `answer` is called later, never from inside, and not after this object has gone.
  void connect(PortTarget target, std::uint16_t port, Answer answer);

 private:
  runtime::Loop& loop_;
  UniqueFd network_;  // ours
  BlockingThread thread_;
};

}  // namespace spillway::host
