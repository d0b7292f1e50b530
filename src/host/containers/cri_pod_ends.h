// The end of pods whose containers a container runtime runs, from StopPod to the removal of their directories: killed
// through the pod's cgroup when their time is over, whatever the runtime does. The order stands in CriPodEnds::pursue()
// and finish(), and in the steps of CriPodRemoval. Thread: loop; files are removed on threads of their own.
// Bounds: a deadline on every call. Source: spec "Pod lifecycle", 6; agent/contract/ports.h, StopPod, RemovePod.
#pragma once

#include "agent/contract/ports.h"
#include "base/alive.h"
#include "base/back_off.h"
#include "base/time.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_pod_cgroups.h"
#include "host/containers/cri_pods.h"
#include "host/containers/cri_storage.h"
#include "host/containers/log_folders.h"
#include "host/kernel/blocking_thread.h"
#include "host/volumes/volume_thread.h"
#include "runtime/loop.h"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace spillway::host {

class CriContainerEnds;
class CriPodRemoval;

/// The time after the grace for which the runtime is waited for.
inline constexpr Duration kRuntimeSlack = seconds(1);

class CriPodEnds {
 public:
  /// Classes of the runtime that release what a pod has. All outlive this object.
  struct Means {
    CriContainerEnds& container_ends;
    CriPodCgroups& cgroups;
    CriStorage& storage;
    VolumeThread& volumes;
    BlockingThread& files;
    const LogFolders& log_folders;
  };

  /// All outlive this object.
  CriPodEnds(const CriHost& host, CriPods& pods, Means means) : host_(host), pods_(pods), means_(means) {}

  CriPodEnds(const CriPodEnds&) = delete;
  CriPodEnds& operator=(const CriPodEnds&) = delete;
  ~CriPodEnds();

  void stop(const agent::StopPod& command);
  void remove(const agent::RemovePod& command);

  /// Ends and removes all pods. `done`: called once nothing is left of them, or after a bound on the removal of
  /// directories; replaces an earlier one.
  void shut_down(Duration grace, std::function<void()> done);

  /// Continues the end of a pod, if it ends: after a change of its containers or its sandbox.
  void pursue(const std::string& uid);
  /// Stops the sandbox of a known pod, once for each end.
  void stop_sandbox(const std::string& uid);
  /// Reports the end of the shutdown, if it is over.
  void report_shut_down();

 private:
  friend CriPodRemoval;

  struct Ending {
    Instant due;  // time of the kill, whatever the runtime does
    BackOff waits{milliseconds(2), milliseconds(50)};
    runtime::Loop::TimerId timer = 0;
    bool sandbox_stopping = false;
    bool killed = false;
    bool at_once = false;          // nothing was to be waited for
    std::optional<Instant> empty;  // no process was left
  };

  void end(const std::string& uid, Duration grace);
  void kill(const CriPod& pod, Ending& ending);
  void finish(const std::string& uid);
  void free_storage(const std::string& uid);
  void remove_volume_files(const std::string& folder, const std::function<void()>& then);
  void start_removal(const std::string& uid);
  void forget(const std::string& uid);
  void remove_directories(CriPod& pod);

  const CriHost& host_;
  CriPods& pods_;
  Means means_;
  std::map<std::string, Ending> endings_;   // by uid
  std::size_t directories_in_removal_ = 0;  // directories of forgotten pods, until they are removed
  bool waits_for_directories_ = false;
  std::function<void()> on_shut_down_;
  Alive alive_;
};

}  // namespace spillway::host
