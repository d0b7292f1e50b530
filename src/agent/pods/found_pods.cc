#include "agent/pods/found_pods.h"

#include "agent/contract/kill_grace.h"
#include "agent/pods/pod_takeover.h"

#include <utility>

namespace spillway::agent {

void FoundPods::add(const PodsFound& found) {
  for (const FoundPod& pod : found.pods) pods_.insert_or_assign(pod.uid, pod);
}

std::optional<FoundPod> FoundPods::take(const std::string& uid) {
  const auto found = pods_.extract(uid);
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped());
}

void FoundPods::on_exited(const ContainerExited& event) {
  if (const auto found = pods_.find(event.uid); found != pods_.end()) record_found_exit(found->second, event);
}

void FoundPods::on_sandbox_lost(const std::string& uid) {
  if (const auto found = pods_.find(uid); found != pods_.end()) found->second.has_sandbox = false;
}

void FoundPods::end_orphans() {
  for (const auto& [uid, pod] : std::exchange(pods_, {})) {
    context_.log.info("remaining containers of a deleted pod are ended", {{"pod_uid", uid}});
    context_.host_commands.emplace_back(StopPod{uid, seconds(kStopSecondsMin)});
    context_.host_commands.emplace_back(RemovePod{uid});
  }
}

}  // namespace spillway::agent
