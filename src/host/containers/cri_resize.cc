#include "host/containers/cri_resize.h"

#include "host/pods/cgroup_resize.h"
#include "host/pods/pod_limits.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace spillway::host {
namespace {

using api::Json;
using containers::ResizedResource;

constexpr std::array<std::string_view, 2> kMemoryMembers{"memory_limit_in_bytes", "memory_swap_limit_in_bytes"};
constexpr std::array<std::string_view, 3> kCpuMembers{"cpu_period", "cpu_quota", "cpu_shares"};
constexpr std::array<std::string_view, 3> kMemoryFiles{"memory.swap.max", "memory.min", "memory.high"};
constexpr std::int64_t kNoLimitOfRuntime = -1;

void copy_members(const Json& from, std::span<const std::string_view> names, Json& to) {
  for (const std::string_view name : names) {
    if (const Json* found = from.find(name)) to[name] = *found;
  }
}

/// Runtimes before 1.33 of the CRI do not know the call; nothing depends on it.
bool is_unknown_call(const Error& error) {
  return error.at == "Unimplemented" || (error.at == "Unknown" && error.message.contains("not implemented"));
}

const api::Container* container_named(const api::Pod& pod, std::string_view name) {
  for (const auto* list : {&pod.spec.init_containers, &pod.spec.containers}) {
    const auto found = std::ranges::find(*list, name, &api::Container::name);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

}  // namespace

Json container_update(const containers::ResizeStep& step, const api::Pod& pod, const agent::ResourceFacts& facts) {
  Json update = Json::object();
  const api::Container* container = container_named(pod, step.container);
  if (container == nullptr) return update;
  const Json whole = agent::container_resources(pod, *container, facts);
  if (step.resource == ResizedResource::kCpu) {
    copy_members(whole, kCpuMembers, update);
    if (update.find("cpu_quota") == nullptr && facts.cpu_cfs_quota) update["cpu_quota"] = kNoLimitOfRuntime;
    return update;
  }
  copy_members(whole, kMemoryMembers, update);
  if (update.find("memory_limit_in_bytes") == nullptr) update["memory_limit_in_bytes"] = kNoLimitOfRuntime;
  if (const Json* unified = whole.find("unified")) {
    Json files = Json::object();
    copy_members(*unified, kMemoryFiles, files);
    if (!files.if_object()->empty()) update["unified"] = std::move(files);
  }
  return update;
}

void CriResize::begin() {
  const std::optional<ResizedPod> pod = means_.resized_pod();
  if (!pod) return end(make_error(ErrorCode::kNotFound, "pod {} is unknown", command_.uid));
  const auto group_of = [&pod](const std::string& name) -> const CgroupDir* {
    if (name.empty()) return pod->cgroup;
    const auto container = pod->containers.find(name);
    return container == pod->containers.end() ? nullptr : container->second.cgroup;
  };
  // systemd has limits of its own for the pod's slice: they are passed on even where the cgroup has them already.
  const auto readable = [&](const std::string& name) { return name.empty() && means_.keep ? nullptr : group_of(name); };
  steps_ = steps_from_present(command_, readable, means_.facts);
  if (auto problem = refuse_resize(steps_, group_of)) return end(make_error(ErrorCode::kConflict, "{}", *problem));
  next();
}

/// The step at `at_`, or the first after it that has something to change.
void CriResize::next() {
  for (; at_ < steps_.size(); ++at_) {
    const std::optional<ResizedPod> pod = means_.resized_pod();
    if (!pod) return end(make_error(ErrorCode::kNotFound, "pod {} is unknown", command_.uid));
    if (step().container.empty()) return ask_sandbox(*pod);
    const auto container = pod->containers.find(step().container);
    if (container != pod->containers.end()) return ask_container(container->second.id);
  }
  end({});
}

void CriResize::ask_sandbox(const ResizedPod& pod) {
  if (pod.sandbox.empty()) return on_sandbox_answer(Json());
  means_.call("UpdatePodSandboxResources",
              Json::object({{"pod_sandbox_id", pod.sandbox},
                            {"overhead", agent::sandbox_overhead(*command_.definition, means_.facts)},
                            {"resources", agent::sandbox_resources(*command_.definition, means_.facts)}}),
              [self = shared_from_this()](Result<Json> answer) { self->on_sandbox_answer(answer); });
}

void CriResize::on_sandbox_answer(const Result<Json>& answer) {
  if (!answer && !is_unknown_call(answer.error())) return end(answer.error());
  const std::optional<ResizedPod> pod = means_.resized_pod();
  if (!pod) return end(make_error(ErrorCode::kNotFound, "pod {} is unknown", command_.uid));
  const CgroupLimits limits = step_limits(step(), means_.facts, swap_above_containers(means_.facts));
  const Outcome written = pod->cgroup == nullptr || !*pod->cgroup ? Outcome() : apply_limits(*pod->cgroup, limits);
  if (written) {
    if (means_.keep) means_.keep(limits);
    ++at_;
    return next();
  }
  if (answer && !pod->sandbox.empty() && pod->before) {
    means_.call("UpdatePodSandboxResources",
                Json::object({{"pod_sandbox_id", pod->sandbox},
                              {"overhead", agent::sandbox_overhead(*pod->before, means_.facts)},
                              {"resources", agent::sandbox_resources(*pod->before, means_.facts)}}),
                [](const Result<Json>&) {});
  }
  end(written.error());
}

void CriResize::ask_container(const std::string& id) {
  means_.call(
      "UpdateContainerResources",
      Json::object({{"container_id", id}, {"linux", container_update(step(), *command_.definition, means_.facts)}}),
      [self = shared_from_this()](Result<Json> answer) { self->on_container_answer(answer); });
}

/// A container that has ended meanwhile gets its limits with its next start.
void CriResize::on_container_answer(const Result<Json>& answer) {
  if (!answer && answer.error().code != ErrorCode::kNotFound) return end(answer.error());
  ++at_;
  next();
}

void CriResize::end(Outcome outcome) {
  means_.done(command_, std::move(outcome));
}

}  // namespace spillway::host
