// The network of one node of `spillway up`: a bridge of this machine, by the CNI plug-ins bridge, host-local and
// portmap. Thread: any that may write a small file. Source: manuals of these plug-ins (containernetworking); bridge(8).
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

struct BridgeNetwork {
  std::string directory;            // holds the configuration, and which addresses are given out
  std::string bridge;               // name of the device
  std::vector<std::string> ranges;  // the node's podCIDRs
};

/// A name that no other node of this machine has: "spill" and eight digits. `instance`: of the cgroup tree.
std::string bridge_name(std::string_view instance, std::string_view node);

/// The text of the configuration.
std::string bridge_list(const BridgeNetwork& network);

/// Writes <directory>/10-spillway.conflist, if its content differs.
Outcome write_bridge_network(const BridgeNetwork& network);

/// Makes the device and brings it up, with the address that pods have as their gateway; the plug-in bridge takes it
/// over. One of that name is no error. Of IPv6 ranges, the plug-in gives it the addresses.
Outcome make_bridge(const BridgeNetwork& network);

/// The address of the device in a range, as the plug-in host-local chooses it: the first. nullopt: it is no range.
std::optional<std::string> gateway_of(std::string_view range);

/// Removes the device. None of that name is no error.
Outcome remove_bridge(const std::string& name);

/// The directories of plug-ins: `given`, or /opt/cni/bin and /usr/lib/cni if that is empty.
std::vector<std::string> plugin_directories(const std::string& given);

/// Makes packets within a bridge pass the rules of nftables, in this network namespace (the sysctls
/// net.bridge.bridge-nf-call-*, which other programs for containers set, too). The error names the remedy.
Outcome filter_bridges();

/// Checks that this process can attach pods by such a bridge. The error names what is missing and its remedy.
/// `program_path`: the value of PATH, by which plug-ins find iptables.
Outcome check_bridge_network(const std::vector<std::string>& directories, const std::string& program_path);

}  // namespace spillway::host
