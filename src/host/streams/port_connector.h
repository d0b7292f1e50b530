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
  UniqueFd network;  // a namespace, in which all may be reached; empty: the machine's
  // without `network`: every port of the machine is allowed, not only those of `processes`
  bool all_of_machine = false;
  std::vector<pid_t> processes;  // the processes of `cgroup`
  std::string cgroup;            // last part of the cgroup's path
};

class PortConnector {
 public:
  static constexpr std::size_t kWaitingMax = 256;

  /// A non-blocking socket, whose connection may not be established yet.
  using Answer = std::move_only_function<void(Result<UniqueFd>)>;

  explicit PortConnector(runtime::Loop& loop);

  /// `answer` is called later, never from inside, and not after this object is destroyed.
  void connect(PortTarget target, std::uint16_t port, Answer answer);

 private:
  runtime::Loop& loop_;
  UniqueFd network_;  // ours
  BlockingThread thread_;
};

}  // namespace spillway::host
