#include "host/pods/pod_removals.h"

#include <concepts>
#include <utility>
#include <variant>

namespace spillway::host {
namespace {

/// The pod that the command is about; null: none.
const std::string* uid_of(const agent::HostCommand& command) {
  return std::visit(
      [](const auto& each) -> const std::string* {
        if constexpr (requires {
                        { each.uid } -> std::convertible_to<const std::string&>;
                      })
          return &each.uid;
        else
          return nullptr;
      },
      command);
}

}  // namespace

void PodRemovals::connect(telemetry::Log log, Execute execute) {
  log_ = std::move(log);
  execute_ = std::move(execute);
}

void PodRemovals::begin(const std::string& uid) {
  Removal& removal = removals_[uid];
  if (!std::exchange(removal.begun, true)) ++removal.jobs;
}

void PodRemovals::job_ended(const std::string& uid) {
  const auto found = removals_.find(uid);
  if (found == removals_.end() || --found->second.jobs > 0) return;
  std::deque<agent::HostCommand> held = std::move(found->second.held);
  removals_.erase(found);
  for (agent::HostCommand& each : held) execute_(std::move(each));
}

bool PodRemovals::hold_back(agent::HostCommand& command) {
  const std::string* uid = uid_of(command);
  const auto found = uid == nullptr ? removals_.end() : removals_.find(*uid);
  if (found == removals_.end()) return false;
  Removal& removal = found->second;
  const auto* create = std::get_if<agent::CreatePod>(&command);
  if (removal.held.empty() && (create == nullptr || !removal.begun)) return false;
  if (std::holds_alternative<agent::StopPod>(command) || std::holds_alternative<agent::RemovePod>(command)) {
    drop_later(removal);
    return false;
  }
  if (removal.held.empty())
    log_.info("pod waits for the removal of an earlier pod's files", {{"pod", create->pod.text()}, {"uid", *uid}});
  removal.held.push_back(std::move(command));
  return true;
}

void PodRemovals::drop_later(Removal& removal) {
  std::deque<agent::HostCommand> held = std::exchange(removal.held, {});
  held.pop_front();
  for (agent::HostCommand& each : held) execute_(std::move(each));
}

bool PodRemovals::has_later(const std::string& uid) const {
  const auto found = removals_.find(uid);
  return found != removals_.end() && !found->second.held.empty();
}

}  // namespace spillway::host
