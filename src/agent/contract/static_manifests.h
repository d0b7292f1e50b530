// The contents of the node's directory of static pods, as the machine read it.
// Thread: any (plain values). Source: Kubernetes docs, "Create static Pods".
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <string>
#include <vector>

namespace spillway::agent {

/// One file; an error is the reason why it cannot be read as a document.
struct StaticManifest {
  std::string file;
  Result<api::Json> document;
};

/// All files there are, by name. `problem`: the directory itself cannot be read; empty: it can.
struct StaticManifests {
  std::vector<StaticManifest> files;
  std::string problem;
};

}  // namespace spillway::agent
