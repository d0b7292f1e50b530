// The static pods of a node as its sources have them: a directory (or file) of the machine, and an address.
// Thread: any (plain values). Source: Kubernetes docs, "Create static Pods".
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::agent {

enum class ManifestSource : std::uint8_t { kFiles, kUrl };
inline constexpr std::size_t kManifestSources = 2;

/// The content of one file, or one pod of a list at a URL; an error is the reason why it cannot be parsed.
struct StaticManifest {
  std::string file;
  Result<api::Json> document;
};

/// All manifests of the source, by name. `problem`: the source itself cannot be read; empty: it can.
struct StaticManifests {
  std::vector<StaticManifest> files;
  std::string problem;
  ManifestSource source = ManifestSource::kFiles;
};

}  // namespace spillway::agent
