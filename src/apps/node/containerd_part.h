// A containerd of this process's own as a part of it: started or taken over before the nodes, started again when it
// ends by itself, ended after the nodes. Thread: loop; what waits has a thread of its own.
#pragma once

#include "apps/process/process.h"
#include "base/alive.h"
#include "base/back_off.h"
#include "host/containerd/daemon.h"
#include "host/containerd/shims.h"
#include "host/kernel/blocking_thread.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace spillway::apps {

class ContainerdPart final : public Part {
 public:
  struct Options {
    host::DaemonPlaces places;
    /// nullopt: none is wanted; one that an earlier process left is ended, with its containers.
    std::optional<host::DaemonSettings> settings;
    bool keeps_pods = false;  // containerd keeps running when this process stops
  };

  /// `ready`: called once, when pods can be started, or when nothing is left of an earlier one. The process fails if it
  /// cannot be started at first.
  ContainerdPart(Process& process, Options options, std::function<void()> ready);
  ~ContainerdPart() override;
  ContainerdPart(const ContainerdPart&) = delete;
  ContainerdPart& operator=(const ContainerdPart&) = delete;

  void stop(runtime::Loop::Task done) override;

 private:
  void start();
  void on_started(Result<host::Daemon> daemon);
  void on_ended();
  void end_left_one();
  void finish();
  void sweep_after(Duration wait);
  void sweep();
  void on_swept(const Result<host::ShimSweep>& swept);

  Process& process_;
  Options options_;
  std::function<void()> ready_;  // called once containerd is ready; empty: it was called
  std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
  Alive alive_;
  std::optional<host::Daemon> daemon_;  // nullopt: containerd is being started, or has ended
  bool starting_ = false;
  BackOff wait_;                     // wait before the next start
  std::vector<host::Shim> doubted_;  // had no container at the last sweep
  runtime::Loop::Task stopped_;      // empty: not being stopped
  host::BlockingThread thread_;
};

}  // namespace spillway::apps
