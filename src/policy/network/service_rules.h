// The rules of one Service. Thread: any (values). Bounds: kSpreadMax endpoints of a list. The frame
// must have chains for lists of that size (RuleSettings::spread_max).
// Source: Kubernetes docs, "Virtual IPs and Service Proxies".
#pragma once

#include "policy/network/endpoint_choice.h"
#include "policy/network/rule_settings.h"
#include "policy/network/ruleset.h"
#include "policy/network/service_ports.h"

#include <cstddef>
#include <span>

namespace spillway::network {

/// Adds the rules of a port to the part of its Service. `endpoints`: all of the port, merged.
void add_port_rules(const RuleSettings& settings, const ServicePort& port, std::span<const Endpoint> endpoints,
                    RulePart& part);

/// The rules of all ports of a Service.
RulePart service_rules(const RuleSettings& settings, std::span<const ServicePort> ports,
                       const MergedEndpoints& endpoints);

}  // namespace spillway::network
