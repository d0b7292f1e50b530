#include "agent/pods/container_gc_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr Duration kPeriod = minutes(1);

}  // namespace

api::Json ContainerGcEngine::state() const {
  const auto running =
      std::ranges::count(records_, RuntimeState::kRunning, [](const auto& entry) { return entry.second.state; });
  return api::Json::object({{"dead", static_cast<std::int64_t>(records_.size()) - running},
                            {"removed", removed_},
                            {"running", static_cast<std::int64_t>(running)}});
}

void ContainerGcEngine::start(Now now) {
  arm(now);
}

void ContainerGcEngine::arm(Now now) {
  context_.api.at(now.mono + kPeriod, [this](Now later) {
    collect(later);
    arm(later);
  });
}

void ContainerGcEngine::on_started(const ContainerStarted& event, Now now) {
  records_[{event.uid, event.name, event.attempt}] = {now.mono, RuntimeState::kRunning};
  if (event.attempt > 0) collect(now);
}

void ContainerGcEngine::on_exited(const ContainerExited& event) {
  const auto found = records_.find({event.uid, event.name, event.attempt});
  if (found != records_.end()) found->second.state = RuntimeState::kExited;
}

void ContainerGcEngine::forget(const std::string& uid) {
  std::erase_if(records_, [&](const auto& record) { return std::get<0>(record.first) == uid; });
}

void ContainerGcEngine::collect(Now now) {
  std::vector<ContainerOnNode> containers;
  std::map<std::string, RemoveContainer> commands;
  for (const auto& [key, record] : records_) {
    const auto& [uid, name, attempt] = key;
    std::string id = fmt::format("{}/{}/{}", uid, name, attempt);
    commands[id] = {uid, name, attempt};
    containers.push_back({.id = std::move(id),
                          .pod_uid = uid,
                          .name = name,
                          .sandbox = uid,
                          .state = record.state,
                          .created = record.created});
  }
  // What a pod that is gone left behind goes with its directory.
  const ContainerGcScope scope{.remains = [](std::string_view) { return PodRemains::kKept; }};
  for (const ContainerRemoval& each : plan_container_gc(policy_, scope, containers, now.mono)) {
    const RemoveContainer& command = commands.at(each.id);
    records_.erase({command.uid, command.name, command.attempt});
    context_.host_commands.emplace_back(command);
    ++removed_;
  }
}

}  // namespace spillway::agent
