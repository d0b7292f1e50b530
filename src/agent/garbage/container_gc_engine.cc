#include "agent/garbage/container_gc_engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr Duration kGcPeriod = minutes(1);  // as upstream
constexpr std::size_t kNamedInLog = 20;

Instant instant_of(WallTime at, Now now) {
  return now.mono - std::max<Duration>(std::chrono::duration_cast<Duration>(now.wall - at), Duration{});
}

std::string names_of(const RemoveRemains& plan) {
  std::vector<std::string> names;
  for (const ContainerRemoval& each : plan.containers) names.push_back(each.id);
  for (const auto* list : {&plan.sandboxes, &plan.directories}) names.insert(names.end(), list->begin(), list->end());
  const std::size_t all = names.size();
  names.resize(std::min(all, kNamedInLog));
  return fmt::format("{}{}", fmt::join(names, ", "), all > kNamedInLog ? ", ..." : "");
}

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
  context_.api.at(now.mono + kGcPeriod, [this](Now later) {
    context_.machine.runs_images ? void(context_.host_commands.emplace_back(ListRemains{})) : collect(later);
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

void ContainerGcEngine::on_found(const PodsFound& found, Now now) {
  for (const FoundPod& pod : found.pods) {
    for (const FoundContainer& each : pod.containers) {
      const auto age = std::chrono::duration_cast<Duration>(now.wall - each.started_at);
      records_[{pod.uid, each.name, each.attempt}] = {now.mono - std::max(age, Duration{}),
                                                      each.ended ? RuntimeState::kExited : RuntimeState::kRunning};
    }
  }
}

void ContainerGcEngine::on_listed(const RemainsListed& listed, Now now) {
  std::vector<ContainerOnNode> containers;
  std::map<std::string, std::tuple<std::string, std::string, std::int32_t>> keys;
  for (const RemainingContainer& each : listed.containers) {
    keys[each.id] = {each.pod_uid, each.name, each.attempt};
    containers.push_back({.id = each.id,
                          .pod_uid = each.pod_uid,
                          .name = each.name,
                          .sandbox = each.sandbox,
                          .state = each.state,
                          .created = instant_of(each.created, now)});
  }
  std::vector<SandboxOnNode> sandboxes;
  for (const RemainingSandbox& each : listed.sandboxes)
    sandboxes.push_back(
        {.id = each.id, .pod_uid = each.pod_uid, .ready = each.ready, .created = instant_of(each.created, now)});
  const ContainerGcScope scope = scope_();
  RemoveRemains plan{.containers = plan_container_gc(policy_, scope, containers, now.mono),
                     .sandboxes = {},
                     .directories = plan_log_gc(scope, listed.directories)};
  for (const ContainerRemoval& each : plan.containers) {
    records_.erase(keys[each.id]);
    std::erase_if(containers, [&](const ContainerOnNode& one) { return one.id == each.id; });
  }
  plan.sandboxes = plan_sandbox_gc(scope, sandboxes, containers);
  if (plan.containers.empty() && plan.sandboxes.empty() && plan.directories.empty()) return;
  context_.log.info("garbage of pods is removed", {{"containers", static_cast<std::uint64_t>(plan.containers.size())},
                                                   {"sandboxes", static_cast<std::uint64_t>(plan.sandboxes.size())},
                                                   {"directories", static_cast<std::uint64_t>(plan.directories.size())},
                                                   {"names", names_of(plan)}});
  removed_ += plan.containers.size();
  context_.host_commands.emplace_back(std::move(plan));
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
  // The remains of a pod that is gone are removed with its directory.
  const ContainerGcScope scope{.remains = [](std::string_view) { return PodRemains::kKept; }};
  for (const ContainerRemoval& each : plan_container_gc(policy_, scope, containers, now.mono)) {
    const RemoveContainer& command = commands.at(each.id);
    records_.erase({command.uid, command.name, command.attempt});
    context_.host_commands.emplace_back(command);
    ++removed_;
  }
}

}  // namespace spillway::agent
