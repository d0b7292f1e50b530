// What an agent writes down of pods and containers for the one that comes after it: as much as it takes to go on with
// them without having started them. What a container's environment says is kept by its supervisor, in memory; on disk
// is nothing that a pod's manifest does not say. Unknown members are left alone, missing ones are as in a new value.
// Thread: any (pure), but for what is named read and write.
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

/// Without volumes, devices and files, which are made once.
std::string container_record(const agent::StartContainer& command);
Result<agent::StartContainer> parse_container_record(std::string_view text);

struct KeptPod {
  agent::CreatePod command;  // without its definition
  std::optional<std::uint32_t> first_id;
  WallTime created;
  api::Json capabilities = {};  // network plug-ins get them for it; null: it is not attached to a network
};

std::string pod_record(const KeptPod& pod);
Result<KeptPod> parse_pod_record(std::string_view text);

/// The last end of each container of a pod that has been told, by name. One line each in a file, so it is bounded by
/// the pod's containers.
using KeptEnds = std::map<std::string, agent::FoundContainer>;

std::string ends_text(const KeptEnds& ends);
/// Lines that say nothing are left out.
KeptEnds parse_ends(std::string_view text);

/// Takes the file's place as a whole, or not at all. Not held up by a disk: what a crash of the machine takes has no
/// container either.
Outcome write_record(const std::string& path, std::string_view text);

}  // namespace spillway::host
