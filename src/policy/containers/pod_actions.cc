#include "policy/containers/pod_actions.h"

#include "policy/containers/restart_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <ranges>

namespace spillway::containers {
namespace {

using State = Instance::State;

constexpr std::string_view kNever = "Never";
constexpr std::string_view kOnFailure = "OnFailure";

bool is_up(const Instance& instance) {
  return instance.state == State::kRunning || instance.state == State::kInTransition;
}

bool has_sidecars(const api::Pod& pod) {
  return std::ranges::any_of(pod.spec.init_containers, api::is_sidecar);
}

/// True if no container of the pod ever starts again by itself. Sidecars live as long as the others.
bool runs_once(const api::Pod& pod) {
  if (pod.spec.restart_policy != kNever) return false;
  const auto again = [&](const api::Container& each) { return may_restart(pod.spec, each); };
  return std::ranges::none_of(pod.spec.containers, again) &&
         std::ranges::none_of(pod.spec.init_containers,
                              [&](const auto& each) { return !api::is_sidecar(each) && again(each); });
}

/// True if the container has ended by itself, and not because all containers start anew.
bool has_exited(const Instance* instance) {
  return instance != nullptr && instance->state == State::kExited && instance->reason != kRestartingAll;
}

bool has_failed(const Instance& instance) {
  return instance.state == State::kUnknown ||
         (instance.state == State::kExited && (instance.exit_code != 0 || instance.reason == "OOMKilled"));
}

std::optional<ProbeResult> result_of(const ProbeResults& results, const Instance& instance) {
  const auto found = results.find(instance.id);
  return found == results.end() ? std::nullopt : std::optional(found->second);
}

struct SandboxVerdict {
  bool change = false;
  std::int64_t attempt = 0;
  std::string id;
};

SandboxVerdict check_sandbox(const api::Pod& pod, const std::vector<Sandbox>& sandboxes) {
  if (sandboxes.empty()) return {.change = true, .attempt = 0, .id = {}};
  const Sandbox& newest = sandboxes.front();
  const auto ready = std::ranges::count_if(sandboxes, &Sandbox::ready);
  if (ready > 1 || !newest.ready) return {.change = true, .attempt = newest.attempt + 1, .id = newest.id};
  if (newest.host_network != pod.spec.host_network) return {.change = true, .attempt = newest.attempt + 1, .id = {}};
  if (!pod.spec.host_network && newest.ip.empty())
    return {.change = true, .attempt = newest.attempt + 1, .id = newest.id};
  return {.change = false, .attempt = newest.attempt, .id = newest.id};
}

/// Computes the actions for one pod: reads `seen`, fills `actions`.
class Pass {
 public:
  Pass(const api::Pod& pod, const PodSeen& seen) : pod_(pod), seen_(seen) {}

  PodActions run() {
    const SandboxVerdict verdict = check_sandbox(pod_, seen_.sandboxes);
    actions_.kill_pod = actions_.create_sandbox = verdict.change;
    actions_.attempt = verdict.attempt;
    actions_.sandbox_id = verdict.id;
    verdict.change ? begin_anew() : sync_containers();
    std::ranges::sort(actions_.stop, {}, &ContainerToStop::id);
    return std::move(actions_);
  }

 private:
  const Instance* newest(const api::Container& container) const { return find_newest(seen_.instances, container.name); }

  /// Starts anew with a new sandbox.
  void begin_anew() {
    if (runs_once(pod_) && actions_.attempt != 0 && !seen_.instances.empty()) {
      actions_.create_sandbox = false;
      return;
    }
    std::vector<std::string> left;
    for (const api::Container& container : pod_.spec.containers) {
      const Instance* instance = newest(container);
      if (stays_ended(container, instance)) continue;
      left.push_back(container.name);
    }
    if (left.empty() && was_initialized()) {
      actions_.create_sandbox = false;
      return;
    }
    if (!pod_.spec.init_containers.empty()) {
      actions_.init_containers.push_back(pod_.spec.init_containers.front().name);
    } else {
      actions_.containers = std::move(left);
    }
  }

  /// True if the container has done its work and needs no new sandbox.
  bool stays_ended(const api::Container& container, const Instance* instance) const {
    if (instance == nullptr || instance->state != State::kExited) return false;
    if (!container.restart_policy.empty()) return !restarts_after(pod_.spec, container, instance->exit_code);
    return pod_.spec.restart_policy == kOnFailure && instance->exit_code == 0;
  }

  bool was_initialized() const {
    if (!has_sidecars(pod_)) return next_init().done;
    return std::ranges::any_of(pod_.spec.containers, [&](const auto& each) { return newest(each) != nullptr; });
  }

