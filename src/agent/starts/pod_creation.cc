#include "agent/starts/pod_creation.h"

#include "agent/containers/container_security.h"
#include "agent/containers/dns_config.h"
#include "agent/containers/pod_resources.h"

#include <optional>
#include <utility>
#include <vector>

namespace spillway::agent {

void PodCreation::create(PodWorker& worker, Now now) {
  worker.content = PodContent::kCreated;
  CreatePod command = command_for(worker);
  worker.own_network = command.isolation.network && !has_pod_network(*worker.pod, context_.machine);
  if (worker.own_network) {
    events_.record(worker, {}, client::EventType::kNormal, "LoopbackOnly",
                   "The pod has a network namespace of its own with the loopback device alone, as it requested", now);
  }
  const std::optional<Bytes> memory_limit = command.memory_limit;
  context_.host_commands.emplace_back(std::move(command));
  if (context_.machine.runs_images || context_.machine.confines_pods) volumes_.add(worker.pod, memory_limit, now);
  if (context_.machine.runs_images || !context_.machine.confines_pods) return;
  record_left_out(worker, now);
  record_dns_warnings(worker, now);
}

CreatePod PodCreation::command_for(const PodWorker& worker) const {
  const api::Pod& pod = *worker.pod;
  CreatePod command = create_pod_command(pod);
  const containers::GroupAmounts amounts = resizes_.amounts_for(pod);
  command.memory_limit = amounts.memory_limit;
  command.cpu_limit_milli = amounts.cpu_limit_milli;
  command.cpu_request_milli = amounts.cpu_request_milli;
  command.pids_max = context_.options.pod_pids_max;
  command.isolation = isolation_of(pod, context_.machine, context_.options.cluster_domain);
  if (context_.machine.runs_images || has_pod_network(pod, context_.machine)) command.definition = worker.pod;
  return command;
}

void PodCreation::record_left_out(const PodWorker& worker, Now now) {
  for (const LeftOut& each : left_out_of(*worker.pod, context_.options.shared_network_because)) {
    events_.record(worker, {},
                   each.weight == LeftOut::Weight::kWarning ? client::EventType::kWarning : client::EventType::kNormal,
                   each.reason, each.message, now);
  }
}

/// Errors in the DNS configuration are reported by each container.
void PodCreation::record_dns_warnings(const PodWorker& worker, Now now) {
  if (!has_own_dns(*worker.pod, context_.options.dns)) return;
  const auto dns = pod_dns(*worker.pod, context_.options.dns);
  for (const DnsWarning& each : dns ? dns->warnings : std::vector<DnsWarning>()) {
    if (!each.about_node) events_.record(worker, {}, client::EventType::kWarning, each.reason, each.message, now);
  }
}

}  // namespace spillway::agent
