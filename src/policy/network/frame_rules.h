// The rules that exist without any Service: the hooks, and the look-ups that lead from them. Thread: any (values).
// Order of the hooks: the checks of sources precede the translation of destinations; those for ports without endpoints
// follow it, so that a packet which was given an endpoint passes them. Source: nftables wiki, "Netfilter hooks";
// Kubernetes docs, "Virtual IPs and Service Proxies".
#pragma once

#include "policy/network/rule_settings.h"
#include "policy/network/ruleset.h"

namespace spillway::network {

RulePart frame_rules(const RuleSettings& settings);

/// The condition that a packet is from a pod of the cluster; nullopt: it cannot be detected.
std::optional<Condition> from_pod(const LocalDetector& detector);
std::optional<Condition> not_from_pod(const LocalDetector& detector);

}  // namespace spillway::network
