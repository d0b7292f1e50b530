// The files of a volume, changed all at once: they lie in a directory of their own, "..data" leads there, and every
// name in the volume leads to what "..data" has of it. Thread: any; may wait for a file system. Source: Kubernetes
// docs, "ConfigMaps", mounted ConfigMaps are updated automatically; spec "Pod lifecycle", 7.5.
#pragma once

#include "agent/contract/volume_ports.h"
#include "base/error.h"
#include "base/time.h"

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace spillway::host {

struct PayloadOwner {
  uid_t first_user = 0;  // the machine's id that is the pod's 0
  gid_t group = 0;       // a group of the machine
};

/// Makes the volume's directory hold these files and no others. `finish` gets the new directory before it becomes
/// visible. `at` names it. False: the files were equal already. After an error the old files stay.
Result<bool> write_payload(int directory, const std::map<std::string, agent::VolumeFile>& files, PayloadOwner owner,
                           WallTime at, const std::function<Outcome(int directory)>& finish);

}  // namespace spillway::host