  /// True: a container has ended by a rule that starts all containers anew.
  bool restart_all() {
    const std::array lists = {&pod_.spec.init_containers, &pod_.spec.containers};
    const auto triggers = [&](const api::Container& each) {
      const Instance* instance = newest(each);
      return has_exited(instance) && restarts_all_after(each, instance->exit_code);
    };
    if (pod_.metadata.deletion_timestamp ||
        std::ranges::none_of(lists, [&](const auto* list) { return std::ranges::any_of(*list, triggers); })) {
      return false;
    }
    for (const auto* list : lists) {
      for (const api::Container& container : *list) {
        const Instance* instance = newest(container);
        if (instance == nullptr || instance->state != State::kRunning) continue;
        stop(*instance, fmt::format("Stopping container {}", container.name), StopCause::kRestartAll);
      }
    }
    actions_.restart_all = true;
    return true;
  }

  void sync_containers() {
    if (restart_all()) return;
    for (const api::Container& container : pod_.spec.ephemeral_containers) {
      if (newest(container) == nullptr) actions_.ephemeral_containers.push_back(container.name);
    }
    if (!(has_sidecars(pod_) ? initialize_with_sidecars() : initialize())) return;
    std::size_t kept = 0;
    for (const api::Container& container : pod_.spec.containers) kept += decide(container) ? 1 : 0;
    if (kept > 0 || !actions_.containers.empty()) return;
    actions_.kill_pod = true;
    actions_.init_containers.clear();
  }

  struct NextInit {
    const api::Container* start = nullptr;
    const Instance* failed = nullptr;  // set if `start` restarts a failed instance
    bool done = false;
  };

  /// The next init container, without sidecars.
  NextInit next_init() const {
    const auto& all = pod_.spec.init_containers;
    if (all.empty()) return {.done = true};
    const auto runs = [&](const api::Container& each) {
      const Instance* instance = newest(each);
      return instance != nullptr && is_up(*instance);
    };
    if (std::ranges::any_of(pod_.spec.containers, runs)) return {.done = true};
    for (const api::Container& container : all | std::views::reverse) {
      const Instance* instance = newest(container);
      if (instance != nullptr && has_failed(*instance)) return {.start = &container, .failed = instance};
    }
    for (std::size_t i = all.size(); i-- > 0;) {
      const Instance* instance = newest(all[i]);
      if (instance == nullptr) continue;
      if (is_up(*instance)) return {};
      if (instance->state != State::kExited) continue;
      return i + 1 == all.size() ? NextInit{.done = true} : NextInit{.start = &all[i + 1]};
    }
    return {.start = &all.front()};
  }

  /// True: all are done.
  bool initialize() {
    const NextInit next = next_init();
    if (next.done) return true;
    if (next.start == nullptr) return false;
    if (next.failed != nullptr && !starts_again(*next.start, *next.failed)) {
      actions_.kill_pod = true;
      return false;
    }
    if (next.failed != nullptr && next.failed->state == State::kUnknown) stop_unknown_init(*next.failed);
    actions_.init_containers.push_back(next.start->name);
    return false;
  }

  /// True if an init container that has failed is started again. In an unknown state its policy alone decides.
  bool starts_again(const api::Container& container, const Instance& failed) const {
    if (restart_policy_of(pod_.spec, container) != kNever) return true;
    return failed.state == State::kExited && restarts_after(pod_.spec, container, failed.exit_code);
  }

  void stop_unknown_init(const Instance& instance) {
    stop(instance, "Init container is in \"unknown\" state, try killing it before restart", StopCause::kUnknownState);
  }

  bool initialize_with_sidecars() {
    const auto& all = pod_.spec.init_containers;
    initialized_ = std::ranges::any_of(pod_.spec.containers, [&](const api::Container& each) {
      const Instance* instance = newest(each);
      return instance != nullptr && (is_up(*instance) || instance->state == State::kCreated);
    });
    bool passed = initialized_;  // earlier init containers have passed if the pod was initialized before
    bool any_seen = initialized_;
    for (std::size_t i = all.size(); i-- > 0;) {
      const Instance* instance = newest(all[i]);
      if (passed && !api::is_sidecar(all[i])) continue;
      if (instance == nullptr) {
        if (passed) start_init(all[i]);
        continue;
      }
      any_seen = true;
      api::is_sidecar(all[i]) ? decide_sidecar(i, *instance, passed) : decide_init(i, *instance);
      if (actions_.kill_pod) return false;
      passed = true;
    }
    if (!any_seen) start_init(all.front());
    std::ranges::reverse(actions_.init_containers);
    return initialized_;
  }

