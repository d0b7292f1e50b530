#include "policy/containers/orderly_stop.h"

#include "api/object/probe.h"
#include "policy/containers/stop_order.h"

#include <algorithm>
#include <chrono>

namespace spillway::containers {
namespace {

constexpr std::int64_t kStopSecondsMin = 2;  // as upstream: left to a container after its hook

ContainerNames with_hooks(const api::PodSpec& spec) {
  ContainerNames names;
  for (const auto* list : {&spec.init_containers, &spec.containers}) {
    for (const api::Container& container : *list) {
      if (api::hook_of(container, "preStop")) names.insert(container.name);
    }
  }
  return names;
}

}  // namespace

bool OrderlyStop::is_needed(const api::PodSpec& spec, const ContainerNames& running) {
  const ContainerNames hooks = with_hooks(spec);
  const auto order = stop_order(spec, running);
  return std::ranges::any_of(running, [&](const std::string& name) { return hooks.contains(name); }) ||
         std::ranges::any_of(order, [](const auto& each) { return !each.second.empty(); });
}

OrderlyStop::OrderlyStop(const api::PodSpec& spec, const ContainerNames& running, std::int64_t grace_seconds,
                         Instant now)
    : since_(now), grace_seconds_(grace_seconds) {
  const ContainerNames hooks = with_hooks(spec);
  for (auto& [name, waits_for] : stop_order(spec, running))
    left_[name] = {.state = State::kNew, .has_hook = hooks.contains(name), .waits_for = waits_for};
}

std::int64_t OrderlyStop::seconds_left(Instant now) const {
  return grace_seconds_ - std::chrono::duration_cast<seconds>(now - since_).count();
}

std::vector<StopStep> OrderlyStop::advance(Instant now) {
  std::vector<StopStep> steps;
  const std::int64_t rest = seconds_left(now);
  for (auto& [name, each] : left_) {
    if (each.state == State::kNew) {
      each.state = each.has_hook && rest > 0 ? State::kHook : State::kWaits;
      if (each.state == State::kHook) steps.push_back({StopStep::What::kHook, name, seconds(rest)});
    }
    if (each.state == State::kHook && rest <= 0) each.state = State::kWaits;
    if (each.state != State::kWaits) continue;
    const bool free = std::ranges::none_of(each.waits_for, [&](const auto& other) { return left_.contains(other); });
    if (!free && rest > 0) continue;
    each.state = State::kStopping;
    steps.push_back({StopStep::What::kStop, name, seconds(std::max(rest, kStopSecondsMin))});
  }
  return steps;
}

void OrderlyStop::on_hook_done(const std::string& container) {
  const auto found = left_.find(container);
  if (found != left_.end() && found->second.state == State::kHook) found->second.state = State::kWaits;
}

void OrderlyStop::on_gone(const std::string& container) {
  left_.erase(container);
}

}  // namespace spillway::containers
