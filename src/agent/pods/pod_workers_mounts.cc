// Mounts of a container: volumes, and generated files such as /etc/hosts.
#include "agent/containers/container_mounts.h"
#include "agent/containers/dns_config.h"
#include "agent/containers/pod_hosts.h"
#include "agent/pods/pod_workers.h"

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::string_view kResolverPath = "/etc/resolv.conf";

}  // namespace

Outcome PodWorkers::add_mounts(const PodWorker& worker, const api::Container& container, const Environment& environment,
                               StartContainer& start) const {
  const api::Pod& pod = *worker.pod;
  std::set<std::string> known;
  std::set<std::string> read_only;
  for (const api::Volume& volume : pod.spec.volumes) {
    known.insert(volume.name);
    if (is_always_read_only(volume)) read_only.insert(volume.name);
  }
  MountPlan plan = plan_mounts(container, known, read_only, environment, recursion_of(worker));
  if (plan.problem) return *std::move(plan.problem);
  for (PlannedMount& mount : plan.mounts) {
    mount.binding.propagation = mount.propagation;
    if (mount.propagation != Propagation::kNone && !context_.machine.runs_images)
      return invalid({}, "volume \"{}\" at {}: with the process runtime mounts are not propagated",
                     mount.binding.volume, mount.binding.container_path);
    start.volumes.push_back(std::move(mount.binding));
  }
  if (const std::string& path = container.termination_message_path; path.starts_with('/'))
    start.files.push_back({.container_path = path, .content = {}, .is_message = true});
  SPILLWAY_TRY_VOID(add_resolver(pod, start));
  SPILLWAY_TRY(names, names_of(pod, context_.options.cluster_domain));
  if (const auto host_name = kernel_host_name(pod, names); !host_name) return host_name.error();
  if (plan.has_own_hosts) return {};
  const PodAddresses addresses = addresses_of(worker);
  const std::vector<std::string> ips = addresses.pod_ips.empty() ? std::vector{addresses.pod_ip} : addresses.pod_ips;
  if (auto hosts = hosts_file(pod, names, ips)) start.files.push_back(*std::move(hosts));
  return {};
}

/// A runtime that does not report the feature ignores the option: mounts below would be writable.
RecursiveReadOnly PodWorkers::recursion_of(const PodWorker& worker) const {
  if (!context_.machine.runs_images) return RecursiveReadOnly::kSupported;
  const auto handler = std::ranges::find(handlers_, worker.handler, &RuntimeHandler::name);
  const bool can = handler != handlers_.end() && handler->recursive_read_only_mounts;
  return can ? RecursiveReadOnly::kSupported : RecursiveReadOnly::kUnsupported;
}

/// A container runtime writes the file by itself. Else the machine's own is seen, unless the pod is to have another.
Outcome PodWorkers::add_resolver(const api::Pod& pod, StartContainer& start) const {
  if (context_.machine.runs_images || !has_own_dns(pod, context_.options.dns)) return {};
  const bool mounted = std::ranges::any_of(
      start.volumes, [](const VolumeBinding& each) { return each.container_path == kResolverPath; });
  if (mounted) return {};
  SPILLWAY_TRY(dns, pod_dns(pod, context_.options.dns));
  start.files.push_back({.container_path = std::string(kResolverPath), .content = resolv_conf(dns.config)});
  return {};
}

}  // namespace spillway::agent