  void start_init(const api::Container& container) {
    if (std::ranges::find(actions_.init_containers, container.name) == actions_.init_containers.end())
      actions_.init_containers.push_back(container.name);
  }

  /// Starts the next init container once this one has succeeded.
  void start_next(std::size_t index) {
    const auto& all = pod_.spec.init_containers;
    if (index + 1 == all.size()) {
      initialized_ = true;
    } else {
      start_init(all[index + 1]);
    }
  }

  void decide_init(std::size_t index, const Instance& instance) {
    const api::Container& container = pod_.spec.init_containers[index];
    if (is_up(instance)) return;
    if (instance.state == State::kCreated) return start_init(container);
    if (!has_failed(instance)) return start_next(index);
    if (!starts_again(container, instance)) {
      actions_.kill_pod = true;
      actions_.init_containers.clear();
      return;
    }
    if (instance.state == State::kUnknown) stop_unknown_init(instance);
    start_init(container);
  }

  void decide_sidecar(std::size_t index, const Instance& instance, bool passed) {
    const api::Container& container = pod_.spec.init_containers[index];
    if (instance.state == State::kInTransition) return;
    if (instance.state == State::kUnknown) stop_unknown_init(instance);
    if (instance.state != State::kRunning) return start_init(container);
    const auto restart = [&](std::string_view why, StopCause cause) {
      stop(instance, fmt::format("Init container {} {}", container.name, why), cause);
      start_init(container);
    };
    if (!container.startup_probe.is_null()) {
      const auto startup = result_of(seen_.startup, instance);
      if (startup == ProbeResult::kFailure) restart("failed startup probe", StopCause::kStartupProbe);
      if (startup != ProbeResult::kSuccess) return;
    }
    if (!passed || index + 1 == pod_.spec.init_containers.size()) start_next(index);
    if (instance.outdated) return restart("definition changed", StopCause::kOther);
    if (!container.liveness_probe.is_null() && result_of(seen_.liveness, instance) == ProbeResult::kFailure)
      restart("failed liveness probe", StopCause::kLivenessProbe);
  }

  /// Decides about one container. True: it runs and nothing is to be done.
  bool decide(const api::Container& container) {
    const Instance* instance = newest(container);
    if (instance == nullptr || !is_up(*instance)) {
      if (!is_start_due(pod_, container, instance)) return false;
      actions_.containers.push_back(container.name);
      if (instance != nullptr && instance->state == State::kUnknown)
        stop(*instance, "Container is in \"unknown\" state, try killing it before restart", StopCause::kUnknownState);
      return false;
    }
    if (instance->state == State::kInTransition) return true;
    bool again = restart_policy_of(pod_.spec, container) != kNever;
    StopCause cause = StopCause::kOther;
    std::string_view why;
    if (instance->outdated) {
      again = true;
      why = "definition changed";
    } else if (result_of(seen_.liveness, *instance) == ProbeResult::kFailure) {
      cause = StopCause::kLivenessProbe;
      why = "failed liveness probe";
    } else if (result_of(seen_.startup, *instance) == ProbeResult::kFailure) {
      cause = StopCause::kStartupProbe;
      why = "failed startup probe";
    } else {
      return true;
    }
    stop(*instance, fmt::format("Container {} {}{}", container.name, why, again ? ", will be restarted" : ""), cause);
    if (again) actions_.containers.push_back(container.name);
    return false;
  }

  void stop(const Instance& instance, std::string message, StopCause cause) {
    actions_.stop.push_back({instance.id, instance.name, std::move(message), cause});
  }

  const api::Pod& pod_;
  const PodSeen& seen_;
  PodActions actions_;
  bool initialized_ = false;
};

}  // namespace

const Instance* find_newest(const std::vector<Instance>& instances, std::string_view name) {
  const auto found = std::ranges::find(instances, name, &Instance::name);
  return found == instances.end() ? nullptr : &*found;
}

bool is_start_due(const api::Pod& pod, const api::Container& container, const Instance* newest) {
  if (pod.metadata.deletion_timestamp) return false;
  if (newest == nullptr || newest->state == State::kUnknown || newest->state == State::kCreated) return true;
  if (newest->state != State::kExited) return false;
  return restarts_after(pod.spec, container, newest->exit_code);
}

bool is_sandbox_usable(const api::Pod& pod, const std::vector<Sandbox>& sandboxes) {
  return !check_sandbox(pod, sandboxes).change;
}

PodActions compute_pod_actions(const api::Pod& pod, const PodSeen& seen) {
  return Pass(pod, seen).run();
}

}  // namespace spillway::containers
