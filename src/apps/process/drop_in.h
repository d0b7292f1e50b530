// Drop-in directories of configuration files. Thread: main. Source: Kubernetes docs, "Set Kubelet Parameters Via A
// Configuration File".
#pragma once

#include "base/error.h"

#include <string>
#include <vector>

namespace spillway::apps {

/// The file, then the directory's *.conf in the order of their names: later ones win. Either may be empty: none.
/// kNotFound: the directory cannot be listed.
Result<std::vector<std::string>> configuration_files(const std::string& file, const std::string& directory);

}  // namespace spillway::apps
