#include "agent/containers/container_mounts.h"

#include <fmt/ranges.h>

#include <climits>

namespace spillway::agent {
namespace {

Result<std::string> sub_path_of(const api::VolumeMount& mount, const Environment& environment) {
  if (mount.sub_path_expr.empty()) return mount.sub_path;
  std::set<std::string> missing;
  const auto find = [&](std::string_view name) -> const std::string* {
    const std::string* value = environment.find(name);
    if (value == nullptr || value->empty()) missing.emplace(name);
    return value;
  };
  Result<std::string> expanded = expand(mount.sub_path_expr, find, PATH_MAX - 1);
  if (!missing.empty()) return invalid({}, "missing value for {}", fmt::join(missing, ", "));
  if (!expanded) return invalid(fmt::format("subPathExpr of volume \"{}\"", mount.name), "File name too long");
  return expanded;
}

bool steps_back(std::string_view path) {
  for (;;) {
    const auto slash = path.find('/');
    if (path.substr(0, slash) == "..") return true;
    if (slash == std::string_view::npos) return false;
    path.remove_prefix(slash + 1);
  }
}

Result<Propagation> propagation_of(std::string_view mode) {
  if (mode.empty() || mode == "None") return Propagation::kNone;
  if (mode == "HostToContainer") return Propagation::kHostToContainer;
  if (mode == "Bidirectional") return Propagation::kBidirectional;
  return invalid({}, "invalid MountPropagation mode: \"{}\"", mode);
}

Result<bool> recursively_read_only(const api::VolumeMount& mount, RecursiveReadOnly recursion) {
  const std::string& mode = mount.recursive_read_only;
  if (mode.empty() || mode == "Disabled") return false;
  const auto refused = [&](std::string_view why) {
    return invalid({},
                   "failed to resolve recursive read-only mode: volume \"{}\" requested recursive read-only mode, but "
                   "it is not {}",
                   mount.name, why);
  };
  if (!mount.read_only) return refused("read-only");
  if (!mount.mount_propagation.empty() && mount.mount_propagation != "None")
    return refused(fmt::format("compatible with propagation \"{}\"", mount.mount_propagation));
  const bool supported = recursion == RecursiveReadOnly::kSupported;
  if (mode == "IfPossible") return supported;
  if (mode != "Enabled")
    return invalid({}, "failed to resolve recursive read-only mode: unknown recursive read-only mode \"{}\"", mode);
  if (!supported) return refused("supported by the runtime");
  return true;
}

}  // namespace

MountPlan plan_mounts(const api::Container& container, const std::set<std::string>& volumes,
                      const std::set<std::string>& read_only, const Environment& environment,
                      RecursiveReadOnly recursion) {
  MountPlan plan;
  const auto stop = [&](Error why) {
    plan.problem = std::move(why);
    return plan;
  };
  for (const api::VolumeMount& mount : container.volume_mounts) {
    plan.has_own_hosts = plan.has_own_hosts || mount.mount_path == kHostsPath;
    if (!volumes.contains(mount.name))
      return stop(invalid({}, "cannot find volume \"{}\" to mount into container \"{}\"", mount.name, container.name));
    Result<std::string> sub_path = sub_path_of(mount, environment);
    if (!sub_path) return stop(sub_path.error());
    if (sub_path->starts_with('/'))
      return stop(invalid({}, "error SubPath `{}` must not be an absolute path", *sub_path));
    if (steps_back(*sub_path))
      return stop(invalid({}, "unable to provision SubPath `{}`: must not contain '..'", *sub_path));
    PlannedMount& planned = plan.mounts.emplace_back();
    planned.binding = {
        .volume = mount.name,
        .sub_path = *std::move(sub_path),
        .container_path = mount.mount_path.starts_with('/') ? mount.mount_path : fmt::format("/{}", mount.mount_path),
        .read_only = mount.read_only || read_only.contains(mount.name)};
    const Result<Propagation> propagation = propagation_of(mount.mount_propagation);
    if (!propagation) return stop(propagation.error());
    planned.propagation = *propagation;
    const Result<bool> recursively = recursively_read_only(mount, recursion);
    if (!recursively) return stop(recursively.error());
    planned.binding.recursively = *recursively;
  }
  return plan;
}

}  // namespace spillway::agent
