// Facts about the machine, or about the slice of it that is a node. Read once at start.
// Thread: any. Source: spec "Node agent", 4 (MachineInfo, VersionInfo, NodeAddress).
#pragma once

#include "agent/contract/options.h"
#include "agent/contract/ports.h"
#include "base/error.h"
#include "host/cgroup/node_slice.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

/// The interface of the default route from the text of /proc/net/route; nullopt if there is none.
std::optional<std::string> parse_default_interface(std::string_view routes);

/// The IPv4 address of the default route's interface, else of the first interface that is not the loopback, else the
/// loopback's.
std::string machine_address();

/// Addresses of every interface that is up, link-local ones too, each once; empty: unknown.
std::vector<std::string> machine_addresses();

/// The name of an architecture in labels and node information: the kernel's x86_64 is amd64; other names are equal in
/// both.
std::string architecture_name(std::string_view machine);

/// May block on a dead file system below `state_dir`. Facts that the machine does not provide are empty; an error means
/// that its memory or processors are unknown.
Result<agent::MachineInfo> read_machine_info(const NodeSlice& slice, const std::string& state_dir);

/// The kernel holds at least one huge page of some size.
bool has_huge_pages();

/// Sets the memory that the kernel needs for itself and that memory.available counts as free: with no more than that
/// left, its OOM killer acts. A slice has no such part, and MemAvailable does not count it. Grows with the pressure;
/// the thread that watches measures it anew each time.
void set_blind_zones(const NodeSlice& slice, agent::EvictionOptions& options);

}  // namespace spillway::host
