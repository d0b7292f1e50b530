#include "host/process/pod_maker.h"

#include "base/file.h"
#include "host/cgroup/cgroup_limits.h"
#include "host/network/pod_networks.h"
#include "host/pods/cgroup_resize.h"
#include "host/pods/pod_limits.h"
#include "host/process/kept_records.h"
#include "host/volumes/provisioned_directory.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace spillway::host {

void PodMaker::create(agent::CreatePod command) {
  ProcessPod* known = pods_.find(command.uid);
  if (known != nullptr && !known->broken) return;
  if (known == nullptr && pods_.all().size() >= host_.options.pods_max) return;  // its containers will report it
  ProcessPod pod;
  pod.command = std::move(command);
  pod.created = host_.loop.now().wall;
  if (host_.options.network && pod.command.definition) pod.capabilities = capabilities_of(*pod.command.definition);
  const Outcome made = make(pod);
  if (!made) {
    pod.broken = made.error();
    host_.log.error("pod cgroup not made", {{"pod", pod.command.pod.text()}, {"error", made.error().text()}});
  }
  const std::string uid = pod.command.uid;
  if (known != nullptr) release_ids(*known);
  pods_.all()[uid] = std::move(pod);
  pods_.update_class_shares();
}

Outcome PodMaker::ensure_made(ProcessPod& pod) {
  if (!std::exchange(pod.made, true)) {
    const Outcome made = make(pod);
    if (!made) pod.broken = made.error();
  }
  return pod.broken ? Outcome(*pod.broken) : Outcome();
}

Outcome PodMaker::make(ProcessPod& pod) {
  const agent::CreatePod& command = pod.command;
  if (!is_plain_name(command.uid) || !is_plain_name(command.pod.ns) || !is_plain_name(command.pod.name))
    return invalid("pod", "uid \"{}\", namespace \"{}\" or name \"{}\" cannot name a directory", command.uid,
                   command.pod.ns, command.pod.name);
  pod.directory =
      fmt::format("{}/pods/{}_{}_{}", host_.options.state_dir, command.pod.ns, command.pod.name, command.uid);
  SPILLWAY_TRY_VOID(make_directories(pod.work_folder()));
  SPILLWAY_TRY(isolated, isolator_.isolate(command, pod.work_folder()));
  pod.isolated = std::move(isolated);
  make_volumes(pod);
  SPILLWAY_TRY_VOID(make_cgroup(pod));
  return record(pod);
}

void PodMaker::make_volumes(ProcessPod& pod) const {
  if (!pod.isolated.first_id) return;
  pod.volumes = std::make_shared<VolumeSet>(VolumeSetOptions{.directory = pod.volume_folder(),
                                                             .first_id = *pod.isolated.first_id,
                                                             .hidden = host_.options.hidden,
                                                             .provisioned = provisioned_folder(host_.options.state_dir),
                                                             .kept = host_.options.keeps_pods,
                                                             .mounts = std::exchange(pod.mounts, {})});
}

Outcome PodMaker::make_cgroup(ProcessPod& pod) const {
  const agent::CreatePod& command = pod.command;
  SPILLWAY_TRY(cgroup, host_.slice.parent_of(command.qos).create_child("pod" + command.uid));
  pod.cgroup = std::move(cgroup);
  SPILLWAY_TRY_VOID(pod.cgroup.delegate_controllers());
  return apply_limits(pod.cgroup, pod_limits(command, {}));
}

/// Writes the record for the next process, if there are supervisors that outlive this one.
Outcome PodMaker::record(const ProcessPod& pod) const {
  if (!host_.options.keeps_pods) return {};
  return write_record(pod.record_path(),
                      pod_record({pod.command, pod.isolated.first_id, pod.created, pod.capabilities}));
}

Outcome PodMaker::resize(const agent::ResizePod& command) {
  ProcessPod* pod = pods_.find(command.uid);
  if (pod == nullptr) return make_error(ErrorCode::kNotFound, "pod {} is unknown", command.uid);
  const auto group_of = [pod](const std::string& name) -> const CgroupDir* {
    if (name.empty()) return pod->cgroup ? &pod->cgroup : nullptr;
    const auto container = pod->containers.find(name);
    return container == pod->containers.end() ? nullptr : &container->second->cgroup();
  };
  SPILLWAY_TRY_VOID(resize_groups(command, group_of, {}));
  pod->command.memory_limit = command.pod.after.memory_limit;
  pod->command.cpu_limit_milli = command.pod.after.cpu_limit_milli;
  pod->command.cpu_request_milli = command.pod.after.cpu_request_milli;
  pods_.update_class_shares();
  return pod->directory.empty() ? Outcome() : record(*pod);
}

void PodMaker::keep_ids(const ProcessPod& pod) {
  if (pod.isolated.first_id) isolator_.keep(*pod.isolated.first_id);
}

void PodMaker::release_ids(const ProcessPod& pod) {
  if (pod.isolated.first_id) isolator_.release(*pod.isolated.first_id);
}

}  // namespace spillway::host
