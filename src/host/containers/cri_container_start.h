// The start of one container in a container runtime, from the command to the report. The order of its steps is at the
// top of cri_container_start.cc. The pod may be stopped or removed at every step. Thread: loop. Bounds: a deadline on
// every call. Source: spec "Pod lifecycle", 5; agent/contract/ports.h, StartContainer.
#pragma once

#include "agent/contract/ports.h"
#include "api/json/json.h"
#include "base/time.h"
#include "host/containers/cri_container_ends.h"
#include "host/containers/cri_image_pulls.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_pod_cgroups.h"
#include "host/containers/cri_pods.h"
#include "host/containers/cri_run.h"
#include "host/containers/cri_sandboxes.h"
#include "host/containers/log_folders.h"
#include "host/pods/container_starts.h"
#include "host/pods/pod_identity.h"
#include "host/volumes/volume_thread.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

/// Classes of the runtime that a start uses. All outlive it.
struct ContainerStartMeans {
  const CriHost& host;
  CriPods& pods;
  CriSandboxes& sandboxes;
  CriImagePulls& images;
  VolumeThread& volumes;
  const CriPodCgroups& cgroups;
  CriContainerEnds& ends;
  const LogFolders& log_folders;
  std::string shared_cpus = {};  // for containers that share processors; empty: no policy has set them
};

enum class ContainerStartStep : std::uint8_t {
  kCheck,         // the pod, the names, the definition
  kImage,         // use or pull the image
  kInspectImage,  // read its user
  kMounts,        // place volumes and files
  kCreate,        // the container
  kStart,
  kStatus,  // read when it began
};

class CriContainerStart final : public CriRun<CriContainerStart, ContainerStartStep> {
 public:
  /// The start of a container in the pod that has the uid now.
  CriContainerStart(const ContainerStartMeans& means, agent::StartContainer command);

  const agent::StartContainer& command() const { return command_; }

 private:
  Next run(ContainerStartStep step) override;
  Next check();
  Next ensure_image();
  void on_image(const std::optional<agent::ImageRefusal>& refusal);
  Next inspect_image();
  Next on_image_status(const Result<api::Json>& status);
  Next place_mounts();
  Next on_mounts(Result<std::vector<PlacedMount>> placed);
  Next create();
  Next on_created(const Result<api::Json>& made);
  Next start();
  Next on_started(const Result<api::Json>& started);
  Next ask_status();
  Next on_running(const Result<api::Json>& status);

  Outcome make_files(const CriPod& pod);
  Result<api::Json> configure(const CriPod& pod);
  /// Null, and refused: the pod has been stopped or removed.
  CriPod* find_pod();
  /// Reports a failed start, unless another pod has the uid now: nothing waits for this start any more.
  Next refuse(std::string_view reason, std::string message);
  /// Reports a failed create or start. If the failure shows that the sandbox has ended, that is reported first.
  Next refuse_by_runtime(std::string_view reason, std::string message);

  const CriHost& host() const { return means_.host; }

  const ContainerStartMeans& means_;
  agent::StartContainer command_;
  PodIdentity pod_;
  ContainerStarts::Claim claim_;  // null: the name is not claimed yet, or another start has it
  std::string image_name_;        // as the pod has it
  Instant asked_{};
  api::Json image_;  // as the runtime describes it
  std::vector<PlacedMount> mounts_;
  std::string termination_log_;
  std::string id_;
};

}  // namespace spillway::host
