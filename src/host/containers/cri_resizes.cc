#include "host/containers/cri_resizes.h"

#include <memory>
#include <string_view>
#include <utility>

namespace spillway::host {

void CriResizes::start(agent::ResizePod command) {
  ResizeMeans means{
      .call =
          [&calls = host_.calls](std::string_view method, api::Json request, RuntimeCalls::Answer answer) {
            calls.call(method, std::move(request), kRuntimeCallMax, std::move(answer));
          },
      .resized_pod = [this, uid = command.uid] { return resized_pod(uid); },
      .keep = cgroups_.limits_of_slice(command.uid),
      .facts = host_.options.resources,
      .done = [this](const agent::ResizePod& resized, const Outcome& outcome) { on_resized(resized, outcome); }};
  std::make_shared<CriResize>(std::move(command), std::move(means))->begin();
}

std::optional<ResizedPod> CriResizes::resized_pod(const std::string& uid) const {
  const CriPod* pod = pods_.find(uid);
  if (pod == nullptr || pod->stopping) return std::nullopt;
  ResizedPod found{.sandbox = pod->sandbox,
                   .cgroup = pod->cgroup ? &pod->cgroup : nullptr,
                   .containers = {},
                   .before = pod->command.definition};
  for (const auto& [name, each] : pod->containers) {
    if (each.running) found.containers[name] = {each.id, each.cgroup ? &each.cgroup : nullptr};
  }
  return found;
}

void CriResizes::on_resized(const agent::ResizePod& command, const Outcome& outcome) {
  CriPod* pod = pods_.find(command.uid);
  if (outcome && pod != nullptr) {
    pod->command.memory_limit = command.pod.after.memory_limit;
    pod->command.cpu_limit_milli = command.pod.after.cpu_limit_milli;
    pod->command.cpu_request_milli = command.pod.after.cpu_request_milli;
    pod->command.definition = command.definition;
    cgroups_.update_class_limits();
  }
  host_.events.emit(agent::PodResized{command.id, command.uid, outcome ? std::string() : outcome.error().message});
}

}  // namespace spillway::host
