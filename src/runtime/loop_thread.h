// A loop on a thread of its own, for work that may be slow beside the engines: sockets, TLS, name look-ups.
// Thread: the owner's, except where said.
#pragma once

#include "runtime/loop.h"

#include <memory>
#include <string>
#include <thread>

namespace spillway::runtime {

class LoopThread {
 public:
  /// `name`: at most 15 characters, as ps and debuggers show it.
  explicit LoopThread(const std::string& name);
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  /// Ends the loop after the task at hand and joins the thread. What its objects own may be destroyed afterwards.
  void stop();

  Loop& loop() { return *loop_; }

  /// The loop, for posting: tasks posted after stop() are never run.
  const std::shared_ptr<Loop>& share() const { return loop_; }

 private:
  std::shared_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace spillway::runtime
