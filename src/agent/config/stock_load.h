// Loads a KubeletConfiguration as a stock kubelet 1.32 does: strict decoding, then lenient; defaults; drop-ins; flags;
// validation. `lint --for kubelet` reports with it whether a kubelet starts. The agent's own parser is
// kubelet_config.h, which merges first and applies defaults once.
// Thread: any (pure). Names of feature gates are unknown here, and all are accepted.
// Source: Kubernetes docs, "Set Kubelet Parameters Via A Configuration File"; vectors
// kubelet-surface/kubelet_config_defaults.
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::agent {

/// A file that was parsed already; of repeated keys the last counts.
struct StockFile {
  std::string path;
  std::string text;  // the text of the file, quoted in messages
  api::Json value;
  std::vector<std::pair<int, std::string>> repeated = {};  // line and name of each repeated key
};

struct StockSources {
  std::optional<StockFile> file;                   // --config
  std::optional<std::vector<StockFile>> drop_ins;  // --config-dir: all files in it, in any order
  std::string drop_in_directory;
  std::vector<std::string> flags;  // "--max-pods=50"
  /// The kubelet's version, for showHiddenMetricsForVersion.
  std::pair<std::uint64_t, std::uint64_t> version = {1, 32};
};

struct StockLoad {
  std::string failed_stage;         // "flags", "load", "merge", "validate"; empty: the kubelet starts
  std::vector<std::string> errors;  // in upstream's words, in its order
  std::string strict_error;         // strict decoding failed, and the lenient one was used; may be empty
  api::Json config;                 // as /configz shows it; null if the kubelet does not start
};

StockLoad load_as_kubelet(const StockSources& sources);

/// The errors for which a kubelet refuses a configuration that was decoded and has its defaults, in its order and
/// words. `version`: as above.
std::vector<std::string> validate_as_kubelet(const api::Json& config,
                                             std::pair<std::uint64_t, std::uint64_t> version = {1, 32});

}  // namespace spillway::agent
