#include "host/containers/cri_pod_maker.h"

#include "base/file.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace spillway::host {

void CriPodMaker::create(agent::CreatePod command) {
  CriPod* known = pods_.find(command.uid);
  if (known != nullptr && !known->broken && !known->command.definition) return complete(*known, std::move(command));
  if (known != nullptr && !known->broken) return;
  if (known == nullptr && pods_.all().size() >= host_.options.pods_max) return;  // its sandbox will report it
  CriPod pod;
  pod.command = std::move(command);
  pod.created = host_.loop.now().wall;
  if (const Outcome made = make(pod); !made) {
    pod.broken = made.error();
    host_.log.error("pod not made", {{"pod", pod.command.pod.text()}, {"error", made.error().text()}});
  }
  const std::string uid = pod.command.uid;
  pods_.all()[uid] = std::move(pod);
  cgroups_.update_class_limits();
}

Outcome CriPodMaker::make(CriPod& pod) {
  const agent::CreatePod& command = pod.command;
  if (!is_plain_name(command.uid) || !is_plain_name(command.pod.ns) || !is_plain_name(command.pod.name))
    return invalid("pod", "uid \"{}\", namespace \"{}\" or name \"{}\" cannot name a directory", command.uid,
                   command.pod.ns, command.pod.name);
  if (!command.definition) return invalid("pod", "{} came without its definition", command.pod.text());
  pod.directory =
      fmt::format("{}/pods/{}_{}_{}", host_.options.state_dir, command.pod.ns, command.pod.name, command.uid);
  SPILLWAY_TRY_VOID(make_directories(pod.directory));
  pod.logs = log_folders_.folder_of(command.pod, command.uid, pod.directory);
  SPILLWAY_TRY_VOID(make_directories(pod.logs));
  if (!pod.volumes) {
    VolumeSetOptions volumes;
    volumes.directory = pod.directory + "/_volumes";
    pod.volumes = std::make_shared<VolumeSet>(std::move(volumes));
  }
  return cgroups_.make(pod);
}

/// Completes a found pod with its definition.
void CriPodMaker::complete(CriPod& pod, agent::CreatePod command) {
  if (pod.stopping) return;
  pod.command = std::move(command);
  Outcome made = make(pod);
  if (made && !pod.sandbox.empty()) {
    const auto configured = sandboxes_.configure(pod);
    if (!configured) made = configured.error();
  }
  if (!made)
    host_.log.error("pod taken over in part", {{"pod", pod.command.pod.text()}, {"error", made.error().text()}});
  pods_.change_target(pod);
  cgroups_.update_class_limits();
}

}  // namespace spillway::host
