// Records of pods and containers for the agent's successor: enough to run them on without having started them. A
// container's environment is kept by its supervisor, in memory; the records on disk contain nothing beyond the pod's
// manifest. Unknown members are ignored, missing ones have their default. Thread: any (pure), except for functions
// named read and write.
#pragma once

#include "agent/contract/ports.h"
#include "api/json/json.h"
#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

/// The record of a container without volumes, devices and files, which are made once.
std::string container_record(const agent::StartContainer& command);
Result<agent::StartContainer> parse_container_record(std::string_view text);

struct KeptPod {
  agent::CreatePod command;  // the command without the pod's definition
  std::optional<std::uint32_t> first_id;
  WallTime created;
  api::Json capabilities = {};  // capabilities for network plug-ins; null: the pod is not attached to a network
};

std::string pod_record(const KeptPod& pod);
Result<KeptPod> parse_pod_record(std::string_view text);

/// The last reported end of each container of a pod, by name. One line each in a file, so it is bounded by the pod's
/// containers.
using KeptEnds = std::map<std::string, agent::FoundContainer>;

std::string ends_text(const KeptEnds& ends);
/// Lines that cannot be parsed are left out.
KeptEnds parse_ends(std::string_view text);

/// Takes the file's place as a whole, or not at all. Not held up by a disk: what a crash of the machine takes has no
/// container either.
Outcome write_record(const std::string& path, std::string_view text);

}  // namespace spillway::host
