#include "agent/pod_state/pod_addresses.h"

#include "agent/containers/pod_resources.h"

#include <string>

namespace spillway::agent {

PodAddresses addresses_of(const PodWorker& worker, const MachineInfo& machine) {
  PodAddresses addresses{machine.internal_ip, machine.internal_ip};
  if (!has_pod_network(*worker.pod, machine)) return addresses;
  addresses.pod_ips = in_order_of_family(worker.pod_ips, machine.internal_ip);
  addresses.pod_ip = addresses.pod_ips.empty() ? std::string() : addresses.pod_ips.front();
  return addresses;
}

HandlerPlace place_of(const PodWorker& worker, const ContainerRun& run, containers::HttpPurpose purpose,
                      const MachineInfo& machine) {
  return {.uid = worker.uid(),
          .container = run.spec,
          .pod_ip = addresses_of(worker, machine).pod_ip,
          .own_network = worker.own_network,
          .expand = {},
          .purpose = purpose};
}

}  // namespace spillway::agent
