// Starts of containers. The steps of one:
//   1. start_one(): the ConfigMaps, Secrets and files that its variables refer to are read;
//   2. create(): the command is made (start_command.h), and the container counts as starting;
//   3. its devices are prepared;
//   4. launch(): the command is sent.
// A start that fails waits kRetry, or for another definition.
// Thread: loop. Bounds: kTurnBytesMax bytes of arguments and environments in one turn of the loop. Source: spec "Pod
// lifecycle", 5, 6.
#pragma once

#include "agent/contract/context.h"
#include "agent/devices/resource_managers.h"
#include "agent/pod_state/pod_events.h"
#include "agent/pod_state/pod_sync.h"
#include "agent/pod_state/pod_table.h"
#include "agent/pod_state/pod_timers.h"
#include "agent/resizes/pod_resizes.h"
#include "agent/starts/env_reader.h"
#include "agent/starts/start_command.h"

#include <functional>
#include <string>
#include <vector>

namespace spillway::agent {

class ContainerStarts {
 public:
  static constexpr Duration kRetry = seconds(10);

  using StartFailed = std::function<void(const ContainerStartFailed& event, Now now)>;

  /// `failed`: a container could not be started although its definition is valid.
  ContainerStarts(AgentContext& context, ResourceManagers& managers, const api::ResourceList& allocatable,
                  PodTable& pods, PodEvents& events, PodTimers& timers, PodResizes& resizes, PodSync& sync,
                  StartFailed failed);

  /// Sets the source of the Services that environment variables describe.
  void use_services(std::function<KnownServices()> services) { services_ = std::move(services); }

  /// Sets the features of the container runtime's handlers; until then they are unknown.
  void use_handlers(std::vector<RuntimeHandler> handlers) { handlers_ = std::move(handlers); }

  /// Starts as many as one turn may, in this order; the others in a later one.
  void start(PodWorker& worker, const std::vector<ContainerRun*>& runs, Now now);

  void on_file_read(const VolumeFileRead& event, Now now) { env_reader_.on_file(event, now); }

 private:
  void start_one(PodWorker& worker, ContainerRun& run, Now now);
  void on_read(const std::string& uid, const std::string& container, const EnvReader::Read& read, Now now);
  void create(PodWorker& worker, ContainerRun& run, const EnvReader::Read& read, Now now);
  void launch(StartContainer command, const Result<DeviceGrant>& devices, Now now);
  void refuse(PodWorker& worker, ContainerRun& run, RefusedStart refused, Now now);

  AgentContext& context_;
  ResourceManagers& managers_;
  const api::ResourceList& allocatable_;
  PodTable& pods_;
  PodEvents& events_;
  PodTimers& timers_;
  PodResizes& resizes_;
  PodSync& sync_;
  StartFailed failed_;
  EnvReader env_reader_;
  std::function<KnownServices()> services_;  // empty: no variables of Services
  std::vector<RuntimeHandler> handlers_;
};

}  // namespace spillway::agent
