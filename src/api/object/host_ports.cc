#include "api/object/host_ports.h"

#include <algorithm>

namespace spillway::api {
namespace {

constexpr std::string_view kAllAddresses = "0.0.0.0";

}  // namespace

std::set<HostPort> host_ports_of(const PodSpec& spec) {
  std::set<HostPort> ports;
  const auto add_all = [&ports](const Container& container) {
    for (const ContainerPort& port : container.ports) {
      if (port.host_port <= 0) continue;
      ports.insert({.protocol = port.protocol.empty() ? "TCP" : port.protocol,
                    .port = port.host_port,
                    .ip = port.host_ip.empty() ? std::string(kAllAddresses) : port.host_ip});
    }
  };
  for (const Container& container : spec.containers) add_all(container);
  for (const Container& container : spec.init_containers) {
    if (is_sidecar(container)) add_all(container);
  }
  return ports;
}

void UsedHostPorts::add(const PodSpec& spec) {
  used_.merge(host_ports_of(spec));
}

bool UsedHostPorts::conflicts_with(const PodSpec& spec) const {
  const std::set<HostPort> wanted = host_ports_of(spec);
  return std::any_of(wanted.begin(), wanted.end(), [this](const HostPort& port) { return is_taken(port); });
}

bool UsedHostPorts::is_taken(const HostPort& wanted) const {
  const HostPort from{.protocol = wanted.protocol, .port = wanted.port, .ip = {}};
  for (auto held = used_.lower_bound(from); held != used_.end(); ++held) {
    if (held->protocol != wanted.protocol || held->port != wanted.port) return false;
    if (held->ip == wanted.ip || held->ip == kAllAddresses || wanted.ip == kAllAddresses) return true;
  }
  return false;
}

}  // namespace spillway::api
